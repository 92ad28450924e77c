"""Dispatch: the reads of a wave become Celery tasks.

A wave that fits one shard is one task, and tasks that become ready together share a message (group
commit). A larger wave is a chord of shards whose body advances the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog
from celery import Celery, chord
from kombu import pools
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from planner.reads import AnyRead, Wave
from workers.celery_app import ADVANCE, DELIVER, INTERACTIVE, LANES, RUN, SHARD
from workers.group_commit import GroupCommit
from workers.settings import Settings

log = structlog.get_logger()


class PublishError(Exception):
    """The queue cannot be reached. What was to be published is stored, and will be published later."""


Ready = tuple[str, int]
"""A wave of one shard that can run: decision id and wave number."""


class Dispatcher:
    """Publishes waves, each in its lane.

    Celery's client blocks, so one thread of its own does it, a message at a time.
    """

    def __init__(self, app: Celery, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="publish")
        self._ready: dict[str, GroupCommit[Ready, None]] = {
            lane: GroupCommit(
                partial(self._publish_ready, lane), settings.publish_batch, settings.publish_gap_ms / 1000
            )
            for lane in LANES
        }

    async def publish(self, id: str, number: int, wave: Wave, lane: str) -> None:
        """Publish wave `number` of a decision. Raises PublishError when the queue cannot be reached."""
        shards = shard_count(len(wave.all), self._settings)
        if shards == 1:
            await self._ready[lane].submit((id, number))
        else:
            await self._in_thread(self._send_chord, lane, id, number, shards)

    async def publish_again(self, id: str, number: int, lane: str) -> None:
        """Publish what is missing of a wave, as one task. Raises PublishError."""
        await self._ready[lane].submit((id, number))

    async def publish_deliveries(self, names: Sequence[str]) -> None:
        """Publish webhooks that are due, as one task. Raises PublishError."""
        await self._in_thread(self._send_deliveries, names)

    def close(self) -> None:
        """Wait for the message under way, and end the thread."""
        self._thread.shutdown()

    async def _publish_ready(self, lane: str, batch: list[Ready]) -> list[None]:
        await self._in_thread(self._send_ready, lane, batch)
        return [None] * len(batch)

    async def _in_thread(self, function: Callable[..., None], *args: object) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._sent, function, *args)
        except Exception as error:
            # What is stored is published again: no fault of a queue's client may end a decision.
            raise PublishError(f"the queue does not answer: {error!r}") from error

    def _sent(self, function: Callable[..., None], *args: object) -> None:
        try:
            function(*args)
        except (KombuError, RedisError, OSError):
            raise
        except Exception as error:
            # kombu raises whatever it comes upon where a channel was closed under it (an AttributeError of
            # the connection that is gone), and would raise it again: the next message makes a new one.
            log.warning("connections to the queue are made anew", reason=repr(error))
            pools.reset()  # type: ignore[no-untyped-call]
            self._app._pool = self._app.amqp._producer_pool = None
            raise

    def _send_ready(self, lane: str, batch: list[Ready]) -> None:
        self._app.send_task(RUN, args=[batch], queue=lane, ignore_result=True)

    def _send_deliveries(self, names: Sequence[str]) -> None:
        self._app.send_task(DELIVER, args=[names], queue=INTERACTIVE, ignore_result=True)

    def _send_chord(self, lane: str, id: str, number: int, shards: int) -> None:
        header = [
            self._app.signature(SHARD, args=[id, number, shard, shards], queue=lane)
            for shard in range(shards)
        ]
        body = self._app.signature(ADVANCE, args=[id, number], queue=lane)
        chord(header, app=self._app)(body)


def shard_count(reads: int, settings: Settings) -> int:
    """How many shards a wave is cut into: as few as hold it, and never more than `max_shards`."""
    return min(settings.max_shards, max(1, -(-reads // settings.shard_reads)))


def shard_of(reads: Sequence[AnyRead], shard: int, shards: int) -> Sequence[AnyRead]:
    """The reads of one shard: every `shards`-th, so that each has its part of every group."""
    return reads[shard::shards]
