"""Metrics of an API process: what it counts, and the middleware that counts its requests."""

from __future__ import annotations

from functools import cache
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.waiting import Waiting
from workers.celery_app import LANES
from workers.metrics import DecisionMetrics, plan_seconds
from workers.store.backlog import Backlog

REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

NO_ROUTE = "none"
"""The route of a request that no route serves: its path could be anything."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"


class ApiMetrics:
    """Everything that an API process counts.

    `accepted` takes (door), `refusals` (code), `requests` (route, method, status), `request_seconds` (route).
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.decisions = DecisionMetrics(registry)
        self.plan_seconds = plan_seconds(registry)
        self.accepted = cache(
            Counter(
                "canvass_decisions_accepted",
                "Decisions that this process accepted; those of batches are not counted.",
                ("door",),
                registry=registry,
            ).labels
        )
        self.refusals = cache(
            Counter(
                "canvass_refusals",
                "Decisions that a door refused, or could not tell the answer of, by code.",
                ("code",),
                registry=registry,
            ).labels
        )
        self.requests = cache(
            Counter(
                "canvass_http_requests",
                "Requests answered, by route.",
                ("route", "method", "status"),
                registry=registry,
            ).labels
        )
        self.request_seconds = cache(
            Histogram(
                "canvass_http_request_seconds",
                "Time until a response began.",
                ("route",),
                buckets=REQUEST_BUCKETS,
                registry=registry,
            ).labels
        )
        self._waiters = Gauge("canvass_waiters", "Requests that wait for an outcome.", registry=registry)
        self._streams = Gauge("canvass_event_streams", "Streams of events that are open.", registry=registry)
        self._store_up = Gauge("canvass_store_up", "Whether the store answered just now.", registry=registry)
        self._backlog = {
            field: Gauge(f"canvass_{name}", says, registry=registry)
            for field, (name, says) in _BACKLOG.items()
        }
        self._messages = Gauge(
            "canvass_queue_messages", "Task messages that wait, by lane.", ("lane",), registry=registry
        )

    def watch(self, waiting: Waiting) -> None:
        """Tell how many wait here."""
        self._waiters.set_function(lambda: waiting.waiters)
        self._streams.set_function(lambda: waiting.streams)

    def see(self, backlog: Backlog | None) -> None:
        """Tell what waits in the store; None when it does not answer, and nobody knows."""
        self._store_up.set(backlog is not None)
        for field, gauge in self._backlog.items():
            gauge.set(float("nan") if backlog is None else getattr(backlog, field))
        for lane in LANES:
            self._messages.labels(lane).set(float("nan") if backlog is None else backlog.messages[lane])


_BACKLOG = {
    "queued": ("queued_decisions", "Interactive decisions that no worker has begun."),
    "queue_age_s": ("queue_age_seconds", "How long the oldest of them has waited."),
    "open": ("open_decisions", "Decisions that have not ended, those of batches too."),
    "batches": ("open_batches", "Batches that have not ended."),
    "deliveries": ("pending_webhooks", "Webhooks that are to be attempted, now or later."),
}


class CountRequests:
    """ASGI middleware: counts each request when its response begins, under its route's template."""

    def __init__(self, app: ASGIApp, metrics: ApiMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on as it is."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, counted = perf_counter(), False

        async def counting(message: Message) -> None:
            nonlocal counted
            if message["type"] == "http.response.start":
                counted = True
                self._count(scope, message["status"], perf_counter() - begun)
            await send(message)

        try:
            await self._app(scope, receive, counting)
        except Exception:
            if not counted:
                self._count(scope, 500, perf_counter() - begun)
            raise

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", NO_ROUTE)
        method = scope["method"] if scope["method"] in METHODS else OTHER
        self._metrics.requests(route, method, str(status)).inc()
        self._metrics.request_seconds(route).observe(seconds)
