"""What is kept of a run: a file of JSON Lines, whatever came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Run:
    """The record of one run, written line by line, so that a run that breaks off leaves what it came to.

    Each line has `phase`: `start`, `route`, `fetch`, `price` or `end`. Those of `route` and `price` are the
    audit of a decision, as the server keeps it: what was asked and read, then the checks.
    """

    def __init__(self, folder: Path, user: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{user}.jsonl"

    def note(self, phase: str, *records: Mapping[str, Any]) -> None:
        """Add records of a phase."""
        with self.file.open("a", encoding="utf-8") as file:
            for record in records:
                line = json.dumps({"phase": phase, **record}, ensure_ascii=False, default=str)
                file.write(f"{line}\n")

    def lines(self) -> list[dict[str, Any]]:
        """What is kept so far."""
        return [json.loads(line) for line in self.file.read_text(encoding="utf-8").split("\n") if line]
