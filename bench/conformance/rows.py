"""What is asked of a front door, a row each, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["pass", "stated", "fail", "untested"]
"""`stated`: not kept, for a reason that the page gives."""

GOOD: frozenset[Outcome] = frozenset({"pass", "stated"})

WORDS: Mapping[Outcome, str] = {
    "pass": "yes",
    "stated": "no: see below",
    "fail": "NO",
    "untested": "NOT TESTED",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that is asked.

    `name` is what it is called where it comes from, `level` MUST or SHOULD where its source has levels, else
    empty; `note` says why it is not kept.
    """

    name: str
    title: str
    outcome: Outcome
    level: str = ""
    note: str = ""

    @property
    def good(self) -> bool:
        """Whether it is kept, or not for a stated reason."""
        return self.outcome in GOOD


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one source."""

    title: str
    intro: str
    rows: tuple[Row, ...]
