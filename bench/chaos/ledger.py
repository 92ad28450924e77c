"""The ledger: what the producers and the receiver saw of each decision, and what of that cannot be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from bench.chaos.workload import wrong_answers

TERMINAL = ("succeeded", "failed", "canceled", "expired")

Ending = tuple[str, bytes]
"""How a decision ended: its status, and its answers or its error's code."""


@dataclass(slots=True)
class Ledger:
    """Everything that was seen. `violations` names what breaks the promise, each with the decision's id.

    `endings` has, by id, each ending that somebody was told; `events` by id and type the webhook ids, and
    `bodies` their digests; `tries` counts what made a client come again.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    endings: defaultdict[str, set[Ending]] = field(default_factory=lambda: defaultdict(set))
    hooked: set[str] = field(default_factory=set)
    events: defaultdict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    bodies: defaultdict[tuple[str, str], set[int]] = field(default_factory=lambda: defaultdict(set))
    calls: Counter[str] = field(default_factory=Counter)
    tries: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    lines: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def accepted(self, id: str, number: int, kind: str) -> None:
        """Note that a decision stands for a number."""
        if self.numbers.setdefault(id, number) != number:
            self.broken(id, f"stands for the numbers {self.numbers[id]} and {number}")
        self.kinds[id] = kind

    def answer(self, id: str, body: Mapping[str, Any]) -> None:
        """Note an answer, as a client got it."""
        self._ended(id, "succeeded", body["answers"])

    def job(self, job: Mapping[str, Any]) -> None:
        """Note a job that is done, as somebody was shown it."""
        if job["status"] not in TERMINAL:
            self.broken(job["id"], f"is done, and {job['status']}")
        elif job["status"] == "succeeded":
            self._ended(job["id"], "succeeded", job["result"]["answers"])
        else:
            self.endings[job["id"]].add((job["status"], str(job["error"]["code"]).encode()))

    def hook(self, id: str, kind: str, event: str, body: bytes) -> None:
        """Note a webhook that came, with its `webhook-id`."""
        self.events[(id, kind)].add(event)
        self.bodies[(id, kind)].add(hash(body))
        self.calls[kind] += 1

    def broken(self, what: str, how: str) -> None:
        """Note that the promise was broken."""
        self.violations.append(f"{what}: {how}")

    def judge_endings(self) -> None:
        """Whoever was told of a decision's end was told the same."""
        for id, endings in self.endings.items():
            if len(endings) > 1:
                self.broken(id, f"ended {len(endings)} ways: {sorted(endings)}")

    def judge_hooks(self, ended: Iterable[str]) -> None:
        """Each event of a decision that ended and wanted a call came, with one id and one body."""
        for id in sorted(self.hooked & set(ended)):
            if not self.events.get((id, "decision.completed")):
                self.broken(id, "its webhook never came")
        for (id, kind), ids in self.events.items():
            if len(ids) > 1 or len(self.bodies[(id, kind)]) > 1:
                self.broken(id, f"{kind} came with {len(ids)} ids and {len(self.bodies[(id, kind)])} bodies")

    def _ended(self, id: str, status: str, answers: Mapping[str, Any]) -> None:
        ending = (status, orjson.dumps(answers, option=orjson.OPT_SORT_KEYS))
        if ending not in self.endings[id]:
            self.endings[id].add(ending)
            for wrong in wrong_answers(self.numbers[id], self.kinds[id], answers):
                self.broken(id, f"wrong ({self.kinds[id]} {self.numbers[id]}): {wrong}")
