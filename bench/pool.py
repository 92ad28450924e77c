"""The pool's figures: what faulty engines cost, and what routing by prefix gains on long states."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean, quantiles
from typing import Any
from urllib.request import urlopen

import orjson

from bench.load import Load, Target, decision_body, prose, side_by_side
from client.stack import Stack

ENGINES = 4
CLIENTS = 32

STEP_OF_30_MS = ("--latency", "30,1,32")
"""An engine that is bound by itself and not by this machine: 30 ms and 1 ms per sequence."""

FAULTY_S = 10.0
HURT_AFTER_S = 0.5

STATES = 96
STATE_CHARACTERS = 2_400
CACHED_STATES = 40
"""States that one engine's cache holds: two in five of them."""

BLOCK_TOKENS = 16
ROUTED_CLIENTS = 96
"""Enough that an engine has its fair share of them, give or take little."""

ROUTED_S = 14.0
ROUTED_WARM_UP_S = 18.0


@dataclass(frozen=True, slots=True)
class Faulty:
    """The 95th percentile of latencies in ms with four good engines, and while one of them hangs and one
    refuses; how many decisions there were then, none of which failed.
    """

    good_ms: float
    faulty_ms: float
    decisions: int


def faulty_pool(stack: Stack) -> Faulty:
    """Load on four good engines, then on the same ones while the third hangs and the fourth is gone.

    Both are hurt in the middle of the load, so what it takes to find out is in the figure.
    """
    target = Target(f"{stack.url}/v1/systemone", [decision_body(1, number) for number in range(4000)])
    side_by_side(target, CLIENTS, 3)
    good = side_by_side(target, CLIENTS, FAULTY_S)
    hanging, refusing = stack.engines[2], stack.engines[3]
    assert hanging.pid is not None
    pid = hanging.pid

    def hurt() -> None:
        os.kill(pid, signal.SIGSTOP)
        refusing.kill()

    threading.Timer(HURT_AFTER_S, hurt).start()
    try:
        faulty = side_by_side(target, CLIENTS, FAULTY_S)
    finally:
        os.kill(pid, signal.SIGCONT)
    return Faulty(_p95(good), _p95(faulty), len(faulty.latencies_ms))


@dataclass(frozen=True, slots=True)
class Routed:
    """A policy's run: its load, the share of prompt tokens that caches knew, the busiest engine's reads over
    the mean.
    """

    load: Load
    hit_share: float
    spread: float

    def __str__(self) -> str:
        return (
            f"{self.load.per_s:.1f}/s, p50 {self.load.median_ms:.0f} ms, p95 {_p95(self.load):.0f} ms, "
            f"hit share {self.hit_share:.2f}, busiest over mean {self.spread:.2f}"
        )


def routed(stack: Stack) -> Routed:
    """Questions about long states, in random order, on engines whose caches hold two in five of them each."""
    target = Target(f"{stack.url}/v1/systemone", _long_bodies())
    side_by_side(target, ROUTED_CLIENTS, ROUTED_WARM_UP_S)
    before = _counts(stack)
    load = side_by_side(target, ROUTED_CLIENTS, ROUTED_S)
    after = _counts(stack)
    reads = [after[url]["reads"] - before[url]["reads"] for url in after]
    queries, hits = (
        sum(after[url][name] - before[url][name] for url in after) for name in ("queries", "hits")
    )
    return Routed(load, hits / queries, max(reads) / mean(reads))


def cache_blocks(tokens_per_state: int) -> int:
    """Blocks of an engine's cache that hold `CACHED_STATES`."""
    return CACHED_STATES * (tokens_per_state // BLOCK_TOKENS + 4)


def long_state(number: int) -> str:
    """A state of some thousand tokens."""
    return prose(STATE_CHARACTERS, seed=number)


def _long_bodies() -> list[bytes]:
    chance = random.Random(5)
    states = [long_state(number) for number in range(STATES)]
    return [
        orjson.dumps(
            {
                "model": "jev-latest",
                "state": chance.choice(states),
                "questions": {"q": {"type": "noul", "instructions": f"Is statement {number} true?"}},
            }
        )
        for number in range(4000)
    ]


def _counts(stack: Stack) -> dict[str, dict[str, float]]:
    """Per engine: its reads as the worker counts them, its cache's queries and hits in tokens."""
    with urlopen(f"{stack.url}/v1/engines", timeout=5) as answer:
        seen: list[Mapping[str, Any]] = orjson.loads(answer.read())["data"]
    return {engine["url"]: {"reads": engine["reads"], **_cache(engine["url"])} for engine in seen}


def _cache(url: str) -> dict[str, float]:
    with urlopen(f"{url}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    return {
        name: sum(map(float, re.findall(rf"^vllm:prefix_cache_{name}_total(?:{{.*}})? (\S+)$", text, re.M)))
        for name in ("queries", "hits")
    }


def _p95(load: Load) -> float:
    return quantiles(load.latencies_ms, n=20)[-1]
