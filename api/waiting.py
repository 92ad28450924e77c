"""Waiting: one subscriber per process; everyone here who waits for a decision hears of it at once.

Workers publish a finished decision whole on the channels of the processes in which someone waits for it,
and a word at every step when someone wants to see those. A message can be missed while the connection
is down, so once a second the store is asked as well.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from redis.asyncio import Redis

from workers.store.decisions import Decisions
from workers.store.listening import listen
from workers.store.outcome import Outcome, read_message

LOOK_EVERY_S = 1.0


class Waiting:
    """Who waits in this process, and for which decision. `channel` is where this process hears of them."""

    def __init__(self, redis: Redis, decisions: Decisions, channel: str) -> None:
        self.channel = channel
        self._redis = redis
        self._decisions = decisions
        self._futures: defaultdict[str, set[asyncio.Future[Outcome]]] = defaultdict(set)
        self._steps: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._asked: list[str] = []

    @property
    def waiters(self) -> int:
        """Requests that wait for an outcome here."""
        return sum(map(len, self._futures.values()))

    @property
    def streams(self) -> int:
        """Streams of events that are open here."""
        return sum(map(len, self._steps.values()))

    @contextmanager
    def expecting(self, id: str) -> Iterator[asyncio.Future[Outcome]]:
        """A future of a decision's outcome. To be entered before it is published: none is missed then."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._futures[id].add(future)
        try:
            yield future
        finally:
            _forget(self._futures, id, future)

    @contextmanager
    def watching(self, id: str) -> Iterator[asyncio.Event]:
        """An event that is set at each step of a decision that was heard of; whoever waits clears it."""
        event = asyncio.Event()
        self._steps[id].add(event)
        try:
            yield event
        finally:
            _forget(self._steps, id, event)

    async def listen(self) -> None:
        """Take in what is told until the connection is lost. Raises redis-py's errors then."""
        await listen(self._redis, self.channel, lambda message: self._heard(*read_message(message)))

    async def look(self) -> None:
        """Ask the store about decisions whose message may have been missed. Raises StoreError."""
        due, self._asked = [id for id in self._asked if id in self._futures], list(self._futures)
        outcomes = await self._decisions.outcomes(due) if due else {}
        for id, outcome in outcomes.items():
            if outcome is not None:
                self._heard(id, outcome)

    def _heard(self, id: str, outcome: Outcome) -> None:
        for event in self._steps.get(id, ()):
            event.set()
        if outcome.status == "open":
            return
        for future in self._futures.get(id, ()):
            if not future.done():
                future.set_result(outcome)


T = TypeVar("T")


def _forget(waiters: defaultdict[str, set[T]], id: str, waiter: T) -> None:
    waiters[id].discard(waiter)
    if not waiters[id]:
        del waiters[id]
