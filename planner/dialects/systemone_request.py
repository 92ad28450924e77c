"""The body of System One's requests, with Canvass's extensions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from planner.decision import NO, YES, Alternative, as_text
from planner.dialects.bounds import at_most, few_wrong
from planner.dialects.image_fields import Assets, Images, Read, unmarked
from planner.dialects.job_fields import JobFields
from planner.formats import MAX_LEVELS, MAX_OPTIONS
from planner.spans.blanks import MOST_TOKENS

MAX_SAMPLES = 32
MAX_STEPS = 8
MAX_QUESTIONS = 400
MAX_ITEMS = 64
MAX_THINK = 4096
MAX_WRITTEN = 4096
MAX_VERSION = 200

AskIfValue = bool | int | str


def _is_text(value: Any) -> bool:
    return isinstance(value, str | dict | list)


def _checked_text(value: Any) -> Any:
    if not _is_text(value):
        raise PydanticCustomError("text_type", "Input should be a string, an object or an array")
    return value


def _is_ask_if(value: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return bool(values) and all(isinstance(one, bool | int | str) for one in values)


def _checked_ask_if(value: Any) -> Any:
    if not _is_ask_if(value):
        raise PydanticCustomError("ask_if_type", "Input should be an answer, or a list of answers")
    return value


def _checked_samples(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value != "auto" and not (whole and 1 <= value <= MAX_SAMPLES):
        raise PydanticCustomError(
            "samples_type", f'Input should be a whole number from 1 to {MAX_SAMPLES}, or "auto"'
        )
    return value


Text = Annotated[
    str | dict[str, Any] | list[Any],
    PlainValidator(_checked_text, json_schema_input_type=str | dict[str, Any] | list[Any]),
]
AskIf = Annotated[
    AskIfValue | list[AskIfValue],
    PlainValidator(_checked_ask_if, json_schema_input_type=AskIfValue | list[AskIfValue]),
]
AskIfs = Annotated[
    dict[str, AskIf], few_wrong(_is_ask_if, "answers, or lists of them"), at_most(MAX_QUESTIONS)
]
Samples = Annotated[
    int | Literal["auto"],
    PlainValidator(
        _checked_samples,
        json_schema_input_type=Annotated[int, Field(ge=1, le=MAX_SAMPLES)] | Literal["auto"],
    ),
]
Flag = Annotated[bool, Field(strict=True)]
QuestionId = Annotated[str, Field(min_length=1)]
QuestionIds = Annotated[
    tuple[str, ...], Field(max_length=MAX_QUESTIONS, fail_fast=True), at_most(MAX_QUESTIONS)
]


def text_of(value: Any) -> str | None:
    """What the model reads of an optional text."""
    return None if value is None else as_text(value)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Question(_Model):
    instructions: Text | None = None
    depends_on: QuestionIds = ()
    ask_if: AskIfs = {}
    alone: Flag = False


class NoulCriteria(_Model):
    """What counts as yes, and what as no."""

    true: Text | None = None
    false: Text | None = None

    def alternatives(self, read: Read = unmarked) -> tuple[Alternative, ...]:
        """Yes, then no."""
        return (Alternative(YES, text_of(read(self.true))), Alternative(NO, text_of(read(self.false))))


class NoulQuestion(_Question):
    """A yes/no question."""

    type: Literal["noul"]
    criteria: NoulCriteria | None = None

    def alternatives(self, read: Read = unmarked) -> tuple[Alternative, ...]:
        """Yes, then no."""
        return (self.criteria or NoulCriteria()).alternatives(read)


class ChoiceQuestion(_Question):
    """One of up to 255 named options."""

    type: Literal["choice"]
    criteria: Annotated[
        dict[str, Text | None],
        Field(min_length=1, max_length=MAX_OPTIONS),
        few_wrong(lambda text: text is None or _is_text(text), "strings, objects, arrays or null"),
        at_most(MAX_OPTIONS),
    ]

    def alternatives(self, read: Read = unmarked) -> tuple[Alternative, ...]:
        """The options in the order given."""
        return tuple(
            Alternative(name, text_of(read(description))) for name, description in self.criteria.items()
        )


class ScoreQuestion(_Question):
    """One of up to ten ordered levels, counted from zero."""

    type: Literal["score"]
    criteria: Annotated[list[Text], Field(min_length=1, max_length=MAX_LEVELS), at_most(MAX_LEVELS)]

    def alternatives(self, read: Read = unmarked) -> tuple[Alternative, ...]:
        """The levels in order, each with the text it came with."""
        return tuple(
            Alternative(str(level), text_of(read(text)), source=text)
            for level, text in enumerate(self.criteria)
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


class ObjectQuestion(_Question):
    """A JSON value that the model writes, valid against a JSON Schema."""

    type: Literal["object"]
    criteria: dict[str, Any] | Flag = Field(description="A JSON Schema (2020-12).")
    max_tokens: Annotated[int, Field(ge=1, le=MAX_WRITTEN, strict=True)] | None = None


class BoxQuestion(_Question):
    """A place in an image: known to the API, not served here."""

    type: Literal["box"]


AnyQuestion = Annotated[
    Annotated[NoulQuestion, Tag("noul")]
    | Annotated[ChoiceQuestion, Tag("choice")]
    | Annotated[ScoreQuestion, Tag("score")]
    | Annotated[SpanQuestion, Tag("span")]
    | Annotated[SpansQuestion, Tag("spans")]
    | Annotated[ObjectQuestion, Tag("object")]
    | Annotated[BoxQuestion, Tag("box")],
    Discriminator("type"),
]


class Extensions(JobFields):
    """What a Canvass body may carry beside System One's own fields."""

    instructions: Text | None = None
    samples: Samples = 1
    auto_max: int = Field(default=4, ge=1, le=MAX_SAMPLES, strict=True)
    auto_threshold: float = Field(default=0.1, ge=0, allow_inf_nan=False, strict=True)
    steps: int = Field(default=1, ge=1, le=MAX_STEPS, strict=True)
    joint: Flag = False
    ask: Annotated[tuple[str, ...], Field(min_length=1, fail_fast=True), at_most(MAX_QUESTIONS)] | None = None
    chunk_rows: Annotated[int, Field(ge=1, strict=True)] | None = None
    chunk_prompt: Literal["own", "shared"] = "own"
    sequential: Flag = False
    seed: int = Field(default=0, ge=0, lt=2**53, strict=True)
    think: int = Field(default=0, ge=0, le=MAX_THINK, strict=True)
    images: Images = Field(default=[], description="Images after the state.")
    diagnostics: Flag = False
    audit: Flag = Field(default=False, description="Keep every read and text as it came.")
    schema_version: str | None = Field(
        default=None,
        max_length=MAX_VERSION,
        description="Of the caller's questions or schema, for the audit.",
    )


class _Request(Extensions):
    model: str
    state: Text
    assets: Assets | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_object(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            raise PydanticCustomError("dict_type", "Input should be a JSON object")
        return body


class SystemOneRequest(_Request):
    """The body of `POST /v1/systemone`. Unknown top-level fields are ignored."""

    questions: Annotated[
        dict[QuestionId, AnyQuestion],
        Field(min_length=1, max_length=MAX_QUESTIONS),
        at_most(MAX_QUESTIONS),
    ]


class SchemaRequest(_Request):
    """The body of `POST /v1/systemone` that asks for a value, by a JSON Schema in place of questions."""

    value_schema: Any = Field(alias="schema", description="A JSON Schema (2020-12).")

    @model_validator(mode="before")
    @classmethod
    def _has_no_questions(cls, body: Any) -> Any:
        if isinstance(body, dict) and body.get("questions") is not None:
            raise PydanticCustomError(
                "schema_and_questions", "Input should have questions or a schema, not both"
            )
        return body
