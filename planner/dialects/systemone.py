"""System One, the API of TypeSafe's Jev, with Canvass's extensions in the same body."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationInfo, model_validator

from planner.answers import Answers, Reading, choice_confidence, expectation, score_confidence
from planner.decision import NO, YES, Alternative, Decision, Options, Question, as_text
from planner.dialects.diagnostics import diagnostics
from planner.dialects.dialect import Timing
from planner.dialects.span_answers import span_answer
from planner.errors import Invalid
from planner.formats import MAX_LEVELS, MAX_OPTIONS
from planner.spans.blanks import MOST_TOKENS

MAX_SAMPLES = 32
MAX_STEPS = 8
MAX_QUESTIONS = 400
MAX_ITEMS = 64
DECIMALS = 6
"""Probabilities keep six decimals: two would make ties at the top."""

Text = str | dict[str, Any] | list[Any]
QuestionId = Annotated[str, Field(min_length=1)]
AskIfValue = Annotated[bool, Field(strict=True)] | Annotated[int, Field(strict=True)] | str


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Question(_Model):
    instructions: Text | None = None
    depends_on: tuple[str, ...] = ()
    ask_if: dict[str, AskIfValue | Annotated[list[AskIfValue], Field(min_length=1)]] = {}
    alone: bool = False


class NoulCriteria(_Model):
    """What counts as yes, and what as no."""

    true: Text | None = None
    false: Text | None = None


class NoulQuestion(_Question):
    """A yes/no question."""

    type: Literal["noul"]
    criteria: NoulCriteria | None = None

    def alternatives(self) -> tuple[Alternative, ...]:
        """Yes, then no."""
        criteria = self.criteria or NoulCriteria()
        return (Alternative(YES, _text(criteria.true)), Alternative(NO, _text(criteria.false)))


class ChoiceQuestion(_Question):
    """One of up to 255 named options."""

    type: Literal["choice"]
    criteria: dict[str, Text | None] = Field(min_length=1, max_length=MAX_OPTIONS)

    def alternatives(self) -> tuple[Alternative, ...]:
        """The options in the order given."""
        return tuple(Alternative(name, _text(description)) for name, description in self.criteria.items())


class ScoreQuestion(_Question):
    """One of up to ten ordered levels, counted from zero."""

    type: Literal["score"]
    criteria: list[Text] = Field(min_length=1, max_length=MAX_LEVELS)

    def alternatives(self) -> tuple[Alternative, ...]:
        """The levels in order, each with the text it came with."""
        return tuple(
            Alternative(str(level), _text(text), source=text) for level, text in enumerate(self.criteria)
        )


class SpanCriteria(_Model):
    """How long an answer from the text may be, in tokens of the blank it is written into."""

    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS, strict=True)] | None = None


class SpansCriteria(SpanCriteria):
    """How long all answers may be together, and how many."""

    max_items: int = Field(default=16, ge=1, le=MAX_ITEMS, strict=True)


class SpanQuestion(_Question):
    """A piece of the state's text."""

    type: Literal["span"]
    criteria: SpanCriteria | None = None


class SpansQuestion(_Question):
    """Every such piece of the state's text."""

    type: Literal["spans"]
    criteria: SpansCriteria | None = None


class BoxQuestion(_Question):
    """A place in an image: known to the API, not served here."""

    type: Literal["box"]


AnyQuestion = Annotated[
    Annotated[NoulQuestion, Tag("noul")]
    | Annotated[ChoiceQuestion, Tag("choice")]
    | Annotated[ScoreQuestion, Tag("score")]
    | Annotated[SpanQuestion, Tag("span")]
    | Annotated[SpansQuestion, Tag("spans")]
    | Annotated[BoxQuestion, Tag("box")],
    Discriminator("type"),
]


class Extensions(_Model):
    """What a Canvass body may carry beside System One's own fields."""

    instructions: Text | None = None
    samples: Annotated[int, Field(ge=1, le=MAX_SAMPLES, strict=True)] | Literal["auto"] = 1
    auto_max: int = Field(default=4, ge=1, le=MAX_SAMPLES, strict=True)
    auto_threshold: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    steps: int = Field(default=1, ge=1, le=MAX_STEPS, strict=True)
    joint: bool = False
    ask: Annotated[list[str], Field(min_length=1)] | None = None
    chunk_rows: Annotated[int, Field(ge=1, strict=True)] | None = None
    chunk_prompt: Literal["own", "shared"] = "own"
    sequential: bool = False
    seed: int = Field(default=0, ge=0, lt=2**53, strict=True)
    diagnostics: bool = False


class SystemOneRequest(Extensions):
    """The body of `POST /v1/systemone`. Unknown top-level fields are ignored."""

    model: str
    state: Text
    questions: dict[QuestionId, AnyQuestion] = Field(min_length=1, max_length=MAX_QUESTIONS)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unserved(cls, body: Any, _: ValidationInfo) -> Any:
        """Fields that would change the answer must not be ignored while nothing serves them."""
        for name in ("assets", "images", "think", "webhook"):
            if isinstance(body, dict) and body.get(name):
                raise Invalid((name,), f"`{name}` is not served by this version", kind="not_served")
        return body


_EXTENSION_FIELDS = frozenset(Extensions.model_fields)
_QUESTION_EXTENSIONS = frozenset({"depends_on", "ask_if", "alone"})


def parse(body: Any) -> Decision:
    """The decision of a decoded body. Raises pydantic's ValidationError, or Invalid."""
    request = SystemOneRequest.model_validate(body)
    extended = bool(request.model_fields_set & _EXTENSION_FIELDS) or any(
        question.model_fields_set & _QUESTION_EXTENSIONS or question.type in ("span", "spans")
        for question in request.questions.values()
    )
    return Decision(
        model=request.model,
        state=request.state,
        questions=tuple(_question(id, question) for id, question in request.questions.items()),
        options=_options(request),
        door="systemone",
        extended=extended,
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
        instructions=_text(question.instructions),
        alternatives=() if isinstance(question, SpanQuestion | SpansQuestion) else question.alternatives(),
        depends_on=question.depends_on,
        ask_if={needed: _answers(values) for needed, values in question.ask_if.items()},
        alone=question.alone,
        max_tokens=spans.max_tokens if spans else None,
        max_items=_max_items(question),
    )


def _max_items(question: AnyQuestion) -> int:
    if not isinstance(question, SpansQuestion):
        return 1
    return (question.criteria or SpansCriteria()).max_items


def _options(request: SystemOneRequest) -> Options:
    return Options(
        instructions=_text(request.instructions),
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
        diagnostics=request.diagnostics,
    )


def _text(value: Text | None) -> str | None:
    return None if value is None else as_text(value)


def _answers(values: Any) -> tuple[str, ...]:
    """The values of `ask_if` as text: one or several, booleans and level numbers among them."""
    listed = values if isinstance(values, list) else [values]
    return tuple(value if isinstance(value, str) else str(value).lower() for value in listed)


def render(decision: Decision, answers: Answers, model: str, timing: Timing) -> dict[str, Any]:
    """The response body. `model` is the name that the model is served under.

    Fields beyond System One's begin with `x_`, or go by their plain names when the request used
    an extension.
    """
    prefix = "" if decision.extended else "x_"
    asked = {id for stage in answers.stages for id in stage} | set(answers.skipped) | set(answers.spans)
    body: dict[str, Any] = {
        "model": model,
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
