"""Prefix: consistent hashing with bounded loads, so that all reads of one state meet the same prefix cache.

Each prompt's head ranks the engines by a hash of both (rendezvous hashing: when an engine comes or goes,
only the prompts that it ranked first for move). The first in rank takes the read, unless it has more than
`LOAD_FACTOR` times the mean of reads in flight; then the read passes on to the next. Where nothing is to be
gained from a cache, and where all are over the bound, the less loaded of the first two takes it.

Costs one multiplication and a sort of the pool per read. Degrades gracefully: when one state makes up
most of the load its reads spill over to a second and third engine, each of which then caches it; with very
few reads in flight the bound lets one engine have two while others idle. It sees only this worker's reads,
so that with many workers an engine may go over the bound by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from workers.routing.policy import LoadT, Prefix

LOAD_FACTOR = 1.25

SHORT_TOKENS = 64
"""Prompts shorter than this are not worth a place in a cache."""

_MASK = 2**64 - 1


def by_prefix(engines: Sequence[LoadT], prefix: Prefix) -> LoadT:
    """The engine whose cache should know the prompt, or the next in rank that is not too loaded."""
    if len(engines) == 1:
        return engines[0]
    ranked = sorted(engines, key=lambda engine: _rank(prefix.key, engine.url))
    if prefix.tokens >= SHORT_TOKENS:
        bound = LOAD_FACTOR * (1 + sum(engine.in_flight for engine in engines)) / len(engines)
        for engine in ranked:
            if engine.in_flight + 1 <= max(1.0, bound):
                return engine
    first, second = ranked[:2]
    return first if first.in_flight <= second.in_flight else second


def _rank(key: int, url: str) -> int:
    """A number that hangs on both, evenly spread: splitmix64's last steps over their sum."""
    mixed = (key + _seed(url)) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)


@lru_cache(maxsize=1024)
def _seed(url: str) -> int:
    return int.from_bytes(blake2b(url.encode(), digest_size=8).digest())
