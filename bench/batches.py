"""What a batch costs those who wait: one interactive client beside it, and the memory that it takes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import httpx2
import orjson

from bench.load import Target, decision_body, side_by_side
from bench.processes import rss_mib
from client.stack import Stack

STATES = 20_000
SLICE_S = 1.0
IDLE_SLICES, BESIDE_SLICES = 10, 20
WARM_UP_STATES = 500

TIMEOUT = httpx2.Timeout(60.0, read=300.0)


@dataclass(frozen=True, slots=True)
class UnderBatch:
    """One client's median latency in ms while idle and beside a batch, the batch's states per second beside
    that client and alone, and the memory of each process in MiB at the batch's start, middle and end.
    """

    idle_ms: float
    beside_ms: float
    beside_per_s: float
    alone_per_s: float
    memory_mib: Mapping[str, Sequence[float]]


def under_batch(stack: Stack) -> UnderBatch:
    """Measure one run. Raises RuntimeError when a line is missing, out of order, or no success.

    The client asks for the first part of the batch and then leaves it alone. The idle system is measured
    before and after, so that drift falls on both alike.
    """
    target = Target(f"{stack.url}/v1/systemone", [decision_body(1, number) for number in range(4000)])
    follow(stack, post_batch(stack, WARM_UP_STATES))
    side_by_side(target, 1, SLICE_S)
    idle = _slices(target, IDLE_SLICES // 2)
    watched = {"feeder": stack.workers[-1].pid, "api": stack.apis[0].pid}
    memory: dict[str, list[float]] = {name: [rss_mib(pid)] for name, pid in watched.items() if pid}

    def remember() -> None:
        for name, pid in watched.items():
            memory[name].append(rss_mib(pid or 0))

    ended: list[float] = []
    urls = post_batch(stack, STATES)

    def read() -> None:
        follow(stack, urls, STATES, halfway=remember)
        ended.append(perf_counter())

    reading = threading.Thread(target=read)
    reading.start()
    start = perf_counter()
    beside = _slices(target, BESIDE_SLICES)
    done, left = _done(stack, urls), perf_counter()
    reading.join()
    if not ended:
        raise RuntimeError("the batch was not read to its end")
    remember()
    idle += _slices(target, IDLE_SLICES // 2)
    return UnderBatch(
        median(idle),
        median(beside),
        done / (left - start),
        (STATES - done) / (ended[0] - left),
        memory,
    )


def post_batch(stack: Stack, states: int) -> dict[str, str]:
    """Post a batch of one yes/no question as JSON Lines; its URLs."""
    body = orjson.loads(decision_body(1, 0))
    del body["state"]
    lines = b"\n".join(
        orjson.dumps({"custom_id": f"t{number}", "state": orjson.loads(decision_body(1, number))["state"]})
        for number in range(states)
    )
    files = {"request": (None, orjson.dumps(body)), "file": ("states.jsonl", lines)}
    answer = httpx2.post(f"{stack.url}/v1/batches", files=files, timeout=TIMEOUT)
    if answer.status_code != 202:
        raise RuntimeError(f"the batch was refused: {answer.status_code} {answer.text[:300]}")
    urls: dict[str, str] = answer.json()["urls"]
    return urls


def follow(
    stack: Stack,
    urls: dict[str, str],
    states: int = WARM_UP_STATES,
    halfway: Callable[[], None] = lambda: None,
) -> None:
    """Read a batch's results to their end, and check them."""
    number = 0
    with httpx2.stream("GET", f"{stack.url}{urls['results']}", timeout=TIMEOUT) as answer:
        for number, line in enumerate(answer.iter_lines(), start=1):
            row = orjson.loads(line)
            wanted = (number - 1, f"t{number - 1}", "succeeded")
            if (row["index"], row["custom_id"], row["status"]) != wanted:
                raise RuntimeError(f"line {number} is {line[:300]}")
            if number == states // 2:
                halfway()
    if number != states:
        raise RuntimeError(f"{number} lines of {states}")


def _done(stack: Stack, urls: dict[str, str]) -> int:
    counts = httpx2.get(f"{stack.url}{urls['get']}", timeout=TIMEOUT).json()["counts"]
    if counts["succeeded"] == counts["total"]:
        raise RuntimeError("the batch ended before the client left it alone: it is too small")
    return int(counts["succeeded"])


def _slices(target: Target, count: int) -> list[float]:
    return [ms for _ in range(count) for ms in side_by_side(target, 1, SLICE_S).latencies_ms]
