"""The figures of DESIGN.md's table, each measured in one run of its own stack."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time

from bench.batches import STATES, under_batch
from bench.load import Load, Target, decision_body, one_after_another, prose, side_by_side
from bench.pool import ENGINES, STEP_OF_30_MS, Routed, cache_blocks, faulty_pool, long_state, routed
from bench.processes import cpu_seconds, floor_server
from client.stack import Stack
from engine.gguf_model import default_model
from engine.tokenizer import ensure_folder
from planner.decision import Decision, Question
from planner.dialects.systemone import parse
from planner.plan import make_plan
from planner.vocabulary import Vocabulary
from planner.waves import first_wave
from workers.pool.vllm import Call, read_body
from workers.tokenizers import load_vocabulary

BUSY, LIGHT = 64, 8
"""Clients of a busy and of a light system."""

LOAD_S = 9.0
SLICES = 3
"""Parts of a load that alternate with parts of another, so that noise falls on both alike."""

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
    """A decision of 64 reads against one of one read, on an engine with a constant 50 ms read.

    Each is asked about one state again and again: the stand-in reads a prompt that it knows in constant
    time, as this figure wants it, and a new one in a time of its own.
    """
    with _stack(*CONSTANT_50_MS) as stack:
        targets = [_decision(stack, WIDE_READS, states=1), _decision(stack, 1, states=1)]
        one_after_another(targets, 10)
        wide, one = one_after_another(targets, WIDE_ROUNDS)
    what = f"{WIDE_READS} reads {wide.median_ms:.1f} ms, one read {one.median_ms:.1f} ms, medians"
    return [Figure("wide_over_one_read", wide.median_ms / one.median_ms, 1.4, True, what)]


def throughput() -> list[Figure]:
    """One-read decisions at 64 and at 8 clients: their rate, and their CPU over the floor's.

    The floor is one raw engine call plus one FastAPI request that does nothing else, as one program
    (bench/floor.py), one after another; its CPU is counted with the engine's. Of a decision the CPU of
    API, worker and Redis is counted. The load generator's own is counted nowhere. Under the load of 64
    clients calls share wake-ups and cost less each: `cpu_over_busy_floor` tells the ratio to that.
    """
    with _stack() as stack:
        decision, raw = _decision(stack, 1), _raw_read(stack)
        ours = [child.pid for child in (*stack.apis, *stack.workers, stack.redis) if child and child.pid]
        engine = [child.pid for child in stack.engines if child.pid]
        with floor_server(raw.url) as (url, pid):
            floor = Target(url, raw.bodies)
            side_by_side(decision, BUSY, WARM_UP_S)
            side_by_side(floor, BUSY, WARM_UP_S)
            light = side_by_side(decision, LIGHT, LOAD_S)
            busy: list[tuple[Load, float]] = []
            single: list[float] = []
            crowded: list[float] = []
            slice_s = LOAD_S / SLICES
            for _ in range(SLICES):
                busy.append(_with_cpu(ours, lambda: side_by_side(decision, BUSY, slice_s)))
                single.append(_with_cpu([pid, *engine], lambda: side_by_side(floor, 1, slice_s))[1])
                crowded.append(_with_cpu([pid, *engine], lambda: side_by_side(floor, BUSY, slice_s))[1])
    cpu = median(cost for _, cost in busy)
    per_s = median(load.per_s for load, _ in busy)
    rates = f"{per_s:.0f}/s at {BUSY} clients, {light.per_s:.0f}/s at {LIGHT}"
    return [
        _ratio("cpu_over_floor", cpu, median(single), 2.0),
        _ratio("cpu_over_busy_floor", cpu, median(crowded), None),
        Figure("busy_over_light", per_s / light.per_s, 1.8, False, rates),
        Figure("decisions_per_s", per_s, None, False, f"at {BUSY} clients on this machine"),
    ]


def planning() -> list[Figure]:
    """Planning twenty span questions about a long text, on one core, from the decision to its first wave."""
    vocabulary = load_vocabulary(str(ensure_folder(default_model())), canvas=64, context=None)
    short, long = (_planned_in_s(vocabulary, characters) for characters in (100_000, 1_000_000))
    what = f"20 span questions: 100,000 characters {short:.2f} s, 1,000,000 {long:.2f} s"
    return [
        Figure("plan_100k_s", short, 2.0, True, what),
        Figure("plan_1m_over_100k", long / short, 12.0, True, what),
    ]


def interactive_under_batch() -> list[Figure]:
    """One client's decisions beside a batch of 20,000 states, against those of the idle system.

    The batch has a worker of its own, at low priority. Engine, API, Redis and the client's load generator
    share the same cores with it.
    """
    with _stack(batch_workers=1) as stack:
        seen = under_batch(stack)
    what = f"median {seen.beside_ms:.2f} ms, idle {seen.idle_ms:.2f} ms"
    memory = "; ".join(
        f"{name} {', '.join(f'{mib:.0f}' for mib in sizes)} MiB" for name, sizes in seen.memory_mib.items()
    )
    growth = max(sizes[-1] / sizes[1] for sizes in seen.memory_mib.values())
    return [
        Figure("interactive_under_batch", seen.beside_ms / seen.idle_ms, 1.5, True, what),
        Figure(
            "batch_per_s", seen.alone_per_s, None, False, f"{STATES} states; beside {seen.beside_per_s:.0f}/s"
        ),
        Figure("batch_memory_growth", growth, 1.1, True, f"start, middle, end: {memory}"),
    ]


def faulty_engines() -> list[Figure]:
    """Four engines of which one hangs and one refuses, against four good ones."""
    with _stack(*STEP_OF_30_MS, engines=ENGINES) as stack:
        seen = faulty_pool(stack)
    what = (
        f"p95 {seen.faulty_ms:.0f} ms with one of four engines hanging and one refusing, "
        f"{seen.good_ms:.0f} ms with four good ones; {seen.decisions} decisions, none failed"
    )
    return [Figure("faulty_pool_p95_ratio", seen.faulty_ms / seen.good_ms, 2.5, True, what)]


def routing() -> list[Figure]:
    """The policies on long states, with prefix caches too small to hold all of them."""
    vocabulary = load_vocabulary(str(ensure_folder(default_model())), canvas=64, context=None)
    blocks = cache_blocks(len(vocabulary.tokenizer.encode(long_state(0))))
    found: dict[str, Routed] = {}
    for policy in ("prefix", "least-loaded", "round-robin"):
        arguments = ("--profile", "gb10", "--cache-blocks", str(blocks))
        env = {"CANVASS_ROUTING": policy, "CANVASS_SYNC_LIMIT_S": "60"}
        with _stack(*arguments, engines=ENGINES, env=env) as stack:
            found[policy] = routed(stack)
        print(f"  {policy:14} {found[policy]}", flush=True)
    prefix, in_turn = found["prefix"], found["round-robin"]
    rates = f"{prefix.load.per_s:.1f}/s to {in_turn.load.per_s:.1f}/s"
    busiest = "reads of the busiest engine over the mean"
    return [
        Figure("prefix_over_round_robin", prefix.load.per_s / in_turn.load.per_s, 1.8, False, rates),
        Figure("prefix_max_over_mean_load", prefix.spread, 1.3, True, busiest),
    ]


MEASUREMENTS: tuple[Callable[[], list[Figure]], ...] = (
    added_latency,
    wide_decision,
    throughput,
    planning,
    interactive_under_batch,
    faulty_engines,
    routing,
)


@contextmanager
def _stack(
    *engine_args: str, batch_workers: int = 0, engines: int = 1, env: Mapping[str, str] | None = None
) -> Iterator[Stack]:
    """A stack on the script engine, which knows one rule: everything is probably true."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"rules": [{"phrase": "true", "labels": {"yes": 0.9}}]}))
        with Stack(
            engines=f"script:{script}",
            engine_count=engines,
            engine_args=engine_args,
            batch_workers=batch_workers,
            env=env,
        ) as stack:
            yield stack


def _decision(stack: Stack, questions: int, states: int = DISTINCT) -> Target:
    return Target(f"{stack.url}/v1/systemone", [decision_body(questions, number) for number in range(states)])


def _raw_read(stack: Stack) -> Target:
    """The very requests that a worker sends for one-read decisions, straight to the engine."""
    vocabulary = load_vocabulary(str(ensure_folder(default_model())), canvas=64, context=None)
    bodies: list[bytes] = []
    for number in range(DISTINCT):
        decision = parse(json.loads(decision_body(1, number)))
        read = first_wave(make_plan(decision, vocabulary)).reads[0]
        bodies.append(read_body(read, Call(stack.models[0], read.canvas.width, 1), vocabulary.pad))
    return Target(f"{stack.engine_urls[0]}/v1/completions", bodies)


def _planned_in_s(vocabulary: Vocabulary, characters: int) -> float:
    """CPU seconds of planning; the median of three, each about another text."""
    seconds: list[float] = []
    for seed in range(3):
        questions = tuple(
            Question(f"q{number}", "span", f"What is value {number}?", ()) for number in range(20)
        )
        decision = Decision("bench", prose(characters, seed), questions)
        start = process_time()
        first_wave(make_plan(decision, vocabulary))
        seconds.append(process_time() - start)
    return median(seconds)


def _ratio(name: str, cpu_s: float, floor_s: float, target: float | None) -> Figure:
    what = f"CPU: {1000 * cpu_s:.2f} ms a decision, {1000 * floor_s:.2f} ms the floor"
    return Figure(name, cpu_s / floor_s, target, True, what)


def _with_cpu(pids: list[int], run: Callable[[], Load]) -> tuple[Load, float]:
    """A load, and the CPU seconds that the processes spent per request of it."""
    before = cpu_seconds(pids)
    load = run()
    return load, (cpu_seconds(pids) - before) / len(load.latencies_ms)
