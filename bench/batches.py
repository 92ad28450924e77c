"""What a batch costs those who wait: one interactive client beside it, and the memory that it takes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, sleep
from typing import Any

import httpx2
import orjson

from bench.load import Target, decision_body, side_by_side
from bench.processes import rss_mib
from client.stack import Stack

STATES = 20_000
SLICE_S = 2.5
ROUNDS = 6
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

    The client asks an idle system and one with a batch in turn, so that noise falls on both alike: each batch
    but the last is canceled. That one is left alone after its turn, and read to its end.
    """
    target = Target(f"{stack.url}/v1/systemone", [decision_body(1, number) for number in range(4000)])
    follow(stack, post_batch(stack, WARM_UP_STATES))
    side_by_side(target, 1, SLICE_S)
    watched = {"feeder": stack.workers[-1].pid, "api": stack.apis[0].pid}
    idle: list[float] = []
    beside: list[float] = []
    for _ in range(ROUNDS - 1):
        idle += side_by_side(target, 1, SLICE_S).latencies_ms
        urls = post_batch(stack, STATES)
        _await(stack, urls, lambda batch: batch["status"] == "running")
        beside += side_by_side(target, 1, SLICE_S).latencies_ms
        httpx2.post(f"{stack.url}{urls['cancel']}", timeout=TIMEOUT).raise_for_status()
        _await(stack, urls, lambda batch: batch["done"])
    idle += side_by_side(target, 1, SLICE_S).latencies_ms
    memory: dict[str, list[float]] = {name: [] for name in watched}
    ended: list[float] = []

    def remember() -> None:
        for name, pid in watched.items():
            memory[name].append(rss_mib(pid or 0))

    def read() -> None:
        follow(stack, urls, STATES, halfway=remember)
        ended.append(perf_counter())

    remember()
    urls = post_batch(stack, STATES)
    reading = threading.Thread(target=read)
    reading.start()
    _await(stack, urls, lambda batch: batch["status"] == "running")
    start, before = perf_counter(), _succeeded(stack, urls)
    beside += side_by_side(target, 1, SLICE_S).latencies_ms
    done, left = _succeeded(stack, urls), perf_counter()
    reading.join()
    if not ended:
        raise RuntimeError("the batch was not read to its end")
    remember()
    return UnderBatch(
        median(idle),
        median(beside),
        (done - before) / (left - start),
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


def _await(stack: Stack, urls: dict[str, str], true: Callable[[dict[str, Any]], bool]) -> None:
    end = perf_counter() + 60
    while not true(_batch(stack, urls)):
        if perf_counter() > end:
            raise RuntimeError("the batch does not go on")
        sleep(0.05)


def _batch(stack: Stack, urls: dict[str, str]) -> dict[str, Any]:
    batch: dict[str, Any] = httpx2.get(f"{stack.url}{urls['get']}", timeout=TIMEOUT).json()
    return batch


def _succeeded(stack: Stack, urls: dict[str, str]) -> int:
    return int(_batch(stack, urls)["counts"]["succeeded"])
