"""Presence: each worker says that it is there and how it sees the pool, each second and at each change."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import time
from typing import Any

import orjson
import structlog

from workers.pool import Pool
from workers.store import Store, StoreError

EVERY_S = 1.0
GONE_AFTER_S = 5
"""Seconds after which a worker that said nothing counts as gone."""

log = structlog.get_logger()


async def announce(store: Store, worker: str, pool: Pool) -> None:
    """Announce a worker for ever. While the store is away it says so in the log and goes on."""
    while True:
        try:
            await _announce_once(store, worker, pool)
        except StoreError as error:
            log.warning("cannot announce this worker", reason=str(error))
        with suppress(TimeoutError):
            await asyncio.wait_for(pool.changed.wait(), EVERY_S)
        pool.changed.clear()


async def _announce_once(store: Store, worker: str, pool: Pool) -> None:
    views = orjson.dumps([engine.view() for engine in pool.engines])
    workers = store.key("workers")
    await store.run(
        ("SET", store.key("worker", worker), views, "EX", GONE_AFTER_S),
        ("ZADD", workers, time(), worker),
        ("ZREMRANGEBYSCORE", workers, "-inf", time() - GONE_AFTER_S),
        ("EXPIRE", workers, GONE_AFTER_S),
    )


async def pool_view(store: Store) -> list[dict[str, Any]]:
    """The engines as the living workers see them, one entry per worker and engine, each with `worker`."""
    workers = store.key("workers")
    (names,) = await store.run(("ZRANGE", workers, time() - GONE_AFTER_S, "+inf", "BYSCORE"))
    if not names:
        return []
    workers_names = [name.decode() for name in names]
    (views,) = await store.run(("MGET", *(store.key("worker", name) for name in workers_names)))
    return [
        {"worker": name, **engine}
        for name, view in zip(workers_names, views, strict=True)
        if view is not None
        for engine in orjson.loads(view)
    ]
