"""The body of a structured chat: a chat completion whose first message asks typed questions.

    messages[0]   system or developer: a JSON object with `questions` and any extensions
    messages[1]   the state

Extensions may also stand in the body itself, beside `model`; the schema's own win.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, Tag, model_validator
from pydantic_core import PydanticCustomError

from planner.decision import Alternative, as_text
from planner.dialects.bounds import at_most
from planner.dialects.image_fields import Place
from planner.dialects.systemone_request import (
    MAX_ITEMS,
    MAX_QUESTIONS,
    AskIfs,
    Extensions,
    Flag,
    NoulCriteria,
    QuestionId,
    QuestionIds,
    Text,
    text_of,
)
from planner.dialects.tags import by_field, tag
from planner.dialects.unserved import refuse_unserved
from planner.errors import Invalid, Location
from planner.formats import MAX_LEVELS, MAX_OPTIONS
from planner.json_depth import MAX_DEPTH, TooDeep, json_of
from planner.spans.blanks import MOST_TOKENS

FIRST_ROLES = ("system", "developer")
TYPES = ("noul", "choice", "score", "span", "spans")


def schema_of(body: Any) -> dict[str, Any] | None:
    """The schema that makes a body a decision; None for ordinary chat. Raises Invalid."""
    messages = body.get("messages") if isinstance(body, dict) else None
    first = messages[0] if isinstance(messages, list) and messages else None
    if not isinstance(first, dict) or first.get("role") not in FIRST_ROLES:
        return None
    text = _text_alone(first.get("content"))
    if text is None or not text.lstrip().startswith("{") or '"questions"' not in text:
        return None
    schema = _value(text, ("messages", 0, "content"))
    return schema if isinstance(schema, dict) and "questions" in schema else None


def decision_fields(body: Any) -> dict[str, Any]:
    """The fields of a decision that a body asks for: the schema's, and the extensions beside `model`."""
    schema = schema_of(body)
    if schema is None:
        raise Invalid(
            ("messages", 0, "content"),
            f"a decision's first message has the role {' or '.join(FIRST_ROLES)}, and its text is a JSON "
            "object with a `questions` key",
            kind="no_schema",
        )
    beside = {name: body[name] for name in Extensions.model_fields if body.get(name) is not None}
    return {**beside, **schema}


def state_of(body: Any, place: Place) -> Any:
    """The state of a decision: the JSON object or array that the second message spells, else its text.

    `place` says what stands for an image. Raises Invalid.
    """
    messages = body["messages"]
    if len(messages) != 2:
        raise Invalid(
            ("messages",),
            f"a decision has exactly two messages, the schema and the state; this one has {len(messages)}",
            kind="message_count",
            given=len(messages),
        )
    content = messages[1].get("content") if isinstance(messages[1], dict) else None
    loc = ("messages", 1, "content")
    text = content if isinstance(content, str) else _joined(content, loc, place)
    value = _value(text, loc) if text.lstrip()[:1] in ("{", "[") else None
    return value if isinstance(value, dict | list) else text


def _value(text: str, loc: Location) -> Any:
    """The JSON that a text spells, None when it spells none. Raises Invalid."""
    try:
        return json_of(text)
    except TooDeep as error:
        raise Invalid(loc, f"its JSON is nested more than {MAX_DEPTH} deep", kind="json_too_deep") from error


def _text_alone(content: Any) -> str | None:
    """The text of a content; None when there is anything but text in it."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(_is_text(part) for part in content):
        return None
    return "\n".join(part["text"] for part in content)


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _joined(content: Any, loc: Location, place: Place) -> str:
    """The parts of a state, a line each."""
    if not isinstance(content, list) or not content:
        raise Invalid(loc, "a state is a string, or a list of parts", kind="string_type", given=content)
    lines: list[str] = []
    for number, part in enumerate(content):
        if isinstance(part, dict) and part.get("type") == "image_url":
            lines.append(place((*loc, number, "image_url", "url"), _url_of(part, (*loc, number))))
        elif _is_text(part):
            lines.append(part["text"])
        else:
            message = "a part is {type: text, text} or {type: image_url, image_url: {url}}"
            raise Invalid((*loc, number), message, kind="part_type", given=part)
    return "\n".join(lines)


def _url_of(part: Mapping[str, Any], loc: Location) -> str:
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else None
    if not isinstance(url, str):
        message = "an image part is {type: image_url, image_url: {url}}"
        raise Invalid((*loc, "image_url"), message, kind="part_type", given=image)
    return url


def may_show_images(body: Any) -> bool:
    """Whether a part of the state, in a body that nobody has checked, says that it is an image."""
    messages = body.get("messages") if isinstance(body, dict) else None
    state = messages[1] if isinstance(messages, list) and len(messages) > 1 else None
    content = state.get("content") if isinstance(state, dict) else None
    parts = content if isinstance(content, list) else ()
    return any(isinstance(part, dict) and part.get("type") == "image_url" for part in parts)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Named(_Model):
    """An option or a level with a description."""

    name: str
    description: Text | None = None

    @property
    def text(self) -> str:
        """What the model reads of a level: its name and description."""
        return " - ".join(part for part in (self.name, text_of(self.description)) if part)


def _checked_named(value: Any) -> Named:
    return Named(name=value) if isinstance(value, str) else Named.model_validate(value)


AnyNamed = Annotated[Named, PlainValidator(_checked_named, json_schema_input_type=str | Named)]


def _require_unlike(listed: list[Named]) -> None:
    if len({one.name for one in listed}) < len(listed):
        raise PydanticCustomError("names_alike", "each must have a name of its own")


class _ChatQuestion(_Model):
    id: QuestionId
    instructions: Text | None = None
    depends_on: QuestionIds = ()
    ask_if: AskIfs = {}
    alone: Flag = False


class ChatNoul(_ChatQuestion):
    """A yes/no question; `criteria` may say what counts as either."""

    type: Literal["noul"]
    criteria: NoulCriteria | None = None

    def alternatives(self) -> tuple[Alternative, ...]:
        """Yes, then no."""
        return (self.criteria or NoulCriteria()).alternatives()


class ChatChoice(_ChatQuestion):
    """One of up to 255 options: names, or `{name, description}`."""

    type: Literal["choice"]
    options: Annotated[list[AnyNamed], Field(min_length=1, max_length=MAX_OPTIONS), at_most(MAX_OPTIONS)]

    @model_validator(mode="after")
    def _unlike(self) -> ChatChoice:
        _require_unlike(self.options)
        return self

    def alternatives(self) -> tuple[Alternative, ...]:
        """The options in the order given."""
        return tuple(Alternative(option.name, text_of(option.description)) for option in self.options)


class ChatScore(_ChatQuestion):
    """One of up to ten ordered levels, counted from zero: names, or `{name, description}`."""

    type: Literal["score"]
    levels: Annotated[list[AnyNamed], Field(min_length=1, max_length=MAX_LEVELS), at_most(MAX_LEVELS)]

    @model_validator(mode="after")
    def _unlike(self) -> ChatScore:
        _require_unlike(self.levels)
        return self

    def alternatives(self) -> tuple[Alternative, ...]:
        """The levels in order; `source` keeps each one's name."""
        return tuple(
            Alternative(str(number), level.text, source=level.name)
            for number, level in enumerate(self.levels)
        )


class ChatSpan(_ChatQuestion):
    """A piece of the state's text."""

    type: Literal["span"]
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS, strict=True)] | None = None


class ChatSpans(_ChatQuestion):
    """Every such piece of the state's text."""

    type: Literal["spans"]
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS, strict=True)] | None = None
    max_items: int = Field(default=16, ge=1, le=MAX_ITEMS, strict=True)


ChatQuestion = Annotated[
    Annotated[ChatNoul, Tag(tag("noul"))]
    | Annotated[ChatChoice, Tag(tag("choice"))]
    | Annotated[ChatScore, Tag(tag("score"))]
    | Annotated[ChatSpan, Tag(tag("span"))]
    | Annotated[ChatSpans, Tag(tag("spans"))],
    by_field("type", TYPES),
]


class ChatSchema(Extensions):
    """The schema of a decision. Joint, and with diagnostics, unless it says otherwise."""

    questions: Annotated[
        list[ChatQuestion], Field(min_length=1, max_length=MAX_QUESTIONS), at_most(MAX_QUESTIONS)
    ]
    joint: Flag = True
    diagnostics: Flag = True

    @model_validator(mode="before")
    @classmethod
    def _refuse_unserved(cls, fields: Any) -> Any:
        return refuse_unserved(fields, "images", "assets")

    @model_validator(mode="after")
    def _unlike(self) -> ChatSchema:
        seen: set[str] = set()
        for place, question in enumerate(self.questions):
            if question.id in seen:
                raise Invalid(
                    ("questions", place, "id"),
                    f"there is a question {question.id!r} before it",
                    kind="ids_alike",
                    given=question.id,
                )
            seen.add(question.id)
        return self


def level_words(question: Any, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of an `ask_if` about a question: a score's levels may be meant by their names."""
    if not isinstance(question, ChatScore):
        return words
    numbers = {level.name: str(number) for number, level in enumerate(question.levels)}
    return tuple(numbers.get(word, word) for word in words)


class ChatMessage(_Model):
    """A message as OpenAI's clients send it."""

    model_config = ConfigDict(extra="allow")

    role: str
    content: str | list[dict[str, Any]] | None = Field(
        description=f"Of the first of two messages: {as_text({'questions': ['...']})} makes it a decision."
    )


class ChatRequest(_Model):
    """The body of `POST /v1/chat/completions`: a decision, or any chat."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    stream: bool | None = None
