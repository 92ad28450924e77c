"""What tests of jobs have in common: decisions of a known length, and what the engine sees of them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import httpx2
import redis

from client.stack import Stack

URGENT = {"type": "noul", "instructions": "Is it urgent?"}
ONE_READ: dict[str, Any] = {"questions": {"q": URGENT}}
ONE_SHARD: dict[str, Any] = {"questions": {"q": URGENT}, "samples": 32}
"""32 reads, of which the slow stack makes 8 at once: 1.6 s."""

CHORD: dict[str, Any] = {"questions": {f"q{number}": URGENT for number in range(4)}, "samples": 32}
"""128 reads in 4 shards: 3.2 s on two workers, twice that on one."""

STAGES: dict[str, Any] = {
    "questions": {"q0": URGENT, **{f"q{n}": {**URGENT, "depends_on": [f"q{n - 1}"]} for n in range(1, 6)}}
}
"""Six stages of one read each: 2.4 s."""

ASYNC = {"prefer": "respond-async"}

FOR_EVER = (b"canvass:celery:", b"canvass:keys")
"""Kombu's own keys, and the API keys: configuration."""


def post(url: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> httpx2.Response:
    """Post a decision."""
    whole = {"model": "jev-latest", "state": "My printer is on fire.", **body}
    return httpx2.post(f"{url}/v1/systemone", json=whole, headers=headers, timeout=60)


def submit(url: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> str:
    """The id of a job that was just accepted."""
    response = post(url, body, {**ASYNC, **(headers or {})})
    assert response.status_code == 202, response.text
    return str(response.json()["id"])


def job(url: str, id: str, wait: float = 0) -> dict[str, Any]:
    """A job, after a long poll of `wait` seconds at most."""
    response = httpx2.get(f"{url}/v1/jobs/{id}", params={"wait": wait}, timeout=70)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def cancel(url: str, id: str) -> dict[str, Any]:
    """What the server says to a request to cancel a job."""
    response = httpx2.post(f"{url}/v1/jobs/{id}/cancel")
    assert response.status_code == 202, response.text
    found: dict[str, Any] = response.json()
    return found


def until(true: Callable[[], bool], within_s: float = 10.0) -> None:
    """Wait until something is true; an AssertionError when that takes too long."""
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, f"not within {within_s} s"
        time.sleep(0.01)


def until_status(url: str, id: str, status: str, within_s: float = 10.0) -> dict[str, Any]:
    """The job once it has a status."""
    until(lambda: job(url, id)["status"] == status, within_s)
    return job(url, id)


def seconds(moment: str) -> float:
    """A job's time in seconds since 1970."""
    return datetime.fromisoformat(moment).timestamp()


class Event(NamedTuple):
    """A server-sent event."""

    number: int
    name: str
    data: dict[str, Any]


def events(url: str, id: str, after: int | None = None, most: int = 1000) -> Iterator[Event]:
    """The events of a job as they come, `most` of them at most."""
    headers = {} if after is None else {"last-event-id": str(after)}
    with httpx2.stream("GET", f"{url}/v1/jobs/{id}/events", headers=headers, timeout=60) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in response.iter_lines():
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
            elif "event" in fields:
                yield Event(int(fields["id"]), fields["event"], json.loads(fields["data"]))
                fields, most = {}, most - 1
            if not most:
                return


def engine_figure(stack: Stack, name: str) -> float:
    """A metric of the engine."""
    metrics = httpx2.get(f"{stack.engine_urls[0]}/metrics").text
    (line,) = (line for line in metrics.splitlines() if line.startswith(f"vllm:{name}{{"))
    return float(line.split()[-1])


def reads_running(stack: Stack) -> float:
    """The reads that are at the engine now."""
    return engine_figure(stack, "num_requests_running")


def tokens_read(stack: Stack) -> float:
    """Prompt tokens of every read that the engine has begun."""
    return engine_figure(stack, "prefix_cache_queries_total")


def ours(connection: redis.Redis) -> dict[bytes, int]:
    """Every key of ours with the seconds it is kept yet, -1 for ever."""
    names = [name for name in connection.scan_iter("canvass:*", count=1000) if not name.startswith(FOR_EVER)]
    with connection.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.ttl(name)
        # -2: it went between the two looks.
        return {name: ttl for name, ttl in zip(names, pipeline.execute(), strict=True) if ttl != -2}


@contextmanager
def workers_stopped(stack: Stack) -> Iterator[None]:
    """No worker does anything meanwhile."""
    for worker in stack.workers:
        os.killpg(worker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for worker in stack.workers:
            os.killpg(worker.pid, signal.SIGCONT)
