"""Least loaded: the engine with the fewest reads in flight from this worker, the first listed of equals.

Costs one pass over the pool. Degrades with states that are asked about more than once: it knows nothing of
prefix caches, so every engine comes to hold every state. It sees only this worker's own reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from workers.routing.policy import LoadT, Prefix


def least_loaded(engines: Sequence[LoadT], prefix: Prefix) -> LoadT:
    """The engine with the fewest reads in flight."""
    return min(engines, key=lambda engine: engine.in_flight)
