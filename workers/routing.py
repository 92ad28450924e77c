"""Routing: which engine takes a read. A policy is a pure function of the engines that can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from planner.reads import Read


class Load(Protocol):
    """What a policy may look at: an engine's address and the reads this worker has on it."""

    @property
    def url(self) -> str:
        """The engine's address."""

    @property
    def in_flight(self) -> int:
        """Reads under way."""


Policy = Callable[[Sequence[Load], Read], Load]
"""Chooses among engines, at least one, for a read."""


def least_loaded(engines: Sequence[Load], read: Read) -> Load:
    """The engine with the fewest reads in flight from this worker, the first listed of equals.

    Costs one pass over the pool. It knows nothing of prefix caches, nor of other workers' reads.
    """
    return min(engines, key=lambda engine: engine.in_flight)
