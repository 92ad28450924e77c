"""The watchdog: in every worker, no leader. What lost its runner is published again.

Every open decision has a lease. It runs out when the worker that ran the decision died or hangs, when
a wave was stored but never published, or when its message was lost. Whoever sees that first takes the
lease over, in one atomic step, and publishes the current wave again; the planner knows what of it is
missing. A decision past its deadline is ended with a typed failure instead.
"""

from __future__ import annotations

import asyncio
from time import time

import structlog

from workers.dispatch import Dispatcher
from workers.metrics import WorkerMetrics
from workers.store.decisions import Decisions
from workers.store.leases import Leases
from workers.store.outcome import CANCELED, EXPIRED

LOOK_EVERY_S = 1.0
MOST = 1000
"""Decisions looked at at once, so that one worker does not take all of a large loss."""

log = structlog.get_logger()


class Watchdog:
    """Looks for leases that ran out."""

    def __init__(
        self, decisions: Decisions, leases: Leases, dispatcher: Dispatcher, metrics: WorkerMetrics
    ) -> None:
        self._metrics = metrics
        self._decisions = decisions
        self._leases = leases
        self._dispatcher = dispatcher

    async def look(self) -> None:
        """Take over what is overdue now. Raises StoreError or PublishError; the leases then run out again."""
        overdue = await self._leases.overdue(MOST)
        lost = await self._leases.take_over(overdue) if overdue else []
        await asyncio.gather(*(self._see_to(id) for id in lost))

    async def _see_to(self, id: str) -> None:
        snapshot = await self._decisions.load(id)
        if snapshot is None:
            await self._leases.drop(id)
        elif snapshot.deadline <= time():
            await self._decisions.finish(id, EXPIRED)
        elif snapshot.canceling:
            await self._decisions.finish(id, CANCELED)
        else:
            log.warning("decision taken over", decision=id, wave=snapshot.number)
            self._metrics.takeovers.inc()
            await self._dispatcher.publish_again(id, snapshot.number, snapshot.lane)
