"""The body of OpenAI's Decisions, with Canvass's extensions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictStr,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from planner.dialects.bounds import at_most
from planner.dialects.systemone_request import MAX_QUESTIONS, Extensions
from planner.dialects.tags import by, by_field, tag
from planner.dialects.unserved import refuse_unserved
from planner.formats import MAX_LEVELS, MAX_OPTIONS


def _checked_data(value: Any) -> Any:
    objects = value if isinstance(value, list) else [value]
    if not all(isinstance(one, dict) for one in objects):
        raise PydanticCustomError("json_part", "Input should be a JSON object or an array of objects")
    return value


def _text_or_list(value: Any) -> str | None:
    if isinstance(value, str):
        return tag("text")
    return tag("list") if isinstance(value, list) else None


_TEXT_OR_LIST = by(_text_or_list, "text_or_list", "Input should be a string or a list")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class InputText(_Model):
    """A piece of text; its `prompt_cache_breakpoint` is taken, and means nothing to the engines."""

    type: Literal["input_text"]
    text: str


class OutputText(_Model):
    """What the assistant wrote."""

    type: Literal["output_text"]
    text: str


class RefusalPart(_Model):
    """What the assistant said when it would not answer."""

    type: Literal["refusal"]
    refusal: str


class InputJson(_Model):
    """A JSON object, or an array of objects."""

    type: Literal["input_json"]
    data: Annotated[
        dict[str, Any] | list[dict[str, Any]],
        PlainValidator(_checked_data, json_schema_input_type=dict[str, Any] | list[dict[str, Any]]),
    ]


class InputImage(_Model):
    """A picture, as a data URL."""

    type: Literal["input_image"]
    image_url: str


AnyPart = Annotated[
    Annotated[InputText, Tag(tag("input_text"))]
    | Annotated[InputJson, Tag(tag("input_json"))]
    | Annotated[InputImage, Tag(tag("input_image"))]
    | Annotated[OutputText, Tag(tag("output_text"))]
    | Annotated[RefusalPart, Tag(tag("refusal"))],
    by_field("type", ("input_text", "input_json", "input_image", "output_text", "refusal")),
]

Content = Annotated[
    Annotated[str, Tag(tag("text"))]
    | Annotated[list[AnyPart], Field(min_length=1, fail_fast=True), Tag(tag("list"))],
    _TEXT_OR_LIST,
]


class InputMessage(_Model):
    """A message of a conversation."""

    type: Literal["message"] = "message"
    role: Literal["user", "developer", "system", "assistant"]
    content: Content
    phase: Literal["commentary", "final_answer"] | None = None


class FunctionCall(_Model):
    """A call of a function, its arguments as the JSON text that the model wrote."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    namespace: str | None = None


class CustomToolCall(_Model):
    """A call of a tool that takes any text."""

    type: Literal["custom_tool_call"]
    call_id: str
    name: str
    input: str
    namespace: str | None = None


class FunctionCallOutput(_Model):
    """What a called function gave."""

    type: Literal["function_call_output"]
    call_id: str
    output: Content


class CustomToolCallOutput(_Model):
    """What a called tool gave."""

    type: Literal["custom_tool_call_output"]
    call_id: str
    output: Content


_ITEMS = ("message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")


def _item_kind(value: Any) -> str | None:
    given = value.get("type", "message") if isinstance(value, dict) else None
    return tag(given) if isinstance(given, str) and given in _ITEMS else None


Item = Annotated[
    Annotated[InputMessage, Tag(tag("message"))]
    | Annotated[FunctionCall, Tag(tag("function_call"))]
    | Annotated[FunctionCallOutput, Tag(tag("function_call_output"))]
    | Annotated[CustomToolCall, Tag(tag("custom_tool_call"))]
    | Annotated[CustomToolCallOutput, Tag(tag("custom_tool_call_output"))],
    by(_item_kind, "unknown_type", f"Input should be an object of a type among: {', '.join(_ITEMS)}"),
]


class _DecisionsQuestion(_Model):
    instructions: Content
    name: str | None = None


class PredicateQuestion(_DecisionsQuestion):
    """How likely a statement about the input is."""

    type: Literal["predicate"]


def _value_kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return tag("boolean")
    return tag("string") if isinstance(value, str) else None


class DecisionsChoice(_Model):
    """One choice. A string and a boolean of the same text are two."""

    value: Annotated[
        Annotated[StrictStr, Tag(tag("string"))] | Annotated[StrictBool, Tag(tag("boolean"))],
        by(
            _value_kind,
            "choice_value",
            "Input should be a string or a boolean",
        ),
    ]
    description: str | None = None


class DecisionsChoiceQuestion(_DecisionsQuestion):
    """One of 2 to 255 choices, each unlike the others."""

    type: Literal["choice"]
    choices: Annotated[
        list[DecisionsChoice], Field(min_length=2, max_length=MAX_OPTIONS), at_most(MAX_OPTIONS)
    ]

    @model_validator(mode="after")
    def _unlike(self) -> DecisionsChoiceQuestion:
        seen = {(type(choice.value), choice.value) for choice in self.choices}
        if len(seen) < len(self.choices):
            raise PydanticCustomError("choices_alike", "each choice must have a value of its own")
        return self


class DecisionsLevel(_Model):
    """One level of a score."""

    label: str
    description: str | None = None


class DecisionsScoreQuestion(_DecisionsQuestion):
    """One of 2 to 10 ordered levels, counted from zero."""

    type: Literal["score"]
    levels: Annotated[list[DecisionsLevel], Field(min_length=2, max_length=MAX_LEVELS), at_most(MAX_LEVELS)]


DecisionsQuestion = Annotated[
    Annotated[PredicateQuestion, Tag(tag("predicate"))]
    | Annotated[DecisionsChoiceQuestion, Tag(tag("choice"))]
    | Annotated[DecisionsScoreQuestion, Tag(tag("score"))],
    by_field("type", ("predicate", "choice", "score")),
]


class DecisionsRequest(Extensions):
    """The body of `POST /v1/decisions`. Unknown top-level fields are ignored."""

    model: str
    input: Annotated[
        Annotated[str, Tag(tag("text"))]
        | Annotated[list[Item], Field(min_length=1, fail_fast=True), Tag(tag("list"))],
        _TEXT_OR_LIST,
    ]
    questions: Annotated[
        list[DecisionsQuestion], Field(min_length=1, max_length=MAX_QUESTIONS), at_most(MAX_QUESTIONS)
    ]
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    safety_identifier: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_unserved(cls, body: Any) -> Any:
        return refuse_unserved(body, "ask", "images", "assets")
