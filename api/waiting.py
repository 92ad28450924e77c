"""Waiting: one subscriber per process, one future per decision that someone waits for.

Workers publish a finished decision whole on the channel of the process that accepted it. A message
can be missed while the connection is down, so once a second the store is asked as well.
"""

from __future__ import annotations

import asyncio

from redis.asyncio import Redis

from workers.store import Outcome, Store, read_message

LOOK_EVERY_S = 1.0
RECONNECT_PAUSE_S = 0.2


class Waiting:
    """The decisions that this process waits for. `channel` is where their answers come in."""

    def __init__(self, redis: Redis, store: Store, channel: str) -> None:
        self.channel = channel
        self._redis = redis
        self._store = store
        self._futures: dict[str, asyncio.Future[Outcome]] = {}
        self._asked: list[str] = []

    def expect(self, id: str) -> asyncio.Future[Outcome]:
        """The future of a decision's outcome. To be called before it is published: none is missed then."""
        return self._futures.setdefault(id, asyncio.get_running_loop().create_future())

    def forget(self, id: str) -> None:
        """Wait no longer."""
        self._futures.pop(id, None)

    async def listen(self) -> None:
        """Take in answers until the connection is lost. Raises redis-py's errors then."""
        async with self._redis.pubsub(ignore_subscribe_messages=True) as subscriber:
            await subscriber.subscribe(self.channel)
            while True:
                message = await subscriber.get_message(timeout=5)
                if message is not None:
                    self._settle(*read_message(message["data"]))

    async def look(self) -> None:
        """Ask the store about decisions whose message may have been missed. Raises StoreError."""
        due, self._asked = [id for id in self._asked if id in self._futures], list(self._futures)
        outcomes = await self._store.outcomes(due) if due else {}
        for id, outcome in outcomes.items():
            if outcome is not None:
                self._settle(id, outcome)

    def _settle(self, id: str, outcome: Outcome) -> None:
        future = self._futures.get(id)
        if future is not None and not future.done():
            future.set_result(outcome)
