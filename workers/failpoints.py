"""Fail-points: named places in the code where a process dies by SIGKILL, for tests of what is not lost then.

`CANVASS_FAILPOINT` arms a process, with `NAME:N` (it dies the Nth time that the point is reached) or
`NAME:P` with a point in the number (it dies with that probability, each time); several go with commas
between them. Unarmed, which is everywhere but in tests, `reach` is one look at an empty table. It is armed by
the environment, for the whole process and before anything is built: a point that had to be handed its fuse
would need it passed through every part that has one.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Mapping
from dataclasses import dataclass

VARIABLE = "CANVASS_FAILPOINT"

POINTS: Mapping[str, tuple[str, str]] = {
    "stored": ("api/service.py", "a decision is stored and not published"),
    "claimed": ("workers/runner.py", "a decision is claimed and nothing of it read"),
    "read": ("workers/runner.py", "reads are back and their results not kept"),
    "kept": ("workers/runner.py", "a shard's results are kept and its task has not ended"),
    "chord-body": ("workers/runner.py", "a chord's body has begun and done nothing"),
    "advanced": ("workers/runner.py", "the next wave is stored and not published"),
    "published": ("workers/runner.py", "the next wave is published and the task has not ended"),
    "finishing": ("workers/runner.py", "the answer is there and not stored"),
    "handed": ("workers/webhooks/courier.py", "a webhook is claimed and not attempted"),
    "delivered": ("workers/webhooks/courier.py", "a webhook was sent and its attempt not recorded"),
    "fed": ("workers/feeder.py", "states of a batch are decisions and not published"),
}
"""Each point: the file that reaches it, and what is true there."""


@dataclass(slots=True)
class Fuse:
    """When a point kills: the count of times left, or a probability each time."""

    left: int = 0
    probability: float = 0.0

    def burns(self) -> bool:
        """Whether this is the time."""
        if self.probability:
            return random.random() < self.probability
        self.left -= 1
        return self.left == 0


def parse(text: str) -> dict[str, Fuse]:
    """The fuses that `NAME:N` or `NAME:P` name, commas between them. Raises ValueError."""
    fuses: dict[str, Fuse] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, when = part.partition(":")
        if name not in POINTS:
            raise ValueError(f"{name!r} is no fail-point: there are {', '.join(POINTS)}")
        fuse = Fuse(probability=float(when)) if "." in when else Fuse(left=int(when or 1))
        if not (fuse.left > 0 or 0 < fuse.probability <= 1):
            raise ValueError(f"{part!r}: say how many times, or a probability such as 0.01")
        fuses[name] = fuse
    return fuses


_armed: dict[str, Fuse] = parse(os.environ.get(VARIABLE, ""))


def reach(name: str) -> None:
    """Say that a point is reached: the end of a process that is armed for it, nothing anywhere else."""
    if _armed and name in _armed and _armed[name].burns():
        os.kill(os.getpid(), signal.SIGKILL)
