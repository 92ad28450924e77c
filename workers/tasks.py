"""The Celery tasks. They carry ids, hand over to the event loop, and wait.

A task never raises for an expected failure: a chord with one failed header never runs its body. When
the store cannot be reached, the message goes back to its queue and is delivered again.
"""

from __future__ import annotations

import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from celery import Celery
from celery.exceptions import Reject
from celery.signals import setup_logging, worker_init, worker_shutdown, worker_shutting_down

from workers.celery_app import ADVANCE, DELIVER, RUN, SHARD, make_celery
from workers.dispatch import PublishError
from workers.runtime import Runtime
from workers.settings import Settings
from workers.store.store import StoreError

STORE_PAUSE_S = 0.5
"""Pause before a message goes back, so that a store that is away does not spin the queue."""

T = TypeVar("T")


def make_worker(settings: Settings) -> Celery:
    """The application of a worker process. Its runtime starts with the worker and ends with it."""
    app = make_celery(settings)
    running: list[Runtime] = []

    @setup_logging.connect(weak=False)
    def leave_logs_alone(**_: Any) -> None:
        """That somebody is here keeps Celery from setting up its own (workers/logs.py does)."""

    @worker_init.connect(weak=False)
    def start(**_: Any) -> None:
        running.append(Runtime.start(app, settings))

    @worker_shutting_down.connect(weak=False)
    def leave(**_: Any) -> None:
        for runtime in running:
            runtime.leave(settings.drain_s)

    @worker_shutdown.connect(weak=False)
    def stop(**_: Any) -> None:
        running.pop().stop()

    def call(work: Coroutine[Any, Any, T]) -> T:
        try:
            return running[0].thread.call(work)
        except (StoreError, PublishError) as error:
            time.sleep(STORE_PAUSE_S)
            raise Reject(str(error), requeue=True) from error

    @app.task(name=RUN)
    def run(batch: list[tuple[str, int]]) -> None:
        call(running[0].runner.run(batch))

    @app.task(name=SHARD, ignore_result=False)
    def shard(id: str, number: int, shard: int, shards: int) -> int:
        return call(running[0].runner.shard(id, number, shard, shards))

    @app.task(name=ADVANCE)
    def advance(_: list[int], id: str, number: int) -> None:
        call(running[0].runner.advance(id, number))

    @app.task(name=DELIVER)
    def deliver(names: list[str]) -> None:
        call(running[0].courier.take(names))

    return app
