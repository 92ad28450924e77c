"""Images in a body: the shapes that they come in, and where a decision shows them.

A body is validated before its images are looked at, and its texts are marked after that: `mark_of` is written
where a placeholder of System One stood, or a part of OpenAI's doors. So that nobody but us writes marks, the
decision is first made without them, and refused where a text of it, as decoded, holds U+E000 all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from planner.decision import IMAGE_MARK, Decision, Question, as_text, mark_of
from planner.dialects.bounds import at_most, few_wrong
from planner.errors import Invalid, Location


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class InlineImage(_Model):
    """An image in the body itself."""

    type: Literal["image"] = "image"
    format: str | None = Field(None, description="png, jpeg, webp or gif; what the bytes say counts.")
    data_base64: str


class PartImage(_Model):
    """An image in a part of a multipart body."""

    type: Literal["image"] = "image"
    part: str = Field(description="The part's name.")


class EncodedImage(_Model):
    """An image in the `images` array."""

    content_type: str | None = None
    base64: str


MOST_IMAGES = 1000
"""Images of a body, whatever a server's own limit is."""


def _checked_asset(value: Any) -> InlineImage | PartImage:
    if not isinstance(value, dict):
        message = "Input should be an object with `data_base64`, or with `part`"
        raise PydanticCustomError("asset_type", message)
    return (PartImage if "part" in value else InlineImage).model_validate(value)


def _checked_image(value: Any) -> str | EncodedImage:
    if not isinstance(value, str | dict):
        raise PydanticCustomError("image_type", "Input should be a data URL, or an object with `base64`")
    return value if isinstance(value, str) else EncodedImage.model_validate(value)


Asset = Annotated[
    InlineImage | PartImage,
    PlainValidator(_checked_asset, json_schema_input_type=InlineImage | PartImage),
]
Assets = Annotated[
    dict[Annotated[str, Field(min_length=1)], Asset],
    few_wrong(lambda asset: isinstance(asset, dict), "objects"),
    at_most(MOST_IMAGES),
]
ListedImage = Annotated[
    str | EncodedImage, PlainValidator(_checked_image, json_schema_input_type=str | EncodedImage)
]
Images = Annotated[list[ListedImage], Field(fail_fast=True), at_most(MOST_IMAGES)]
"""Data URLs, or objects."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The images that a valid body brings: by placeholder, and those that stand by themselves, each with its
    path. Their bytes were not looked at.
    """

    assets: Mapping[str, InlineImage | PartImage] = field(default_factory=dict)
    listed: tuple[tuple[Location, str | EncodedImage], ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """The images of a request, once they are kept: `placeholders` to the SHA-256 (hex) of what they stand
    for, and those of the images that follow the state.
    """

    placeholders: Mapping[str, str] = field(default_factory=dict)
    after: tuple[str, ...] = ()

    @property
    def images(self) -> tuple[str, ...]:
        """Every image once, in the order of its number."""
        return tuple(dict.fromkeys((*self.placeholders.values(), *self.after)))

    @property
    def marks(self) -> dict[str, str]:
        """What stands in a text for each image."""
        return {image: mark_of(number) for number, image in enumerate(self.images)}


NOTHING = Shown()

Place = Callable[[Location, str], str]
"""What stands in a text for an image part, by the path and the text of its URL. Raises Invalid."""

_STAND_IN = "\ue001"
"""Stands for an image part while marks are looked for: of the same kind, so that nothing else changes."""


def sent_in(build: Callable[[Place], Decision]) -> Sent:
    """The images in the parts of a body, in the order in which `build` reads them."""
    found: list[tuple[Location, str]] = []

    def noted(loc: Location, url: str) -> str:
        found.append((loc, url))
        return _STAND_IN

    build(noted)
    return Sent(listed=tuple(found))


def with_parts(build: Callable[[Place], Decision], shown: Shown) -> Decision:
    """The decision that `build` makes, its image parts in the order of `shown.after`.

    Raises Invalid for a text that holds U+E000, and for a part where images are not taken.
    """
    if shown.images:
        require_no_mark(build(lambda loc, url: _STAND_IN))
    marks = iter([shown.marks[image] for image in shown.after])

    def placed(loc: Location, url: str) -> str:
        mark = next(marks, None)
        if mark is None:
            raise Invalid(loc, "images are not taken here", kind="not_served")
        return mark

    return replace(build(placed), images=shown.images)


Read = Callable[[Any], Any]
"""Makes of a text, or of a JSON value in its place, what the model reads."""


def unmarked(value: Any) -> Any:
    """A text without images: as it is."""
    return value


def with_placeholders(build: Callable[[Read], Decision], shown: Shown) -> Decision:
    """The decision that `build` makes of texts in whose strings placeholders have become marks, and whose
    state ends with the images that follow it.

    Raises Invalid for a text that holds U+E000, and for a placeholder that no text holds.
    """
    if not shown.images:
        return build(unmarked)
    require_no_mark(build(unmarked))
    left = set(shown.placeholders)
    names = sorted(left, key=len, reverse=True)
    # One pass over a text, the longest name first: a mark already written is not looked into again.
    any_name = re.compile("|".join(map(re.escape, names))) if names else None

    def mark(found: re.Match[str]) -> str:
        left.discard(found[0])
        return shown.marks[shown.placeholders[found[0]]]

    def marked(value: Any) -> Any:
        if isinstance(value, str):
            return any_name.sub(mark, value) if any_name else value
        if isinstance(value, list):
            return [marked(one) for one in value]
        if isinstance(value, dict):
            return {name: marked(one) for name, one in value.items()}
        return value

    decision = build(marked)
    if left:
        unused = min(left, key=list(shown.placeholders).index)
        message = "no text of state, instructions and descriptions holds this placeholder"
        raise Invalid(("assets", unused), message, kind="unused_asset", given=unused)
    state = decision.state
    if shown.after:
        state = f"{as_text(state)}\n\n{''.join(shown.marks[image] for image in shown.after)}"
    return replace(decision, state=state, images=shown.images)


_STATES: dict[str, Location] = {"decisions": ("input",), "chat": ("messages", 1, "content")}
"""Where a door's state stands; `state` on others."""


def require_no_mark(decision: Decision) -> None:
    """Raise Invalid, with its path, for whatever a model would read and holds what stands for images here."""
    for loc, text in _told(decision):
        if text is not None and IMAGE_MARK in text:
            raise Invalid(loc, "the text holds U+E000, which stands for images here", kind="reserved_mark")


def _told(decision: Decision) -> Iterator[tuple[Location, str | None]]:
    """Every text that a prompt of the decision may hold, with its path."""
    yield _STATES.get(decision.door, ("state",)), decision.text
    yield ("instructions",), decision.options.instructions
    for place, question in enumerate(decision.questions):
        if decision.schema is not None:
            loc: Location = ("schema",)
        else:
            loc = ("questions", question.id if decision.door == "systemone" else place)
        for text in _texts_of(question):
            yield loc, text


def _texts_of(question: Question) -> Iterator[str | None]:
    yield question.id
    yield question.instructions
    for alternative in question.alternatives:
        yield alternative.name
        yield alternative.text
    if question.schema is not None:
        yield as_text(question.schema)
