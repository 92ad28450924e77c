"""The backlog: how much of each kind waits in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import time

from workers.celery_app import LANES
from workers.store.store import Store, pairs_of


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits now. `queued` are the interactive decisions that no worker has begun, `queue_age_s` the
    seconds that the oldest of them has waited; `messages` counts task messages by lane.
    """

    queued: int
    queue_age_s: float
    open: int
    batches: int
    deliveries: int
    messages: Mapping[str, int]


async def backlog_of(store: Store) -> Backlog:
    """Look once. Raises StoreError."""
    queued, oldest, open, batches, deliveries, *messages = await store.run(
        ("ZCARD", store.key("queued")),
        ("ZRANGE", store.key("queued"), 0, 0, "WITHSCORES"),
        ("ZCARD", store.key("leases")),
        ("ZCARD", store.key("batches")),
        ("ZCARD", store.key("deliveries")),
        *(("LLEN", store.key("celery", lane)) for lane in LANES),
    )
    waited = max((time() - float(score) for _, score in pairs_of(oldest)), default=0.0)
    return Backlog(
        queued, waited, open, batches, deliveries, messages=dict(zip(LANES, messages, strict=True))
    )
