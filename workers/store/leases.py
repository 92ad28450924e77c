"""Leases: who runs which open decision, and which of them nobody runs any more.

A decision that is open is in one sorted set, with the time by which someone must have renewed it. It is
also what the watchdog (workers/watchdog.py) goes by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import time

from workers.celery_app import BATCH, INTERACTIVE, LANES
from workers.settings import Settings
from workers.store import scripts
from workers.store.decisions import BATCH_PREFIX
from workers.store.store import Store

OVERTAKEN_S = 2.0
"""Seconds by which one that was sent later has to be, to prove when it begins that a message is lost."""

WAITING_LEASE_S = 10.0
"""Seconds after which one that waits in a queue is looked at again."""


class Leases:
    """Reads and writes leases. Every method raises StoreError when Redis cannot be reached."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._leases = store.key("leases")
        self._queued = store.key("queued")

    async def renew(self, ids: Iterable[str]) -> None:
        """Say that these decisions are still being run here. One that ended meanwhile stays ended."""
        until = time() + self._settings.lease_s
        pairs = [part for id in ids for part in (until, id)]
        if pairs:
            await self._store.run(("ZADD", self._leases, "XX", "GT", *pairs))

    async def overdue(self, most: int) -> list[str]:
        """Up to `most` decisions whose lease ran out."""
        query = ("ZRANGE", self._leases, "-inf", time(), "BYSCORE", "LIMIT", 0, most)
        (ids,) = await self._store.run(query)
        return [id.decode() for id in ids]

    async def take_over(self, ids: Sequence[str]) -> list[str]:
        """Take over decisions whose lease ran out: those that this caller must see to.

        One whose message may still wait in its queue is not among them.
        """
        now, settings = time(), self._settings
        lengths = await self._store.run(*(("LLEN", self._store.key("celery", lane)) for lane in LANES))
        empty = dict(zip(LANES, (int(not length) for length in lengths), strict=True))
        until, waiting = now + settings.queued_lease_s, now + WAITING_LEASE_S
        replies = await self._store.run(
            *(
                (
                    "EVAL",
                    scripts.TAKE_OVER,
                    2,
                    self._store.key("decision", id),
                    self._leases,
                    id,
                    now,
                    until,
                    waiting,
                    empty[BATCH if id.startswith(BATCH_PREFIX) else INTERACTIVE],
                    self._store.prefix,
                    OVERTAKEN_S,
                )
                for id in ids
            )
        )
        return [id for id, reply in zip(ids, replies, strict=True) if reply == b"lost"]

    async def release(self, id: str) -> None:
        """Hand a decision back that is not run here any more: whoever comes first may take it."""
        await self._store.run(("HDEL", self._store.key("decision", id), "holder"))

    async def drop(self, id: str) -> None:
        """Forget the lease of a decision that is over or gone."""
        await self._store.run(("ZREM", self._leases, id), ("ZREM", self._queued, id))
