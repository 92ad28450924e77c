"""System One, the API of TypeSafe's Jev, with Canvass's extensions in the same body."""

from __future__ import annotations

from typing import Any

from planner.answers import Answers, Reading, choice_confidence, expectation, score_confidence
from planner.decision import Decision, Options, Question
from planner.dialects.diagnostics import diagnostics
from planner.dialects.dialect import Timing
from planner.dialects.image_fields import NOTHING, Read, Sent, Shown, unmarked, with_placeholders
from planner.dialects.object_answers import object_answer
from planner.dialects.span_answers import span_answer
from planner.dialects.systemone_request import (
    AnyQuestion,
    BoxQuestion,
    Extensions,
    ObjectQuestion,
    SchemaRequest,
    SpanQuestion,
    SpansCriteria,
    SpansQuestion,
    SystemOneRequest,
    text_of,
)
from planner.errors import Invalid
from planner.schemas.assembly import assemble
from planner.schemas.checks import check_schema
from planner.schemas.kept import form_of

DECIMALS = 6
"""Probabilities keep six decimals: two would make ties at the top."""

_EXTENSION_FIELDS = frozenset(Extensions.model_fields)
_QUESTION_EXTENSIONS = frozenset({"depends_on", "ask_if", "alone"})


def parse(body: Any, shown: Shown = NOTHING) -> Decision:
    """The decision of a decoded body and its images. Raises pydantic's ValidationError, or Invalid."""
    request = _validated(body)
    if not shown.images and (request.assets or request.images):
        raise Invalid(
            ("assets" if request.assets else "images",), "images are not taken here", kind="not_served"
        )
    return with_placeholders(lambda read: _decision(request, read), shown)


def images_in(body: Any) -> Sent:
    """The images that a body brings. Raises pydantic's ValidationError."""
    if not (isinstance(body, dict) and (body.get("assets") or body.get("images"))):
        return Sent()
    request = _validated(body)
    listed = tuple((("images", place), image) for place, image in enumerate(request.images))
    return Sent(request.assets or {}, listed)


def _validated(body: Any) -> SystemOneRequest | SchemaRequest:
    shape = SchemaRequest if isinstance(body, dict) and "schema" in body else SystemOneRequest
    return shape.model_validate(body)


def _decision(request: SystemOneRequest | SchemaRequest, read: Read) -> Decision:
    """A decision whose texts are what `read` makes of them."""
    schema = request.value_schema if isinstance(request, SchemaRequest) else None
    return Decision(
        model=request.model,
        state=read(request.state),
        questions=questions_of(request, read),
        options=options_of(request, read),
        door="systemone",
        extended=_is_extended(request),
        schema=schema,
        schema_version=request.schema_version,
    )


def questions_of(request: SystemOneRequest | SchemaRequest, read: Read = unmarked) -> tuple[Question, ...]:
    """The questions that a request asks, or those that its schema compiles to, whose texts are left as they
    are. Raises Invalid.
    """
    if isinstance(request, SchemaRequest):
        return form_of(request.value_schema).questions
    return tuple(_question(id, question, read) for id, question in request.questions.items())


def _is_extended(request: SystemOneRequest | SchemaRequest) -> bool:
    if isinstance(request, SchemaRequest) or request.model_fields_set & _EXTENSION_FIELDS:
        return True
    return any(
        question.model_fields_set & _QUESTION_EXTENSIONS or isinstance(question, _Unlabelled)
        for question in request.questions.values()
    )


def _question(id: str, question: AnyQuestion, read: Read) -> Question:
    if isinstance(question, BoxQuestion):
        raise Invalid(
            ("questions", id, "type"),
            "box questions need a model that points into images; this server reads labels",
            kind="unsupported_question_type",
            given="box",
        )
    if isinstance(question, ObjectQuestion):
        check_schema(question.criteria, ("questions", id, "criteria"))
    return Question(
        id=id,
        type=question.type,
        instructions=text_of(read(question.instructions)),
        alternatives=() if isinstance(question, _Unlabelled) else question.alternatives(read),
        depends_on=question.depends_on,
        ask_if={needed: answer_words(values) for needed, values in question.ask_if.items()},
        alone=question.alone,
        max_tokens=_max_tokens(question),
        max_items=_max_items(question),
        schema=question.criteria if isinstance(question, ObjectQuestion) else None,
    )


_Unlabelled = SpanQuestion | SpansQuestion | ObjectQuestion


def _max_tokens(question: AnyQuestion) -> int | None:
    if isinstance(question, ObjectQuestion):
        return question.max_tokens
    if isinstance(question, SpanQuestion | SpansQuestion) and question.criteria:
        return question.criteria.max_tokens
    return None


def _max_items(question: AnyQuestion) -> int:
    if not isinstance(question, SpansQuestion):
        return 1
    return (question.criteria or SpansCriteria()).max_items


def options_of(request: Extensions, read: Read = unmarked) -> Options:
    """How a decision with these extensions is read."""
    return Options(
        instructions=text_of(read(request.instructions)),
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
        audit=request.audit,
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
    body: dict[str, Any] = {
        "model": answers.model,
        "answers": {
            question.id: _answer(decision, question, answers, prefix)
            for question in decision.questions
            if question.id in answers.settled
        },
        "usage": {"input_tokens": answers.input_tokens, "output_tokens": answers.output_tokens},
    }
    if decision.schema is not None:
        body |= _assembled(decision, answers)
    if decision.options.diagnostics:
        body["diagnostics"] = diagnostics(decision, answers, timing)
    return body


def _assembled(decision: Decision, answers: Answers) -> dict[str, Any]:
    """The value that the schema asked for, and where each of its fields comes from."""
    found = assemble(form_of(decision.schema), answers, decision.source)
    return {
        "value": found.value,
        "valid": found.valid,
        "errors": [
            {"path": error.path, "code": error.code, "message": error.message} for error in found.errors
        ],
        "fields": found.fields,
    }


def _answer(decision: Decision, question: Question, answers: Answers, prefix: str) -> dict[str, Any] | None:
    if question.id in answers.skipped:
        return None
    if question.is_span:
        return span_answer(decision, question, answers.spans[question.id])
    if question.type == "object":
        return object_answer(answers.objects[question.id])
    reading = answers.readings[question.id]
    extras = {prefix + name: value for name, value in extras_of(reading).items()}
    return _typed_answer(question, reading) | extras


def extras_of(reading: Reading) -> dict[str, Any]:
    """What an answer says of its reads, beyond what the doors' own APIs do."""
    extras: dict[str, Any] = {"label_mass": round(reading.label_mass, DECIMALS)}
    if reading.draws > 1:
        extras |= {
            "stderr": round(reading.stderr[reading.best], DECIMALS),
            "agreement": round(reading.agreement, DECIMALS),
            "draws": reading.draws,
        }
    return extras


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
