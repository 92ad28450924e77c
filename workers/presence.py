"""Presence: each worker says that it is there and how it sees the pool, each second and at each change."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import time
from typing import Any

import orjson

from workers.pool.pool import Pool
from workers.store.store import Store

EVERY_S = 1.0
GONE_AFTER_S = 5
"""Seconds after which a worker that said nothing counts as gone."""


class Presence:
    """One worker's word that it is there, under its name."""

    def __init__(self, store: Store, worker: str, pool: Pool) -> None:
        self._store = store
        self._worker = worker
        self._pool = pool

    async def announce(self) -> None:
        """Say so, then wait for the next second or for a change of the pool. Raises StoreError."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._pool.changed.wait(), EVERY_S)
        self._pool.changed.clear()
        views = orjson.dumps([engine.view() for engine in self._pool.engines])
        workers = self._store.key("workers")
        await self._store.run(
            ("SET", self._store.key("worker", self._worker), views, "EX", GONE_AFTER_S),
            ("ZADD", workers, time(), self._worker),
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
