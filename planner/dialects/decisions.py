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
from planner.dialects.image_fields import NOTHING, Place, Sent, Shown, sent_in, with_parts
from planner.dialects.systemone import DECIMALS, extras_of, options_of
from planner.dialects.systemone_request import Extensions
from planner.errors import Invalid, Location
from planner.json_depth import TooDeep, json_of

_EXTENSION_FIELDS = frozenset(Extensions.model_fields)


def images_in(body: Any) -> Sent:
    """The images in a body's parts, in the order in which they are read. Raises as `parse` does."""
    if not _may_show_images(body):
        return Sent()
    request = DecisionsRequest.model_validate(body)
    return sent_in(lambda place: _decision(request, place))


def _may_show_images(body: Any) -> bool:
    """Whether a part of a body that nobody has checked says that it is an image."""
    if not isinstance(body, dict):
        return False
    items = [
        item
        for field in ("input", "questions")
        for item in (body[field] if isinstance(body.get(field), list) else ())
        if isinstance(item, dict)
    ]
    contents = [item.get(name) for item in items for name in ("content", "output", "instructions")]
    return any(
        isinstance(part, dict) and part.get("type") == "input_image"
        for content in contents
        for part in (content if isinstance(content, list) else ())
    )


def parse(body: Any, shown: Shown = NOTHING) -> Decision:
    """The decision of a decoded body and its images. Raises pydantic's ValidationError, or Invalid."""
    request = DecisionsRequest.model_validate(body)
    return with_parts(lambda place: _decision(request, place), shown)


def _decision(request: DecisionsRequest, place: Place) -> Decision:
    return Decision(
        model=request.model,
        state=state_of(request.input, place),
        questions=tuple(
            _question(number, question, place) for number, question in enumerate(request.questions)
        ),
        options=options_of(request),
        door="decisions",
        extended=bool(request.model_fields_set & _EXTENSION_FIELDS),
        salt=salt_of(request.prompt_cache_key),
    )


def salt_of(prompt_cache_key: str | None) -> str:
    """What keeps the prompts of one `prompt_cache_key` apart from others' in prefix caches."""
    return "" if not prompt_cache_key else blake2b(prompt_cache_key.encode(), digest_size=16).hexdigest()


def state_of(given: str | list[Item], place: Place) -> Any:
    """The state that an input stands for, with what `place` gives for an image. Raises Invalid."""
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
        return _read(first.content, ("input", 0, "content"), place)
    return [_item(item, ("input", number), place) for number, item in enumerate(given)]


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


def _item(item: Item, loc: Location, place: Place) -> dict[str, Any]:
    match item:
        case InputMessage():
            told = {
                "role": item.role,
                "phase": item.phase,
                "content": _read(item.content, (*loc, "content"), place),
            }
        case FunctionCall():
            told = {**_call(item), "arguments": _arguments(item.arguments)}
        case CustomToolCall():
            told = {**_call(item), "input": item.input}
        case _:
            output = _read(item.output, (*loc, "output"), place)
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


def _read(content: Content, loc: Location, place: Place) -> Any:
    """What the model reads of a content: one text or value, or a list of them."""
    if isinstance(content, str):
        return content
    parts = [_part(part, (*loc, number), place) for number, part in enumerate(content)]
    return parts[0] if len(parts) == 1 else parts


def _part(part: AnyPart, loc: Location, place: Place) -> Any:
    match part:
        case InputImage():
            return place((*loc, "image_url"), part.image_url)
        case InputJson():
            return part.data
        case RefusalPart():
            return {"refusal": part.refusal}
        case _:
            return part.text


def _question(number: int, question: DecisionsQuestion, place: Place) -> Question:
    read = _read(question.instructions, ("questions", number, "instructions"), place)
    several = isinstance(question.instructions, list) and isinstance(read, list)
    instructions = "\n".join(map(as_text, read)) if several else as_text(read)
    id, name = str(number), question.name
    match question:
        case PredicateQuestion():
            return Question(id, "noul", instructions, (Alternative(YES), Alternative(NO)), name=name)
        case DecisionsScoreQuestion():
            levels = tuple(_level(at, level) for at, level in enumerate(question.levels))
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
            | (extras_of(answers.readings[question.id]) if decision.extended else {})
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
