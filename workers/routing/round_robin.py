"""Round robin: each engine in its turn.

Costs nothing. Degrades twice: it knows nothing of prefix caches, and a slow engine gets as many reads as
a fast one. Kept to measure the others against.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from workers.routing.policy import LoadT, Policy, Prefix


def round_robin() -> Policy:
    """A policy with a count of its own."""
    turns = count()

    def in_turn(engines: Sequence[LoadT], prefix: Prefix) -> LoadT:
        return engines[next(turns) % len(engines)]

    return in_turn
