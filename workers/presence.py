"""Presence: each worker says that it is there and how it sees the pool, each second and at each change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
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


def engines_of(seen: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What `pool_view` saw, by engine: in when any worker has it in, with how each worker sees it."""
    by_url: dict[str, list[Mapping[str, Any]]] = {}
    for view in seen:
        by_url.setdefault(view["url"], []).append(view)
    return [_together(url, views) for url, views in by_url.items()]


def _together(url: str, views: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    # Workers agree but for a moment; the one that gets furthest knows most.
    best = min(views, key=lambda view: _STATES.index(_state(view)))
    return {
        "url": url,
        "state": _state(best),
        "reason": best["reason"],
        **{name: best[name] for name in ("model", "context", "capabilities")},
        **{name: sum(view[name] for view in views) for name in ("in_flight", "reads", "errors")},
        "workers": [
            {"state": _state(view), **{name: view[name] for name in ("worker", "reason", "in_flight")}}
            for view in views
        ],
    }


_STATES = ("in", "draining", "out")


def _state(view: Mapping[str, Any]) -> str:
    if view["draining"]:
        return "draining"
    return "in" if view["joined"] else "out"
