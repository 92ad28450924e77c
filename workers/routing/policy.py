"""What a routing policy is given, and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar


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


LoadT = TypeVar("LoadT", bound=Load)


class Policy(Protocol):
    """Chooses among engines, at least one, for a prompt."""

    def __call__(self, engines: Sequence[LoadT], prefix: Prefix) -> LoadT:
        """The engine that takes the read."""
