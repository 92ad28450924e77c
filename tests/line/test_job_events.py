"""A job's events as they happen, and the list of jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from redis.asyncio import Redis

from client.stack import Stack
from planner.decision import Alternative, Decision, Question
from planner.reads import Wave
from tests.line.job_support import (
    CHORD,
    ONE_READ,
    ONE_SHARD,
    STAGES,
    Event,
    cancel,
    events,
    job,
    submit,
    until_status,
    workers_stopped,
)
from workers.settings import Settings
from workers.store.decisions import Decisions
from workers.store.store import Store
from workers.terms import Terms

IDLE = "dec_idle"

Heard = Future[list[tuple[float, str]]]


@pytest.fixture(scope="module", autouse=True)
def idle_stream(slow: Stack) -> Iterator[Heard]:
    """Lines of the events of a job that nobody has published, each with the time it came at."""

    async def save() -> None:
        async with Redis.from_url(slow.redis_url) as redis:
            settings = Settings()
            question = Question("a", "noul", "Is it urgent?", (Alternative("yes"), Alternative("no")))
            decision = Decision("jev-latest", "A state.", (question,))
            await Decisions(Store(redis, settings), settings).save(
                IDLE, decision, Wave(0, ()), 1, Terms(), ""
            )
            # Without a lease no watchdog sees to it either.
            await redis.zrem(f"{settings.key_prefix}:leases", IDLE)

    asyncio.run(save())
    with ThreadPoolExecutor() as threads:
        yield threads.submit(lambda: list(_lines(f"{slow.url}/v1/jobs/{IDLE}/events")))
        cancel(slow.url, IDLE)


def _lines(url: str) -> Iterator[tuple[float, str]]:
    with httpx2.stream("GET", url, timeout=60) as response:
        for line in response.iter_lines():
            yield time.monotonic(), line
            if line == ": ping":
                return


def names(found: list[Event]) -> list[str]:
    return [event.name for event in found]


def test_a_stream_tells_every_step_in_order_and_ends_with_the_job(slow: Stack) -> None:
    id = submit(slow.url, STAGES)
    found = list(events(slow.url, id))
    assert [event.number for event in found] == list(range(1, len(found) + 1))
    assert names(found)[:3] == ["queued", "started", "stage"]
    assert names(found)[3:-1] == ["progress", "stage"] * 5
    stages = [event.data["stage"] for event in found if event.name == "stage"]
    assert stages == [1, 2, 3, 4, 5, 6]
    assert {event.data["stages"] for event in found if event.name == "stage"} == {6}
    assert found[-1].name == "done"
    assert found[-1].data == job(slow.url, id)
    moments = [event.data["at"] for event in found[:-1]]
    assert moments == sorted(moments)


def test_events_come_while_the_job_runs(slow: Stack) -> None:
    id = submit(slow.url, STAGES)
    arrivals = [(event.name, time.monotonic()) for event in events(slow.url, id)]
    second = next(at for name, at in arrivals[3:] if name == "stage")
    assert arrivals[-1][1] - second > 1, "four stages of 0.4 s lie between"


def test_a_chord_tells_its_progress(slow: Stack) -> None:
    found = list(events(slow.url, submit(slow.url, CHORD)))
    assert set(names(found)) == {"queued", "started", "stage", "progress", "done"}
    progress = [event.data for event in found if event.name == "progress"]
    counts = [data["reads_done"] for data in progress]
    assert len(counts) == 4, "one for each shard"
    assert counts == sorted(set(counts))
    assert counts[-1] == 128
    assert {data["reads_planned"] for data in progress} == {128}


def test_a_stream_goes_on_after_the_last_event_seen(slow: Stack) -> None:
    id = submit(slow.url, STAGES)
    head = list(events(slow.url, id, most=5))
    assert len(head) == 5, "the client left after these"
    rest = list(events(slow.urls[1], id, after=head[-1].number))
    assert [event.number for event in head + rest] == list(range(1, len(head + rest) + 1))
    assert head + rest == list(events(slow.url, id))


def test_a_watcher_at_another_api_hears_of_each_step_at_once(slow: Stack) -> None:
    id = submit(slow.urls[0], STAGES)
    with ThreadPoolExecutor() as threads:
        watching = [threads.submit(_arrivals, url, id) for url in slow.urls]
        first, second = (one.result() for one in watching)
    assert first.keys() == second.keys()
    late = [abs(first[number] - second[number]) for number in first if number > 3]
    assert max(late) < 0.6, "a look at the store would come a second later"


def _arrivals(url: str, id: str) -> dict[int, float]:
    return {event.number: time.monotonic() for event in events(url, id)}


def test_a_job_that_was_canceled_in_the_queue_tells_so(slow: Stack) -> None:
    with workers_stopped(slow):
        id = submit(slow.url, ONE_READ)
        cancel(slow.url, id)
        found = list(events(slow.url, id))
    assert names(found) == ["queued", "done"]
    assert found[-1].data["status"] == "canceled"


def test_a_watcher_sees_a_cancel_of_what_runs(slow: Stack) -> None:
    id = submit(slow.url, ONE_SHARD)
    until_status(slow.url, id, "running")
    with ThreadPoolExecutor() as threads:
        watching = threads.submit(lambda: list(events(slow.urls[1], id)))
        cancel(slow.url, id)
        found = watching.result()
    assert found[-1].name == "done"
    assert found[-1].data["status"] == "canceled"


def test_an_event_id_that_is_no_number_is_refused(slow: Stack) -> None:
    id = submit(slow.url, ONE_READ)
    response = httpx2.get(f"{slow.url}/v1/jobs/{id}/events", headers={"last-event-id": "x"})
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/header/last-event-id"


def listed(stack: Stack, **query: Any) -> dict[str, Any]:
    response = httpx2.get(f"{stack.url}/v1/jobs", params=query)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def pages(stack: Stack, between: Any = lambda: None, **query: Any) -> Iterator[list[dict[str, Any]]]:
    after: str | None = None
    while True:
        page = listed(stack, **query, **({"after": after} if after else {}))
        yield page["data"]
        after = page["next"]
        if after is None:
            return
        between()


def test_a_list_is_newest_first_and_has_no_results(slow: Stack) -> None:
    ids = [submit(slow.url, ONE_READ) for _ in range(3)]
    job(slow.url, ids[-1], wait=10)
    job(slow.url, ids[0], wait=10)
    page = listed(slow, limit=3)
    assert [one["id"] for one in page["data"]] == ids[::-1]
    assert all("result" not in one for one in page["data"])
    assert page["next"]


def test_pages_hold_each_job_once_while_new_ones_arrive(slow: Stack) -> None:
    ids = [submit(slow.url, ONE_READ) for _ in range(7)]
    whole = [one["id"] for page in pages(slow, limit=100) for one in page]
    assert whole[:7] == ids[::-1]
    paged = [one for page in pages(slow, lambda: submit(slow.url, ONE_READ), limit=3) for one in page]
    assert [one["id"] for one in paged] == whole
    assert IDLE in whole


def test_a_list_of_one_status_has_all_of_those_and_no_others(slow: Stack) -> None:
    canceled = []
    with workers_stopped(slow):
        for _ in range(5):
            submit(slow.url, ONE_READ)
            canceled.append(submit(slow.url, ONE_READ))
            cancel(slow.url, canceled[-1])
        queued = [one["id"] for page in pages(slow, status="queued", limit=2) for one in page]
        assert len(queued) == 6, "with the idle one"
    found = [one for page in pages(slow, status="canceled", limit=2) for one in page]
    assert {one["status"] for one in found} == {"canceled"}
    assert [one["id"] for one in found][:5] == canceled[::-1]
    assert all(one["error"]["code"] == "canceled" for one in found)


@pytest.mark.parametrize("after", ["x", "bmFuIHg", "aW5mIHg", "ü", "MQ", "-", "MSAyIDM"])
def test_a_cursor_of_nobodys_is_refused(slow: Stack, after: str) -> None:
    response = httpx2.get(f"{slow.url}/v1/jobs", params={"after": after})
    assert response.status_code == 422
    assert response.json()["code"] == "bad_cursor"


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 101}, {"status": "open"}])
def test_a_list_of_what_is_not_there_is_refused_where_it_is_wrong(slow: Stack, query: dict[str, Any]) -> None:
    response = httpx2.get(f"{slow.url}/v1/jobs", params=query)
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == f"/query/{next(iter(query))}"


def test_a_stream_in_which_nothing_happens_has_a_comment_every_15_s(idle_stream: Heard) -> None:
    heard = idle_stream.result()
    lines = [line for _, line in heard]
    assert [line for line in lines if line] == ["event: queued", lines[1], "id: 1", ": ping"]
    assert 14.5 < heard[-1][0] - heard[0][0] < 20
