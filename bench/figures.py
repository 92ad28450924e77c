"""The figures of DESIGN.md's table, each measured in one run of its own stack."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.load import Load, Target, decision_body, one_after_another, side_by_side
from bench.processes import cpu_seconds, floor_server
from client.stack import Stack
from engine.gguf_model import default_model
from engine.tokenizer import ensure_folder
from planner.dialects.systemone import parse
from planner.plan import make_plan
from planner.waves import first_wave
from workers.tokenizers import load_vocabulary
from workers.vllm import read_body

BUSY, LIGHT = 64, 8
"""Clients of a busy and of a light system."""

LOAD_S = 8.0
WARM_UP_S = 3.0
ROUNDS = 300
WIDE_READS = 64
WIDE_ROUNDS = 40
DISTINCT = 4000
"""States in a load, so that caches of prompts (the engine keeps some) see new ones as in real life."""

CONSTANT_50_MS = ("--latency", "50,0,1000")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure. `target` is the bound it should keep, None where it is only told."""

    name: str
    value: float
    target: float | None
    at_most: bool
    what: str

    @property
    def met(self) -> bool:
        """Whether the figure keeps its target."""
        if self.target is None:
            return True
        return self.value <= self.target if self.at_most else self.value >= self.target


def added_latency() -> list[Figure]:
    """An idle one-read decision against one raw engine call, taken in turn."""
    with _stack() as stack:
        targets = [_decision(stack, 1), _raw_read(stack)]
        one_after_another(targets, ROUNDS // 4)
        decision, raw = one_after_another(targets, ROUNDS)
    added = decision.median_ms - raw.median_ms
    what = f"decision {decision.median_ms:.2f} ms, raw engine call {raw.median_ms:.2f} ms, medians"
    return [Figure("added_latency_ms_p50", added, 5.0, True, what)]


def wide_decision() -> list[Figure]:
    """A decision of 64 reads against one of one read, on an engine with a constant 50 ms read."""
    with _stack(*CONSTANT_50_MS) as stack:
        targets = [_decision(stack, WIDE_READS), _decision(stack, 1)]
        one_after_another(targets, 5)
        wide, one = one_after_another(targets, WIDE_ROUNDS)
    what = f"{WIDE_READS} reads {wide.median_ms:.1f} ms, one read {one.median_ms:.1f} ms, medians"
    return [Figure("wide_over_one_read", wide.median_ms / one.median_ms, 1.4, True, what)]


def throughput() -> list[Figure]:
    """One-read decisions at 64 and at 8 clients: their rate, and their CPU over the floor's.

    The floor is one raw engine call plus one FastAPI request that does nothing else, as one program
    (bench/floor.py) under the same load; its CPU is counted with the engine's. Of a decision the CPU
    of API, worker and Redis is counted. The load generator's own is counted nowhere.
    """
    with _stack() as stack:
        decision, raw = _decision(stack, 1), _raw_read(stack)
        ours = [child.pid for child in (*stack.apis, *stack.workers, stack.redis) if child and child.pid]
        engine = [child.pid for child in stack.engines if child.pid]
        side_by_side(decision, BUSY, WARM_UP_S)
        light = side_by_side(decision, LIGHT, LOAD_S)
        busy, busy_cpu = _with_cpu(ours, lambda: side_by_side(decision, BUSY, LOAD_S))
        with floor_server(raw.url) as (url, pid):
            floor_load = Target(url, raw.bodies)
            side_by_side(floor_load, BUSY, WARM_UP_S / 2)
            _, floor_cpu = _with_cpu([pid, *engine], lambda: side_by_side(floor_load, BUSY, LOAD_S))
    told = f"{1000 * busy_cpu:.2f} ms CPU a decision, {1000 * floor_cpu:.2f} ms the floor"
    rates = f"{busy.per_s:.0f}/s at {BUSY} clients, {light.per_s:.0f}/s at {LIGHT}"
    return [
        Figure("cpu_over_floor", busy_cpu / floor_cpu, 2.0, True, told),
        Figure("busy_over_light", busy.per_s / light.per_s, 1.8, False, rates),
        Figure("decisions_per_s", busy.per_s, None, False, f"at {BUSY} clients on this machine"),
    ]


MEASUREMENTS: tuple[Callable[[], list[Figure]], ...] = (added_latency, wide_decision, throughput)


@contextmanager
def _stack(*engine_args: str) -> Iterator[Stack]:
    """A stack on the script engine, which knows one rule: everything is probably true."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"rules": [{"phrase": "true", "labels": {"yes": 0.9}}]}))
        with Stack(engines=f"script:{script}", engine_args=engine_args) as stack:
            yield stack


def _decision(stack: Stack, questions: int) -> Target:
    return Target(
        f"{stack.url}/v1/systemone", [decision_body(questions, number) for number in range(DISTINCT)]
    )


def _raw_read(stack: Stack) -> Target:
    """The very requests that a worker sends for one-read decisions, straight to the engine."""
    vocabulary = load_vocabulary(str(ensure_folder(default_model())), canvas=64, context=None)
    bodies: list[bytes] = []
    for number in range(DISTINCT):
        decision = parse(json.loads(decision_body(1, number)))
        read = first_wave(make_plan(decision, vocabulary)).reads[0]
        bodies.append(read_body(read, stack.models[0], vocabulary.pad, read.canvas.width))
    return Target(f"{stack.engine_urls[0]}/v1/completions", bodies)


def _with_cpu(pids: list[int], run: Callable[[], Load]) -> tuple[Load, float]:
    """A load, and the CPU seconds that the processes spent per request of it."""
    before = cpu_seconds(pids)
    load = run()
    return load, (cpu_seconds(pids) - before) / len(load.latencies_ms)
