"""Processes that are told to stop: what runs ends or goes on elsewhere, and nobody notices but by a retry."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import httpx2
import pytest
import redis

from client.process import Child
from client.stack import Stack
from tests.line.job_support import (
    CHORD,
    ONE_READ,
    ONE_SHARD,
    Event,
    job,
    post,
    reads_running,
    submit,
    tokens_read,
    until,
)
from workers import hang_guard

DRAIN_S = 1.0
LEASE_S = 30.0
"""Far longer than these tests take: what goes on sooner was handed over, and not waited for."""


@pytest.fixture(scope="module")
def stack(script: str) -> Iterator[Stack]:
    """Two workers and two APIs; a read takes 0.4 s, and a worker makes 8 of a decision at once."""
    env = {
        "CANVASS_SHARD_READS": "32",
        "CANVASS_DECISION_READS_IN_FLIGHT": "8",
        "CANVASS_DRAIN_S": str(DRAIN_S),
        "CANVASS_LEASE_S": str(LEASE_S),
        "CANVASS_QUEUED_LEASE_S": str(LEASE_S),
    }
    latency = ("--latency", "400,0,1000")
    with Stack(engines=script, engine_args=latency, workers=2, apis=2, env=env) as running:
        until(lambda: joined_workers(running) == 2, 20)
        yield running


def joined_workers(stack: Stack) -> int:
    """Workers that are there now and have the engine in: one that went is listed for some seconds yet."""
    engines = httpx2.get(f"{stack.url}/v1/engines").json()["data"]
    pids = {str(child.pid) for child in stack.workers if child.running}
    return sum(
        worker["state"] == "in" and worker["worker"].rpartition("-")[2] in pids
        for engine in engines
        for worker in engine["workers"]
    )


def holder(stack: Stack, id: str) -> Child:
    """The worker that runs a decision, once one does."""
    with redis.Redis.from_url(stack.redis_url) as connection:
        found: list[Any] = []

        def held() -> bool:
            found[:] = [connection.hget(f"canvass:decision:{id}", "holder")]
            return found[0] is not None

        until(held)
    return next(child for child in stack.workers if f"-{child.pid}:".encode() in found[0])


@contextmanager
def ended(stack: Stack, child: Child) -> Iterator[None]:
    """A worker that is told to stop; started again at the end."""
    child.terminate()
    try:
        yield
    finally:
        until(lambda: not child.running, 20)
        status = child.returncode
        child.start()
        until(lambda: joined_workers(stack) == 2, 20)
    assert status == 0


def price(stack: Stack) -> float:
    """Prompt tokens of one read of these tests' question, once the engine has rest from canaries."""
    seen: list[float] = []

    def at_rest() -> bool:
        time.sleep(0.25)
        seen.append(tokens_read(stack))
        return len(seen) > 4 and seen[-5] == seen[-1]

    until(at_rest, 20)
    before = tokens_read(stack)
    assert post(stack.url, ONE_READ).status_code == 200
    return tokens_read(stack) - before


def back(stack: Stack, api: Child) -> None:
    """Start an API again that was told to stop, once it is gone."""
    until(lambda: not api.running, 35)
    # Uvicorn raises the signal again once it has ended in order.
    assert api.returncode in (0, -signal.SIGTERM)
    stack.restart(api)


def test_a_worker_that_is_told_to_stop_ends_what_it_can_in_time(stack: Stack) -> None:
    one = price(stack)
    before = tokens_read(stack)
    id = submit(stack.url, {**ONE_READ, "samples": 8})
    with ended(stack, holder(stack, id)):
        assert job(stack.url, id, wait=20)["status"] == "succeeded"
        assert tokens_read(stack) - before == 8 * one, "nobody read it a second time"
    log = "".join(worker.log.read_text() for worker in stack.workers)
    assert not any(id in line and "handed back" in line for line in log.splitlines())


def test_what_it_cannot_end_goes_on_elsewhere_from_where_it_was(stack: Stack) -> None:
    one = price(stack)
    before = tokens_read(stack)
    start = time.monotonic()
    id = submit(stack.url, ONE_SHARD)
    with ended(stack, holder(stack, id)):
        assert job(stack.url, id, wait=25)["status"] == "succeeded"
        assert time.monotonic() - start < LEASE_S / 2, "nobody waited for a lease to run out"
        reads = (tokens_read(stack) - before) / one
    # 16 of 32 were back when it had to go, and 8 under way. Without them it would be 56.
    assert 32 < reads <= 48


def test_a_chord_whose_shards_are_on_a_worker_that_goes_is_answered(stack: Stack) -> None:
    start = time.monotonic()
    id = submit(stack.url, CHORD)
    until(lambda: reads_running(stack) >= 8)
    with ended(stack, stack.workers[0]):
        assert job(stack.url, id, wait=28)["status"] == "succeeded"
        assert time.monotonic() - start < LEASE_S - 2


def test_a_rolling_restart_under_load_loses_nothing(stack: Stack) -> None:
    stopping = threading.Event()
    answers: Counter[str] = Counter()

    def client(number: int) -> None:
        turn = number
        while not stopping.is_set():
            url, turn = stack.urls[turn % 2], turn + 1
            try:
                answer = post(url, ONE_READ)
            except httpx2.TransportError as error:
                answers[type(error).__name__] += 1
                time.sleep(0.1)
                continue
            if answer.status_code == 200:
                answers["right" if answer.json()["answers"]["q"]["noul"] == 0.9 else "wrong"] += 1
            else:
                answers[f"{answer.status_code} {answer.text}"] += 1
                time.sleep(0.1)

    with ThreadPoolExecutor(6) as threads:
        clients = [threads.submit(client, number) for number in range(6)]
        try:
            for child in stack.workers:
                with ended(stack, child):
                    pass
            for child in stack.apis:
                child.terminate()
                back(stack, child)
        finally:
            stopping.set()
        for running in clients:
            running.result()
    assert answers.pop("right") > 20
    answers.pop("ConnectError", None)
    assert not answers
    with redis.Redis.from_url(stack.redis_url) as connection:
        until(lambda: not connection.zcard("canvass:leases"))


def test_who_waits_for_long_is_sent_elsewhere_by_an_api_that_goes(stack: Stack) -> None:
    id = submit(stack.urls[1], CHORD)
    with ThreadPoolExecutor(2) as threads:
        poll = threads.submit(job, stack.url, id, 30)
        stream = threads.submit(seen, stack.url, id, 0)
        time.sleep(1)
        start = time.monotonic()
        stack.apis[0].terminate()
        try:
            assert poll.result(10)["done"] is False
            first = stream.result(10)
            assert time.monotonic() - start < 5
            rest = seen(stack.urls[1], id, first[-1].number)
        finally:
            back(stack, stack.apis[0])
    assert first[-1].name != "done"
    assert rest[-1].name == "done"
    assert [event.number for event in (*first, *rest)] == list(range(1, len(first) + len(rest) + 1))
    assert job(stack.urls[1], id)["status"] == "succeeded"


def test_an_api_that_goes_waits_for_the_answers_that_were_asked_of_it(stack: Stack) -> None:
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(post, stack.url, {**ONE_READ, "samples": 24})
        time.sleep(0.4)
        stack.apis[0].terminate()
        try:
            time.sleep(0.2)
            with pytest.raises(httpx2.ConnectError):
                post(stack.url, ONE_READ)
            assert answer.result(20).status_code == 200
        finally:
            back(stack, stack.apis[0])


def seen(url: str, id: str, after: int) -> list[Event]:
    """The events of a job after one, until their stream ends, whatever way."""
    found: list[Event] = []
    fields: dict[str, str] = {}
    headers = {"last-event-id": str(after)}
    with (
        suppress(httpx2.RemoteProtocolError),
        httpx2.stream("GET", f"{url}/v1/jobs/{id}/events", headers=headers, timeout=60) as response,
    ):
        for line in response.iter_lines():
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
            elif "event" in fields:
                found.append(Event(int(fields["id"]), fields["event"], json.loads(fields["data"])))
                fields = {}
    return found


@contextmanager
def guarded(monkeypatch: pytest.MonkeyPatch, ends: list[float]) -> Iterator[asyncio.AbstractEventLoop]:
    """A running loop with a guard that allows 0.2 s; each end it calls for is noted in `ends`."""
    monkeypatch.setattr(hang_guard, "EVERY_S", 0.05)
    monkeypatch.setattr(hang_guard, "GRACE_S", 0.2)
    loop = asyncio.new_event_loop()
    running = threading.Thread(target=loop.run_forever)
    running.start()
    watching = threading.Thread(
        target=hang_guard._watch, args=(loop, 0.2, lambda: ends.append(time.monotonic()))
    )
    watching.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        running.join()
        loop.close()
        watching.join(10)
        assert not watching.is_alive()


def test_a_worker_whose_loop_hangs_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[float] = []
    with guarded(monkeypatch, ends) as loop:
        time.sleep(0.3)
        assert not ends
        start = time.monotonic()
        loop.call_soon_threadsafe(time.sleep, 1.5)
        until(lambda: len(ends) == 1)
    assert 0.3 < ends[0] - start < 1.5


def test_a_loop_that_is_only_slow_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[float] = []
    with guarded(monkeypatch, ends) as loop:
        for _ in range(8):
            loop.call_soon_threadsafe(time.sleep, 0.1)
            time.sleep(0.12)
    assert not ends


def test_the_end_is_an_exit_status_of_its_own() -> None:
    program = "from workers.hang_guard import _end; _end()"
    assert subprocess.run([sys.executable, "-c", program]).returncode == hang_guard.HUNG
