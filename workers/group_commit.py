"""Group commit: while one commit is under way, what became ready waits and goes with the next.

An idle system commits at once; a busy one pays the price of a commit once for many items. Task
messages and store commands both travel this way. Where a commit costs its receiver more than its
sender (a task message does), a gap after each one lets more gather; what comes after the gap goes at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class GroupCommit(Generic[Item, Outcome]):
    """Gathers items and hands up to `limit` of them at a time to `commit`.

    `commit` returns one outcome per item, in order; an outcome that is an exception is raised to
    the one who submitted that item, and an exception that `commit` raises to all of its batch.
    `gap_s` is the least time in seconds between two commits. Belongs to one event loop.
    """

    def __init__(
        self,
        commit: Callable[[list[Item]], Awaitable[Sequence[Outcome | Exception]]],
        limit: int,
        gap_s: float = 0.0,
    ) -> None:
        self._commit = commit
        self._limit = limit
        self._gap_s = gap_s
        self._waiting: deque[tuple[Item, asyncio.Future[Outcome]]] = deque()
        self._committing: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Outcome:
        """The outcome of an item, once the commit that carried it is through."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._committing is None:
            self._committing = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        try:
            while self._waiting:
                count = min(self._limit, len(self._waiting))
                batch = [self._waiting.popleft() for _ in range(count)]
                _deliver(batch, await self._outcomes([item for item, _ in batch]))
                if self._gap_s:
                    await asyncio.sleep(self._gap_s)
        finally:
            self._committing = None

    async def _outcomes(self, items: list[Item]) -> Sequence[Outcome | Exception]:
        try:
            return await self._commit(items)
        except Exception as error:  # noqa: BLE001 - handed on to each of the batch, whatever it is
            return [error] * len(items)


def _deliver(
    batch: Sequence[tuple[Item, asyncio.Future[Outcome]]], outcomes: Sequence[Outcome | Exception]
) -> None:
    for (_, future), outcome in zip(batch, outcomes, strict=True):
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
