"""What a dialect is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planner.answers import Answers
from planner.decision import Decision


@dataclass(frozen=True, slots=True)
class Timing:
    """What a clock saw of a decision, in milliseconds: waiting for its first worker, and in all.

    `queued_ms` is None where that is not known.
    """

    queued_ms: float | None
    total_ms: float


@dataclass(frozen=True, slots=True)
class Dialect:
    """One front door's language.

    `parse` makes a decision of a decoded JSON body and raises Invalid or pydantic's ValidationError;
    `render` makes the response body of a decision's answers.
    """

    parse: Callable[[Any], Decision]
    render: Callable[[Decision, Answers, Timing], dict[str, Any]]
