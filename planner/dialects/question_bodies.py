"""Questions as System One's bodies carry them: what `parse` reads, written."""

from __future__ import annotations

from typing import Any

from planner.decision import Question


def question_body(question: Question) -> dict[str, Any]:
    """The JSON of a question, with what it says and no defaults."""
    body = {
        "type": question.type,
        "instructions": question.instructions,
        "criteria": _criteria(question),
        "max_tokens": question.max_tokens if question.type == "object" else None,
        "depends_on": list(question.depends_on),
        "ask_if": {id: list(answers) for id, answers in question.ask_if.items()},
        "alone": question.alone,
    }
    said = {name: value for name, value in body.items() if value not in (None, [], {}, False)}
    # A schema is always said, also one that says nothing.
    return said | {"criteria": question.schema} if question.type == "object" else said


def _criteria(question: Question) -> Any:
    texts = {alternative.name: alternative.text for alternative in question.alternatives}
    match question.type:
        case "noul":
            told = {"true": texts["yes"], "false": texts["no"]}
            return {name: text for name, text in told.items() if text is not None}
        case "choice":
            return texts
        case "score":
            return [alternative.source for alternative in question.alternatives]
        case "object":
            return question.schema
    limits = {"max_tokens": question.max_tokens, "max_items": question.max_items}
    if question.type == "span":
        del limits["max_items"]
    return {name: limit for name, limit in limits.items() if limit is not None}
