"""The runtime of a worker process: one event loop in a thread, and everything that lives on it."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
import uvloop
from celery import Celery
from redis.asyncio import Redis

from workers.background import keep_doing
from workers.celery_app import BATCH
from workers.dispatch import Dispatcher
from workers.feeder import LOOK_EVERY_S as FEED_EVERY_S
from workers.feeder import Feeder
from workers.hang_guard import guard
from workers.metrics import WorkerMetrics
from workers.metrics_port import TRY_AGAIN_S, tell_metrics
from workers.pool.canary import Canary
from workers.pool.gauges import SCRAPE_EVERY_S, PoolGauges
from workers.pool.pool import Pool
from workers.pool.reading import Reader
from workers.pool.vllm import VllmClient
from workers.presence import Presence
from workers.routing import POLICIES
from workers.runner import Runner
from workers.settings import Settings
from workers.store.audits import Audits
from workers.store.batches import Batches
from workers.store.decisions import Decisions
from workers.store.deliveries import Deliveries
from workers.store.engines import Engines
from workers.store.images import Images
from workers.store.keys import Keys
from workers.store.leases import Leases
from workers.store.listening import RECONNECT_PAUSE_S, listen
from workers.store.store import Store, connect
from workers.tokenizers import load_vocabulary, settle_memory
from workers.tracing import Tracer, make_tracer
from workers.watchdog import LOOK_EVERY_S, Watchdog
from workers.webhooks.courier import LOOK_EVERY_S as LOOK_AT_DELIVERIES_EVERY_S
from workers.webhooks.courier import Courier

T = TypeVar("T")

FOLLOW_EVERY_S = 1.0
"""Seconds between looks at what was said about engines: workers agree within two."""

KEEPALIVE_S = 4.0
"""Seconds that an idle connection to an engine is kept: uvicorn, which serves vLLM, closes its end after
5, and a request that meets the closing is lost."""


class EventLoopThread:
    """An event loop in a thread of its own, for Celery's pool threads to hand coroutines to."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="event-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for it in this thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def stop(self) -> None:
        """End the loop once what it runs now has yielded."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


@dataclass(slots=True)
class Runtime:
    """What a worker process is made of. Built by `start`, ended by `stop`."""

    thread: EventLoopThread
    runner: Runner
    courier: Courier
    dispatcher: Dispatcher
    store: Store
    redis: Redis
    session: aiohttp.ClientSession
    tracer: Tracer
    background: list[asyncio.Task[None]]

    @staticmethod
    def start(app: Celery, settings: Settings) -> Runtime:
        """Load the tokenizer, open the connections, and begin to probe the engines."""
        vocabulary = load_vocabulary(settings.tokenizer, canvas=settings.canvas, context=settings.context)
        settle_memory()
        thread = EventLoopThread()
        guard(thread.loop, settings.hang_limit_s)

        async def build() -> Runtime:
            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S),
                timeout=aiohttp.ClientTimeout(total=settings.read_timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
            redis = connect(settings)
            store = Store(redis, settings)
            metrics, tracer = WorkerMetrics(), make_tracer("canvass-worker")
            client = VllmClient(session, vocabulary.pad)
            canary = Canary(
                client, vocabulary, constrained=settings.constrained, samples=settings.engine_samples
            )
            pool = Pool(
                settings.engine_urls,
                client,
                canary,
                engine_in_flight=settings.engine_in_flight,
                said=settings.engine_capabilities,
            )
            reader = Reader(
                pool,
                client,
                POLICIES[settings.routing](),
                read_timeout_s=settings.read_timeout_s,
                patience_s=settings.pool_patience_s,
                constrained=settings.constrained,
                images=Images(store, settings),
                metrics=metrics.reads,
                tracer=tracer,
            )
            dispatcher = Dispatcher(app, settings)
            decisions, leases = Decisions(store, settings, metrics.decisions), Leases(store, settings)
            audits = Audits(store, settings)
            runner = Runner(
                decisions, audits, leases, reader, dispatcher, vocabulary, settings, metrics, tracer
            )
            presence = Presence(store, f"{socket.gethostname()}-{os.getpid()}", pool)
            engines = Engines(store)
            watchdog = Watchdog(decisions, leases, dispatcher, metrics)
            courier = Courier(Deliveries(store, settings), Keys(store), dispatcher, settings, metrics)
            gauges = PoolGauges(lambda: pool.engines, client, thread.loop.time, metrics.registry)

            async def follow_engines() -> None:
                said = await engines.all()
                pool.adopt(
                    {url: one.state for url, one in said.items()},
                    {url: dict(one.capabilities) for url, one in said.items()},
                )

            async def hear_cancels() -> None:
                await listen(redis, decisions.cancels, lambda id: runner.cancel(id.decode()))

            async def tell() -> None:
                await tell_metrics(metrics.registry, settings.metrics_host, settings.metrics_port)

            feeder = Feeder(
                Batches(store, settings), decisions, pool, dispatcher, vocabulary, settings, tracer
            )
            telling = ((tell, TRY_AGAIN_S), (gauges.look, SCRAPE_EVERY_S))
            feeding = ((feeder.look, FEED_EVERY_S), (feeder.renew, settings.lease_s / 4))
            background = [
                asyncio.create_task(keep_doing(work, every_s))
                for work, every_s in (
                    (follow_engines, FOLLOW_EVERY_S),
                    (pool.look, settings.probe_interval_s),
                    (presence.announce, 0),
                    (runner.renew, settings.lease_s / 4),
                    (watchdog.look, LOOK_EVERY_S),
                    (courier.look, LOOK_AT_DELIVERIES_EVERY_S),
                    (hear_cancels, RECONNECT_PAUSE_S),
                    *(feeding if BATCH in settings.lanes else ()),
                    *(telling if settings.metrics_port else ()),
                )
            ]
            return Runtime(thread, runner, courier, dispatcher, store, redis, session, tracer, background)

        return thread.call(build())

    def leave(self, drain_s: float) -> None:
        """Give what runs here some seconds to end; what has not ended then goes on elsewhere."""

        def hand_back_later() -> None:
            self.thread.loop.call_later(drain_s, self.runner.hand_back)

        self.thread.loop.call_soon_threadsafe(hand_back_later)

    def stop(self) -> None:
        """Close what `start` opened."""

        async def close() -> None:
            for task in self.background:
                task.cancel()
            await asyncio.gather(*self.background, return_exceptions=True)
            await self.courier.close()
            await self.session.close()
            await self.store.close()
            await self.redis.aclose()

        self.thread.call(close())
        self.tracer.close()
        self.dispatcher.close()
        self.thread.stop()
