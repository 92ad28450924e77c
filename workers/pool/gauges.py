"""The pool's gauges: how the engines are, worked out when somebody asks.

What an engine says of its own prefix cache is asked now and then. It counts tokens, of every worker's reads,
so each worker tells the same; a query over several takes the largest.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from workers.pool.engine import Engine
from workers.pool.vllm import EngineError, VllmClient

SCRAPE_EVERY_S = 10.0
SCRAPE_WITHIN_S = 5.0

_CACHE = re.compile(
    r"^vllm:prefix_cache_(queries|hits)(?:_total)?(?:\{[^}]*\})? ([0-9.eE+]+)\s*$", re.MULTILINE
)
"""vLLM's names (0.11 to 0.32); with data parallelism there is a line for each of its engines."""

log = structlog.get_logger()


class PoolGauges(Collector):
    """The engines of one worker process as metrics.

    To be collected on its event loop, whose time is `clock`.
    """

    def __init__(
        self,
        engines: Callable[[], Sequence[Engine]],
        client: VllmClient,
        clock: Callable[[], float],
        registry: CollectorRegistry,
    ) -> None:
        self._engines = engines
        self._client = client
        self._clock = clock
        self._caches: dict[str, tuple[float, float]] = {}
        registry.register(self)

    async def look(self) -> None:
        """Ask the engines that are in about their prefix caches. One that does not say is left out."""
        engines = [engine.url for engine in self._engines() if engine.joined]
        found = await asyncio.gather(*(self._cache_of(url) for url in engines))
        self._caches = {url: cache for url, cache in zip(engines, found, strict=True) if cache is not None}

    def collect(self) -> Iterator[Metric]:
        """Every engine of the pool, one sample each."""
        engines, now = self._engines(), self._clock()
        yield _gauge("up", "Whether the engine is in.", ((engine.url, engine.joined) for engine in engines))
        yield _gauge(
            "draining",
            "Whether it takes no new reads.",
            ((engine.url, engine.draining) for engine in engines),
        )
        yield _gauge(
            "breaker_open",
            "Whether it failed and is left alone; otherwise, when it is out, a canary decides.",
            ((engine.url, not engine.joined and now < engine.breaker.until) for engine in engines),
        )
        yield _gauge(
            "in_flight",
            "This worker's reads at it, with those that wait for room.",
            ((engine.url, engine.in_flight) for engine in engines),
        )
        yield _counter(
            "outs", "How often it went out, for whatever reason.", ((e.url, e.outs) for e in engines)
        )
        caches = self._caches.items()
        yield _counter(
            "prefix_cache_queries",
            "Prompt tokens that it looked up in its prefix cache.",
            ((u, q) for u, (q, _) in caches),
        )
        yield _counter(
            "prefix_cache_hits",
            "Prompt tokens that it found in its prefix cache.",
            ((u, h) for u, (_, h) in caches),
        )

    async def _cache_of(self, url: str) -> tuple[float, float] | None:
        try:
            return cache_figures(await self._client.metrics(url, SCRAPE_WITHIN_S))
        except EngineError as error:
            log.debug("engine tells no metrics", engine=url, reason=str(error))
            return None


def cache_figures(text: str) -> tuple[float, float] | None:
    """The tokens that an engine looked up in its prefix cache and found there, if its metrics say so."""
    sums: dict[str, float] = {}
    for name, value in _CACHE.findall(text):
        sums[name] = sums.get(name, 0.0) + float(value)
    return (sums["queries"], sums["hits"]) if len(sums) == 2 else None


def _gauge(name: str, says: str, samples: Iterable[tuple[str, float]]) -> Metric:
    metric = GaugeMetricFamily(f"canvass_engine_{name}", says, labels=("engine",))
    for url, value in samples:
        metric.add_metric((url,), float(value))
    return metric


def _counter(name: str, says: str, samples: Iterable[tuple[str, float]]) -> Metric:
    metric = CounterMetricFamily(f"canvass_engine_{name}", says, labels=("engine",))
    for url, value in samples:
        metric.add_metric((url,), value)
    return metric
