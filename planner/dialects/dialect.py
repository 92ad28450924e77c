"""What a dialect is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from planner.answers import Answers
from planner.decision import Decision
from planner.dialects.image_fields import NOTHING, Sent, Shown


@dataclass(frozen=True, slots=True)
class Timing:
    """What a clock saw of a decision, in milliseconds: waiting for its first worker, and in all.

    `queued_ms` is None where that is not known. `created` is when it was accepted, in seconds since 1970,
    and `id` what it is known by: some doors' answers carry both.
    """

    queued_ms: float | None
    total_ms: float
    created: float = 0.0
    id: str = ""


def _whole(body: Any) -> Any:
    return body


class Parse(Protocol):
    """Makes a decision of a decoded JSON body, and of the images in it."""

    def __call__(self, body: Any, shown: Shown = NOTHING) -> Decision:
        """The decision. Raises Invalid or pydantic's ValidationError."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One front door's language.

    `parse` makes a decision of a decoded JSON body and raises Invalid or pydantic's ValidationError;
    `render` makes the response body of a decision's answers. `fields` finds the fields of the job
    (`JobFields`) in a body that `parse` took, `images` the images in one that it has not yet seen, and raises
    as `parse` does.
    """

    parse: Parse
    render: Callable[[Decision, Answers, Timing], dict[str, Any]]
    images: Callable[[Any], Sent]
    fields: Callable[[Any], Any] = _whole
