"""What can be wrong with a decision before anything runs.

PlannerError
└── Invalid        a field of the request is wrong: where, what, and what would be right
    └── TooLong    the prompt does not fit the model's context
"""

from __future__ import annotations

from typing import Any

Location = tuple[str | int, ...]


class PlannerError(Exception):
    """Base of everything the planner refuses."""


class Invalid(PlannerError):
    """A request that cannot become a plan.

    `loc` is the path of the wrong value inside the request, `kind` a stable machine-readable
    name of the rule it breaks, `given` the value itself.
    """

    def __init__(self, loc: Location, message: str, *, kind: str = "value_error", given: Any = None) -> None:
        super().__init__(message)
        self.loc = loc
        self.message = message
        self.kind = kind
        self.given = given


class TooLong(Invalid):
    """The prompt and its canvas need more tokens than the model's context holds.

    `tokens` is how many they need, None where they were not counted to the end.
    """

    def __init__(self, loc: Location, *, tokens: int | None, limit: int) -> None:
        needed = f"more than {limit}" if tokens is None else tokens
        super().__init__(
            loc,
            f"this prompt needs {needed} tokens with its canvas; the model's context holds {limit}",
            kind="max_tokens_exceeded",
        )
