"""What the tests of schemas share: forms in few words, and answers to them without an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.answers import Answers, ObjectReading, Reading, ReadTrace, SpanReading
from planner.decision import Question
from planner.reads import Item, Served
from planner.schemas.assembly import Assembled, assemble
from planner.schemas.compiler import compile_schema
from planner.schemas.forms import Form
from planner.schemas.values import Fault, read_value

SOURCE = "Please send two red chairs to Berlin."

Says = Callable[[Question], Any]
"""What is answered to a question: an alternative's name, pieces of the text, a model's text."""


def record(**properties: Any) -> dict[str, Any]:
    """A schema of an object with these fields, all required."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def form_of(**properties: Any) -> Form:
    """The form of an object with these fields."""
    return compile_schema(record(**properties))


def asked(form: Form) -> dict[str, Question]:
    """A form's questions by id."""
    return {question.id: question for question in form.questions}


def reading(question: Question, name: str, probability: float = 0.8) -> Reading:
    """A reading that finds one alternative likeliest, and the others alike."""
    names = [alternative.name for alternative in question.alternatives]
    others = (1 - probability) / max(1, len(names) - 1)
    probabilities = tuple(probability if one == name else others for one in names)
    return Reading(probabilities, (0.0,) * len(names), 1.0, 0.5, 0.9, True, 1)


def answer(form: Form, says: Says) -> Answers:
    """The answers to a form, question by question, skipping as the stages do."""
    readings: dict[str, Reading] = {}
    spans: dict[str, SpanReading] = {}
    objects: dict[str, ObjectReading] = {}
    skipped: dict[str, str] = {}
    said: dict[str, str] = {}
    for question in form.questions:
        if any(said.get(id) not in wanted for id, wanted in question.ask_if.items()):
            skipped[question.id] = "another answer"
        elif question.is_label:
            given = says(question)
            readings[question.id] = given if isinstance(given, Reading) else reading(question, given)
            best = readings[question.id].best
            said[question.id] = question.alternatives[best].name
        elif question.is_span:
            items = tuple(Item(start, end, 0.7, 0.9) for start, end in says(question))
            spans[question.id] = SpanReading(items, windows=1, reads=1, tokens=3)
        else:
            value = read_value(says(question), question.schema)
            fault = value if isinstance(value, Fault) else None
            objects[question.id] = ObjectReading(
                None if fault else value, fault, 2 if fault else 1, "stop", 5
            )
    answered = (*readings, *spans, *objects)
    served = Served(engine="http://engine", model="m")
    reads = tuple(
        ReadTrace(f"0/{place}/0/0/0", "label", 0, 0, (id,), 0, 0, 0, served)
        for place, id in enumerate(answered)
    )
    return Answers(readings, spans, objects, skipped, (tuple(readings),), reads)


def assembled(form: Form, told: Mapping[str, Any]) -> Assembled:
    """The value of a form whose questions are answered by these, under their ids."""
    return assemble(form, answer(form, lambda question: told[question.id]), SOURCE)


def sample(grammar: dict[str, Any], pick: Callable[[int], int]) -> Any:
    """A value that a sent grammar allows; `pick(n)` picks one of n. RecursionError where it has no end."""
    return _sample(grammar, grammar.get("$defs", {}), pick)


def _sample(grammar: Any, defs: Mapping[str, Any], pick: Callable[[int], int], depth: int = 0) -> Any:
    if depth > 300:
        raise RecursionError
    if "$ref" in grammar:
        return _sample(defs[grammar["$ref"].removeprefix("#/$defs/")], defs, pick, depth + 1)
    if "const" in grammar:
        return grammar["const"]
    if "enum" in grammar:
        return grammar["enum"][pick(len(grammar["enum"]))]
    if "anyOf" in grammar:
        # Shorter and shorter, as a model that means to come to an end.
        branches = sorted(grammar["anyOf"], key=lambda one: "$ref" in one or "properties" in one)
        place = pick(len(branches)) if depth < 8 else 0
        return _sample(branches[place], defs, pick, depth + 1)
    types = grammar["type"] if isinstance(grammar["type"], list) else [grammar["type"]]
    type = types[pick(len(types))] if len(types) == 1 else ["string", "number", "boolean", "null"][pick(4)]
    if type == "object":
        held = grammar.get("properties", {})
        needed = grammar.get("required", ())
        found = {name: _sample(held[name], defs, pick, depth + 1) for name in held if name in needed}
        rest = grammar.get("additionalProperties", False)
        return found | ({"more": _sample(rest, defs, pick, depth + 1)} if rest and depth < 8 else {})
    if type == "array":
        first = grammar.get("prefixItems", [])
        count = max(grammar.get("minItems", 0), pick(3) if depth < 8 else 0)
        count = min(count, grammar.get("maxItems", count))
        kinds = [*first, *([grammar["items"]] * max(0, count - len(first)))]
        return [_sample(one, defs, pick, depth + 1) for one in kinds]
    low = grammar.get("minimum", grammar.get("exclusiveMinimum", grammar.get("maximum", 0) - 1))
    high = grammar.get("maximum", low + 1)
    number = (low + high) / 2 if type == "number" else low
    return {"string": "abc"[: pick(4)], "boolean": bool(pick(2)), "null": None}.get(type, number)
