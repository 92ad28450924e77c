"""What a routing policy is given, and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


class Load(Protocol):
    """What a policy may look at: an engine's address and the reads this worker has on it."""

    @property
    def url(self) -> str:
        """The engine's address."""

    @property
    def in_flight(self) -> int:
        """Reads under way, and those that wait for room."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """What an engine's prefix cache would know a prompt by: a hash of its head, and its length in tokens."""

    key: int
    tokens: int


Policy = Callable[[Sequence[Load], Prefix], Load]
"""Chooses among engines, at least one, for a prompt."""
