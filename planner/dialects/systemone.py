"""System One, the API of TypeSafe's Jev, with Canvass's extensions in the same body."""

from __future__ import annotations

from typing import Any

from planner.answers import Answers, Reading, choice_confidence, expectation, score_confidence
from planner.decision import Decision, Options, Question
from planner.dialects.diagnostics import diagnostics
from planner.dialects.dialect import Timing
from planner.dialects.image_fields import NOTHING, Shown, with_images
from planner.dialects.span_answers import span_answer
from planner.dialects.systemone_request import (
    AnyQuestion,
    BoxQuestion,
    Extensions,
    SpanQuestion,
    SpansCriteria,
    SpansQuestion,
    SystemOneRequest,
    text_of,
)
from planner.errors import Invalid

DECIMALS = 6
"""Probabilities keep six decimals: two would make ties at the top."""

_EXTENSION_FIELDS = frozenset(Extensions.model_fields)
_QUESTION_EXTENSIONS = frozenset({"depends_on", "ask_if", "alone"})


def parse(body: Any, shown: Shown = NOTHING) -> Decision:
    """The decision of a decoded body and its images. Raises pydantic's ValidationError, or Invalid."""
    request = SystemOneRequest.model_validate(with_images(body, shown) if shown.images else body)
    if not shown.images and (request.assets or request.images):
        raise Invalid(
            ("assets" if request.assets else "images",), "images are not taken here", kind="not_served"
        )
    extended = bool(request.model_fields_set & _EXTENSION_FIELDS) or any(
        question.model_fields_set & _QUESTION_EXTENSIONS or question.type in ("span", "spans")
        for question in request.questions.values()
    )
    return Decision(
        model=request.model,
        state=request.state,
        questions=tuple(_question(id, question) for id, question in request.questions.items()),
        options=options_of(request),
        door="systemone",
        extended=extended,
        images=shown.images,
    )


def _question(id: str, question: AnyQuestion) -> Question:
    if isinstance(question, BoxQuestion):
        raise Invalid(
            ("questions", id, "type"),
            "box questions need a model that points into images; this server reads labels",
            kind="unsupported_question_type",
            given="box",
        )
    spans = question.criteria if isinstance(question, SpanQuestion | SpansQuestion) else None
    return Question(
        id=id,
        type=question.type,
        instructions=text_of(question.instructions),
        alternatives=() if isinstance(question, SpanQuestion | SpansQuestion) else question.alternatives(),
        depends_on=question.depends_on,
        ask_if={needed: answer_words(values) for needed, values in question.ask_if.items()},
        alone=question.alone,
        max_tokens=spans.max_tokens if spans else None,
        max_items=_max_items(question),
    )


def _max_items(question: AnyQuestion) -> int:
    if not isinstance(question, SpansQuestion):
        return 1
    return (question.criteria or SpansCriteria()).max_items


def options_of(request: Extensions) -> Options:
    """How a decision with these extensions is read."""
    return Options(
        instructions=text_of(request.instructions),
        samples=None if request.samples == "auto" else request.samples,
        auto_threshold=request.auto_threshold,
        auto_max=request.auto_max,
        steps=request.steps,
        joint=request.joint,
        ask=tuple(request.ask) if request.ask is not None else None,
        chunk_rows=request.chunk_rows,
        chunk_prompt=request.chunk_prompt,
        sequential=request.sequential,
        seed=request.seed,
        think=request.think,
        diagnostics=request.diagnostics,
    )


def answer_words(values: Any) -> tuple[str, ...]:
    """The values of `ask_if` as text: one or several, booleans and level numbers among them."""
    listed = values if isinstance(values, list) else [values]
    return tuple(value if isinstance(value, str) else str(value).lower() for value in listed)


def render(decision: Decision, answers: Answers, timing: Timing) -> dict[str, Any]:
    """The response body.

    Fields beyond System One's begin with `x_`, or go by their plain names when the request used
    an extension.
    """
    prefix = "" if decision.extended else "x_"
    asked = {id for stage in answers.stages for id in stage} | set(answers.skipped) | set(answers.spans)
    body: dict[str, Any] = {
        "model": answers.model,
        "answers": {
            question.id: span_answer(decision, question, answers.spans[question.id])
            if question.is_span
            else _answer(question, answers.readings.get(question.id), prefix)
            for question in decision.questions
            if question.id in asked
        },
        "usage": {"input_tokens": answers.input_tokens, "output_tokens": answers.output_tokens},
    }
    if decision.options.diagnostics:
        body["diagnostics"] = diagnostics(decision, answers, timing)
    return body


def _answer(question: Question, reading: Reading | None, prefix: str) -> dict[str, Any] | None:
    if reading is None:
        return None
    extras: dict[str, Any] = {"label_mass": round(reading.label_mass, DECIMALS)}
    if reading.draws > 1:
        extras |= {
            "stderr": round(reading.stderr[reading.best], DECIMALS),
            "agreement": round(reading.agreement, DECIMALS),
            "draws": reading.draws,
        }
    return _typed_answer(question, reading) | {prefix + name: value for name, value in extras.items()}


def _typed_answer(question: Question, reading: Reading) -> dict[str, Any]:
    probabilities = reading.probabilities
    if question.type == "noul":
        return {"type": "noul", "noul": round(probabilities[0], DECIMALS)}
    by_name = {
        alternative.name: round(p, DECIMALS)
        for alternative, p in zip(question.alternatives, probabilities, strict=True)
    }
    if question.type == "choice":
        return {
            "type": "choice",
            "choice": question.alternatives[reading.best].name,
            "probabilities": by_name,
            "confidence": round(choice_confidence(probabilities), DECIMALS),
        }
    return {
        "type": "score",
        "score": round(expectation(probabilities), DECIMALS),
        "legend": {level.name: level.source for level in question.alternatives},
        "probabilities": by_name,
        "confidence": round(score_confidence(probabilities), DECIMALS),
    }
