"""The breaker: an engine that failed several times in a row is left alone for a while."""

from __future__ import annotations

from dataclasses import dataclass

FAILURES = 5
"""Failures in a row that open it."""

OPEN_S = 5.0
"""Seconds that it stays open; then one canary decides."""


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row. Times are in seconds of any one clock."""

    in_a_row: int = 0
    until: float = 0.0

    def failed(self, now: float) -> bool:
        """Count a failure; True for the one that opens it."""
        self.in_a_row += 1
        if self.in_a_row < FAILURES:
            return False
        self.open(now)
        return True

    def open(self, now: float) -> None:
        """Leave the engine alone from now on."""
        self.in_a_row, self.until = 0, now + OPEN_S

    def succeeded(self) -> None:
        """Forget what failed before."""
        self.in_a_row = 0

    def half_open(self, now: float) -> bool:
        """Whether a canary may be sent."""
        return now >= self.until
