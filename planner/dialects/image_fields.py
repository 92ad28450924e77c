"""Images in a body: the shapes that they come in, and where a decision shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.decision import IMAGE_MARK, as_text, mark_of
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


Asset = Annotated[InlineImage | PartImage, Field(union_mode="left_to_right")]
Assets = dict[Annotated[str, Field(min_length=1)], Asset]
Images = list[str | EncodedImage]
"""Data URLs, or objects."""


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


NOTHING = Shown()


class Marks:
    """The marks of images that stand in parts of messages, in the order of the parts."""

    def __init__(self, shown: Shown) -> None:
        number = {image: place for place, image in enumerate(shown.images)}
        self._marks = iter([mark_of(number[image]) for image in shown.after])

    def next(self, loc: Location) -> str:
        """The mark of the next image. Raises Invalid where images are not taken."""
        mark = next(self._marks, None)
        if mark is None:
            raise Invalid(loc, "images are not taken here", kind="not_served")
        return mark


def require_no_mark(value: Any) -> None:
    """Raise Invalid for a text that holds what stands for images here."""
    if isinstance(value, str) and IMAGE_MARK in value:
        raise Invalid(("state",), "the text holds U+E000, which stands for images here")
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        require_no_mark(child)


def with_images(body: Mapping[str, Any], shown: Shown) -> dict[str, Any]:
    """A body whose placeholders, in any string of state, instructions and questions, have become marks, and
    whose state ends with the images that follow it. Raises Invalid for a text that holds a mark already.
    """
    if not shown.images:
        return dict(body)
    number = {image: place for place, image in enumerate(shown.images)}
    marks = {name: mark_of(number[image]) for name, image in shown.placeholders.items()}
    longest_first = sorted(marks, key=len, reverse=True)

    def marked(value: Any) -> Any:
        if isinstance(value, str):
            require_no_mark(value)
            for name in longest_first:
                value = value.replace(name, marks[name])
            return value
        if isinstance(value, list):
            return [marked(one) for one in value]
        if isinstance(value, dict):
            return {name: marked(one) for name, one in value.items()}
        return value

    fields = {name: marked(body[name]) for name in ("state", "instructions", "questions") if name in body}
    if shown.after:
        after = "".join(mark_of(number[image]) for image in shown.after)
        fields["state"] = f"{as_text(fields.get('state', ''))}\n\n{after}"
    return {**body, **fields}
