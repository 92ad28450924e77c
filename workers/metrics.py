"""Metrics: what a worker counts, in a registry of its own.

Whoever counts is handed the object it counts with; nothing is global. Metrics with labels are kept as cached
functions from label values to the one child, because a look-up costs more than the counting. What can be
worked out when somebody asks is not counted at all (workers/pool/gauges.py).
"""

from __future__ import annotations

from functools import cache

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

# The time at which each counter was made would double what is told, and nobody asks for it.
disable_created_metrics()  # type: ignore[no-untyped-call]

DECISION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)
"""Seconds; the last is the default deadline."""

READ_BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

PLAN_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)


class DecisionMetrics:
    """How decisions end. Counted by whoever ends one: a worker, or an API that finds one late or cancels it.

    `ended` takes (status, door, lane); `seconds` takes (phase, lane), the phases being `queued` (until a
    worker began), `running` (from then on) and `total`.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.ended = cache(
            Counter(
                "canvass_decisions_ended",
                "Decisions that this process ended.",
                ("status", "door", "lane"),
                registry=registry,
            ).labels
        )
        self.seconds = cache(
            Histogram(
                "canvass_decision_seconds",
                "Time of ended decisions: queued, running, total.",
                ("phase", "lane"),
                buckets=DECISION_BUCKETS,
                registry=registry,
            ).labels
        )

    def end(self, status: str, door: str, lane: str, created: float, started: float, now: float) -> None:
        """Count a decision that ended. Times are in seconds since 1970; `started` is 0 for one that never
        was.
        """
        self.ended(status, door, lane).inc()
        if started:
            self.seconds("queued", lane).observe(max(0.0, started - created))
            self.seconds("running", lane).observe(max(0.0, now - started))
        self.seconds("total", lane).observe(max(0.0, now - created))


class ReadMetrics:
    """Requests for reads. `requests` takes (engine, outcome), the others that have labels take (engine).

    Outcomes: `ok`; `busy`, `unreachable`, `timed_out`, `broken`, `refused` (workers/pool/vllm.py); `ejected`
    with an engine that stalled; `not_sent` to one that went out; `dropped`, because another engine was sooner
    or nobody wants it any more.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        by_engine = ("engine",)
        self.requests = cache(
            Counter(
                "canvass_reads",
                "Requests for reads, by engine and by what came of them.",
                ("engine", "outcome"),
                registry=registry,
            ).labels
        )
        self.seconds = cache(
            Histogram(
                "canvass_read_seconds",
                "Time of requests that gave a read.",
                by_engine,
                buckets=READ_BUCKETS,
                registry=registry,
            ).labels
        )
        self.prompt_tokens = cache(
            Counter(
                "canvass_prompt_tokens",
                "Prompt tokens of reads that came back.",
                by_engine,
                registry=registry,
            ).labels
        )
        self.cached_tokens = cache(
            Counter(
                "canvass_cached_tokens",
                "Those of them that the engine had in its prefix cache.",
                by_engine,
                registry=registry,
            ).labels
        )
        self.retries = Counter(
            "canvass_read_retries", "Requests for a read of which one failed before.", registry=registry
        )
        self.hedges_sent = Counter(
            "canvass_hedges_sent", "Slow reads that a second engine was asked for.", registry=registry
        )
        self.hedges_won = Counter(
            "canvass_hedges_won", "Those of them that the second engine gave.", registry=registry
        )

    def ok(self, engine: str, seconds: float, prompt_tokens: int, cached_tokens: int) -> None:
        """Count a read that came back."""
        self.requests(engine, "ok").inc()
        self.seconds(engine).observe(seconds)
        self.prompt_tokens(engine).inc(prompt_tokens)
        self.cached_tokens(engine).inc(cached_tokens)


class WorkerMetrics:
    """Everything that a worker process counts.

    `attempts` takes (state): that in which an attempt of a webhook left its delivery.
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.decisions = DecisionMetrics(registry)
        self.reads = ReadMetrics(registry)
        self.plan_seconds = plan_seconds(registry)
        self.takeovers = Counter(
            "canvass_takeovers",
            "Decisions that lost their runner and were published again.",
            registry=registry,
        )
        self.hand_backs = Counter(
            "canvass_hand_backs", "Decisions handed back by a worker that had to go.", registry=registry
        )
        self.attempts = cache(
            Counter(
                "canvass_webhook_attempts",
                "Attempts of webhooks, by the state that they left the delivery in.",
                ("state",),
                registry=registry,
            ).labels
        )


def plan_seconds(registry: CollectorRegistry) -> Histogram:
    """The time of planning, in API (the first wave) and worker (those after it) alike."""
    return Histogram("canvass_plan_seconds", "Time to plan a wave.", buckets=PLAN_BUCKETS, registry=registry)
