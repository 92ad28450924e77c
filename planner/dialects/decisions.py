"""OpenAI's Decisions, with Canvass's extensions in the same body.

A question is known by its place: its id in the decision is "0", "1", ... Its name is the client's own and
never reaches a model.

The state is the input as the model shall read it (`state_of`):

* a string is itself;
* one user message with one text, or one JSON part, is that text or that JSON;
* anything else is JSON: a list of the items in their order. A message is `{"role", "content"}`, its content
  a string, or a list when it has several parts, in which a text is a string and a JSON part itself. A call
  is `{"type", "call_id", "name", "arguments"}` (`input` for a custom tool), its arguments as JSON where
  they are an object; an output is `{"type", "call_id", "output"}`.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from planner.answers import Answers, Reading, choice_confidence, expectation, score_confidence
from planner.decision import NO, YES, Alternative, Decision, Question, as_text
from planner.dialects.decisions_request import (
    AnyPart,
    Content,
    CustomToolCall,
    CustomToolCallOutput,
    DecisionsChoice,
    DecisionsLevel,
    DecisionsQuestion,
    DecisionsRequest,
    DecisionsScoreQuestion,
    FunctionCall,
    FunctionCallOutput,
    InputImage,
    InputJson,
    InputMessage,
    Item,
    PredicateQuestion,
    RefusalPart,
)
from planner.dialects.diagnostics import diagnostics
from planner.dialects.dialect import Timing
from planner.dialects.image_fields import NOTHING, Marks, Shown, require_no_mark
from planner.dialects.systemone import DECIMALS, options_of
from planner.dialects.systemone_request import Extensions
from planner.errors import Invalid, Location
from planner.json_depth import TooDeep, json_of

_EXTENSION_FIELDS = frozenset(Extensions.model_fields)


def images_in(body: Any) -> dict[str, list[str]]:
    """The URLs of the images in a body's parts, in their order; empty ones for those that are none."""
    if not isinstance(body, dict):
        return {"images": []}
    contents = [
        content
        for field, names in (("input", ("content", "output")), ("questions", ("instructions",)))
        for item in (body[field] if isinstance(body.get(field), list) else ())
        if isinstance(item, dict)
        for name in names
        if isinstance(content := item.get(name), list)
    ]
    urls = [
        part.get("image_url")
        for content in contents
        for part in content
        if isinstance(part, dict) and part.get("type") == "input_image"
    ]
    return {"images": [url if isinstance(url, str) else "" for url in urls]}


def parse(body: Any, shown: Shown = NOTHING) -> Decision:
    """The decision of a decoded body and its images. Raises pydantic's ValidationError, or Invalid."""
    request = DecisionsRequest.model_validate(body)
    if shown.images:
        require_no_mark(body)
    marks = Marks(shown)
    return Decision(
        model=request.model,
        state=state_of(request.input, marks),
        questions=tuple(
            _question(place, question, marks) for place, question in enumerate(request.questions)
        ),
        options=options_of(request),
        door="decisions",
        extended=bool(request.model_fields_set & _EXTENSION_FIELDS),
        salt=salt_of(request.prompt_cache_key),
        images=shown.images,
    )


def salt_of(prompt_cache_key: str | None) -> str:
    """What keeps the prompts of one `prompt_cache_key` apart from others' in prefix caches."""
    return "" if not prompt_cache_key else blake2b(prompt_cache_key.encode(), digest_size=16).hexdigest()


def state_of(given: str | list[Item], marks: Marks) -> Any:
    """The state that an input stands for, images as their marks. Raises Invalid."""
    if isinstance(given, str):
        return given
    _check_calls(given)
    first = given[0]
    if (
        len(given) == 1
        and isinstance(first, InputMessage)
        and first.role == "user"
        and _is_one(first.content)
    ):
        return _read(first.content, ("input", 0, "content"), marks)
    return [_item(item, ("input", place), marks) for place, item in enumerate(given)]


def _is_one(content: Content) -> bool:
    return isinstance(content, str) or len(content) == 1


def _check_calls(items: list[Item]) -> None:
    """An output answers a call that stands before it."""
    calls: set[tuple[str, str]] = set()
    for place, item in enumerate(items):
        if isinstance(item, FunctionCall | CustomToolCall):
            calls.add((item.type, item.call_id))
        if isinstance(item, FunctionCallOutput | CustomToolCallOutput):
            call = item.type.removesuffix("_output")
            if (call, item.call_id) not in calls:
                raise Invalid(
                    ("input", place, "call_id"),
                    f"no {call} before it has the call_id {item.call_id!r}",
                    kind="unknown_call_id",
                    given=item.call_id,
                )


def _item(item: Item, loc: Location, marks: Marks) -> dict[str, Any]:
    match item:
        case InputMessage():
            told = {
                "role": item.role,
                "phase": item.phase,
                "content": _read(item.content, (*loc, "content"), marks),
            }
        case FunctionCall():
            told = {**_call(item), "arguments": _arguments(item.arguments)}
        case CustomToolCall():
            told = {**_call(item), "input": item.input}
        case _:
            output = _read(item.output, (*loc, "output"), marks)
            told = {"type": item.type, "call_id": item.call_id, "output": output}
    return {name: value for name, value in told.items() if value is not None}


def _call(item: FunctionCall | CustomToolCall) -> dict[str, Any]:
    return {
        "type": item.type,
        "call_id": item.call_id,
        "namespace": item.namespace,
        "name": item.name,
    }


def _arguments(text: str) -> Any:
    """The arguments of a call: the object that they spell, or the text as it is."""
    try:
        value = json_of(text)
    except TooDeep:
        return text
    return value if isinstance(value, dict) else text


def _read(content: Content, loc: Location, marks: Marks) -> Any:
    """What the model reads of a content: one text or value, or a list of them."""
    if isinstance(content, str):
        return content
    parts = [_part(part, (*loc, place), marks) for place, part in enumerate(content)]
    return parts[0] if len(parts) == 1 else parts


def _part(part: AnyPart, loc: Location, marks: Marks) -> Any:
    match part:
        case InputImage():
            return marks.next(loc)
        case InputJson():
            return part.data
        case RefusalPart():
            return {"refusal": part.refusal}
        case _:
            return part.text


def _question(place: int, question: DecisionsQuestion, marks: Marks) -> Question:
    read = _read(question.instructions, ("questions", place, "instructions"), marks)
    several = isinstance(question.instructions, list) and isinstance(read, list)
    instructions = "\n".join(map(as_text, read)) if several else as_text(read)
    id, name = str(place), question.name
    match question:
        case PredicateQuestion():
            return Question(id, "noul", instructions, (Alternative(YES), Alternative(NO)), name=name)
        case DecisionsScoreQuestion():
            levels = tuple(_level(number, level) for number, level in enumerate(question.levels))
            return Question(id, "score", instructions, levels, name=name)
        case _:
            return Question(id, "choice", instructions, _choices(question.choices), name=name)


def _choices(choices: list[DecisionsChoice]) -> tuple[Alternative, ...]:
    """The choices as the model reads them: as JSON when a string spells one of the booleans."""
    booleans = {str(choice.value).lower() for choice in choices if isinstance(choice.value, bool)}
    alike = any(choice.value in booleans for choice in choices if isinstance(choice.value, str))
    return tuple(
        Alternative(
            json.dumps(choice.value, ensure_ascii=False) if alike else as_text(choice.value),
            choice.description,
            source=choice.value,
        )
        for choice in choices
    )


def _level(number: int, level: DecisionsLevel) -> Alternative:
    text = " - ".join(part for part in (level.label, level.description) if part)
    return Alternative(str(number), text, source=level.label)


def render(decision: Decision, answers: Answers, timing: Timing) -> dict[str, Any]:
    """The response body. Fields beyond OpenAI's are there when the request used an extension."""
    body: dict[str, Any] = {
        "model": answers.model,
        "answers": [
            _answer(question, answers.readings[question.id])
            | (_extras(answers.readings[question.id]) if decision.extended else {})
            for question in decision.questions
        ],
        "usage": {
            "input_tokens": answers.input_tokens,
            # Engines do not say how much they wrote to their caches.
            "input_tokens_details": {"cached_tokens": answers.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": answers.output_tokens,
            "output_tokens_details": {"reasoning_tokens": answers.thought.tokens if answers.thought else 0},
            "total_tokens": answers.input_tokens + answers.output_tokens,
        },
    }
    if decision.options.diagnostics:
        body["diagnostics"] = diagnostics(decision, answers, timing)
    return body


def _answer(question: Question, reading: Reading) -> dict[str, Any]:
    probabilities = [round(p, DECIMALS) for p in reading.probabilities]
    sources = [alternative.source for alternative in question.alternatives]
    match question.type:
        case "noul":
            return {"type": "predicate", "name": question.name, "probability": probabilities[0]}
        case "choice":
            return {
                "type": "choice",
                "name": question.name,
                "choice": sources[reading.best],
                "confidence": round(choice_confidence(reading.probabilities), DECIMALS),
                "probabilities": [
                    {"value": value, "probability": p}
                    for value, p in zip(sources, probabilities, strict=True)
                ],
            }
        case _:
            return {
                "type": "score",
                "name": question.name,
                "score": round(expectation(reading.probabilities), DECIMALS),
                "confidence": round(score_confidence(reading.probabilities), DECIMALS),
                "probabilities": [
                    {"value": level, "label": label, "probability": p}
                    for level, (label, p) in enumerate(zip(sources, probabilities, strict=True))
                ],
            }


def _extras(reading: Reading) -> dict[str, Any]:
    extras: dict[str, Any] = {"label_mass": round(reading.label_mass, DECIMALS)}
    if reading.draws > 1:
        extras |= {
            "stderr": round(reading.stderr[reading.best], DECIMALS),
            "agreement": round(reading.agreement, DECIMALS),
            "draws": reading.draws,
        }
    return extras
