"""Jobs through real HTTP: every way from one status to the next, waits, cancel and deadlines."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from client.stack import Stack
from tests.line.job_support import (
    ASYNC,
    CHORD,
    ONE_READ,
    ONE_SHARD,
    STAGES,
    URGENT,
    cancel,
    events,
    job,
    post,
    reads_running,
    seconds,
    submit,
    tokens_read,
    until,
    until_status,
    workers_stopped,
)

UNKNOWN = "dec_0123456789abcdef"
LONG = {"one shard": ONE_SHARD, "a chord": CHORD}


def test_a_job_goes_from_queued_to_running_to_succeeded(slow: Stack) -> None:
    with workers_stopped(slow):
        ids = [submit(slow.url, ONE_READ), submit(slow.url, ONE_READ)]
        queued = [job(slow.url, id) for id in ids]
        assert [one["status"] for one in queued] == ["queued", "queued"]
        assert [one["queue_position"] for one in queued] == [1, 2]
    running = until_status(slow.url, ids[0], "running")
    assert "queue_position" not in running
    assert running["started_at"] >= running["created_at"]
    done = job(slow.url, ids[0], wait=10)
    assert done["status"] == "succeeded"
    assert done["done"] is True
    assert done["result"]["answers"]["q"]["noul"] == 0.9
    assert done["progress"] == {"stage": 1, "stages": 1, "reads_done": 1, "reads_planned": 1}
    assert seconds(done["expires_at"]) - seconds(done["finished_at"]) == pytest.approx(3600, abs=0.01)


def test_a_job_that_cannot_be_answered_has_failed_and_says_why(slow: Stack) -> None:
    later = {**URGENT, "instructions": "word " * 5000, "depends_on": ["q"]}
    done = job(slow.url, submit(slow.url, {"questions": {"q": URGENT, "later": later}}), wait=20)
    assert done["status"] == "failed"
    assert done["error"]["code"] == "max_tokens_exceeded"
    assert "tokens" in done["error"]["message"]
    assert "result" not in done


@pytest.mark.parametrize("kind", LONG)
def test_a_queued_job_is_canceled_at_once_and_reads_nothing(slow: Stack, kind: str) -> None:
    with workers_stopped(slow):
        before = tokens_read(slow)
        id = submit(slow.url, LONG[kind])
        canceled = cancel(slow.url, id)
        assert canceled["status"] == "canceled"
        assert canceled["error"]["code"] == "canceled"
        assert canceled["started_at"] is None
    assert post(slow.url, ONE_READ).status_code == 200, "the workers have seen to the queue"
    assert job(slow.url, id)["status"] == "canceled"
    one = tokens_read(slow) - before
    assert one < 100, "one read of some 50 tokens, not 32"


@pytest.mark.parametrize("kind", LONG)
def test_a_running_job_is_canceled_once_its_reads_have_stopped(slow: Stack, kind: str) -> None:
    id = submit(slow.url, LONG[kind])
    until(lambda: reads_running(slow) >= 8)
    asked = time.monotonic()
    said = cancel(slow.url, id)
    assert said["cancel_requested_at"] is not None
    canceled = until_status(slow.url, id, "canceled")
    assert reads_running(slow) == 0
    assert time.monotonic() - asked < 1, "nobody waited for a look at the store"
    assert canceled["progress"]["reads_done"] < canceled["progress"]["reads_planned"]
    read = tokens_read(slow)
    time.sleep(0.5)
    assert tokens_read(slow) == read


def test_a_job_is_canceled_between_its_stages_too(slow: Stack) -> None:
    ids = [submit(slow.url, {**STAGES, "seed": seed}) for seed in range(8)]
    until(lambda: job(slow.url, ids[-1])["progress"]["stage"] > 1)
    for id in ids:
        # A stage takes 0.4 s: these are spread over one, and one of them falls between two.
        time.sleep(0.05)
        cancel(slow.url, id)
    for id in ids:
        canceled = job(slow.url, id, wait=5)
        assert canceled["status"] == "canceled"
        assert 1 < canceled["progress"]["stage"] <= 6
    assert reads_running(slow) == 0


def test_who_waits_for_a_canceled_job_is_told(slow: Stack) -> None:
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(post, slow.urls[1], ONE_SHARD, {"prefer": "wait=20"})
        until(lambda: newest(slow)["status"] == "running")
        cancel(slow.url, newest(slow)["id"])
        response = waiting.result()
    assert response.status_code == 409
    assert "canceled" in response.json()["detail"]["message"]


def test_a_job_that_is_done_is_not_changed_by_a_cancel(slow: Stack) -> None:
    id = submit(slow.url, ONE_READ)
    done = job(slow.url, id, wait=10)
    assert cancel(slow.url, id) == done
    assert job(slow.url, id) == done


def expired_jobs(stack: Stack) -> set[str]:
    listed = httpx2.get(f"{stack.url}/v1/jobs", params={"status": "expired"}).json()["data"]
    return {one["id"] for one in listed}


def test_a_job_expires_in_the_queue_also_where_no_worker_runs(slow: Stack) -> None:
    with workers_stopped(slow):
        ids = [submit(slow.url, {**ONE_READ, "deadline_ms": 300}) for _ in range(3)]
        start = time.monotonic()
        assert job(slow.url, ids[0], wait=20)["status"] == "expired"
        assert [event.name for event in events(slow.url, ids[1])] == ["queued", "done"]
        until(lambda: ids[2] in expired_jobs(slow))
        assert time.monotonic() - start < 6
    assert job(slow.url, ids[0])["error"]["code"] == "expired"


def test_a_job_expires_in_the_queue_while_the_workers_are_busy(slow: Stack) -> None:
    # Each job holds one of the 8 threads for 1.6 s: these are three rounds.
    busy = [submit(slow.url, {**ONE_SHARD, "seed": seed}) for seed in range(24)]
    id = submit(slow.url, {**ONE_READ, "deadline_ms": 400})
    expired = job(slow.url, id, wait=10)
    assert expired["status"] == "expired"
    assert expired["started_at"] is None
    assert seconds(expired["finished_at"]) - seconds(expired["deadline_at"]) < 2.5
    for one in busy:
        cancel(slow.url, one)


@pytest.mark.parametrize("kind", LONG)
def test_a_job_expires_while_it_runs_and_its_reads_stop(slow: Stack, kind: str) -> None:
    until(lambda: reads_running(slow) == 0)
    out = engines_put_out(slow)
    id = submit(slow.url, {**LONG[kind], "deadline_ms": 1000})
    expired = job(slow.url, id, wait=10)
    assert expired["status"] == "expired"
    assert expired["started_at"] is not None
    assert seconds(expired["deadline_at"]) - seconds(expired["created_at"]) == pytest.approx(1, abs=0.01)
    assert abs(seconds(expired["finished_at"]) - seconds(expired["deadline_at"])) < 1
    until(lambda: reads_running(slow) == 0, within_s=0.5)
    assert expired["progress"]["reads_done"] < expired["progress"]["reads_planned"]
    assert engines_put_out(slow) == out, "a deadline says nothing about an engine"


def test_who_waits_past_the_deadline_is_told_so(slow: Stack) -> None:
    response = post(slow.url, {**ONE_SHARD, "deadline_ms": 500}, {"prefer": "wait=20"})
    assert response.status_code == 529
    assert "deadline" in response.json()["detail"]["message"]


def test_a_preference_to_respond_async_is_a_job_at_once(slow: Stack) -> None:
    response = post(slow.url, {**ONE_READ, "metadata": {"ticket": [7, "ü"]}}, ASYNC)
    assert response.status_code == 202
    found = response.json()
    assert response.headers["location"] == f"/v1/jobs/{found['id']}" == found["urls"]["get"]
    assert response.headers["preference-applied"] == "respond-async"
    assert response.headers["vary"] == "Prefer"
    assert int(response.headers["retry-after"]) >= 1
    assert response.headers["x-typesafe-request-id"] == found["id"]
    assert found["status"] in ("queued", "running")
    assert found["metadata"] == {"ticket": [7, "ü"]}
    assert seconds(found["deadline_at"]) - seconds(found["created_at"]) == pytest.approx(600, abs=0.01)


def test_a_wait_that_outlasts_the_decision_gets_the_answer(slow: Stack) -> None:
    response = post(slow.url, ONE_SHARD, {"prefer": "respond-async, wait=30"})
    assert response.status_code == 200
    assert response.json()["answers"]["q"]["noul"] == 0.9
    assert response.headers["preference-applied"] == "respond-async, wait=30"
    assert "location" not in response.headers


def test_a_wait_that_ends_before_the_decision_gets_the_job(slow: Stack) -> None:
    start = time.monotonic()
    response = post(slow.url, STAGES, {"prefer": "wait=1"})
    assert 0.9 < time.monotonic() - start < 2.3
    assert response.status_code == 202
    assert response.json()["status"] == "running"
    assert response.headers["preference-applied"] == "wait=1"
    early = job(slow.url, response.json()["id"], wait=0.1)
    assert early["status"] == "running", "a wait that is over shows the job as it stands"
    assert job(slow.url, response.json()["id"], wait=20)["status"] == "succeeded"


def test_a_long_poll_hears_of_the_end_at_once_also_at_another_api(slow: Stack) -> None:
    id = submit(slow.urls[0], ONE_SHARD)
    with ThreadPoolExecutor() as threads:
        polls = [threads.submit(timed_poll, url, id) for url in (*slow.urls, *slow.urls)]
        for done, at in [poll.result() for poll in polls]:
            assert done["status"] == "succeeded"
            assert at - seconds(done["finished_at"]) < 0.6, "a look at the store would take a second"


def timed_poll(url: str, id: str) -> tuple[dict[str, Any], float]:
    done = job(url, id, wait=20)
    return done, time.time()


def test_a_client_that_goes_away_finds_its_job_later(slow: Stack) -> None:
    body = {**ONE_SHARD, "metadata": {"mark": "went away"}}
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(
            f"{slow.url}/v1/systemone",
            json={"model": "jev-latest", "state": "x", **body},
            headers={"prefer": "wait=20"},
            timeout=0.4,
        )
    found = newest(slow)
    assert found["metadata"] == {"mark": "went away"}
    assert job(slow.urls[1], found["id"], wait=20)["status"] == "succeeded"


def test_an_api_that_dies_and_comes_back_loses_no_job(slow: Stack) -> None:
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(post, slow.urls[1], STAGES, {"prefer": "wait=20"})
        until(lambda: newest(slow)["progress"]["stages"] == 6 and not newest(slow)["done"])
        id = newest(slow)["id"]
        slow.apis[1].kill()
        with pytest.raises(httpx2.HTTPError):
            waiting.result()
    slow.restart(slow.apis[1])
    done = job(slow.urls[1], id, wait=20)
    assert done["status"] == "succeeded"
    assert len(done["result"]["answers"]) == 6


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("GET", "/events"), ("POST", "/cancel")])
def test_a_job_that_is_not_there_is_a_problem_with_a_code(slow: Stack, method: str, path: str) -> None:
    response = httpx2.request(method, f"{slow.url}/v1/jobs/{UNKNOWN}{path}")
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == "not_found"
    assert UNKNOWN in response.json()["detail"]


TOO_MUCH: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "a deadline over the server's": ({"deadline_ms": 600_001}, ["body", "deadline_ms"], "CANVASS_DEADLINE_S"),
    "a deadline of nothing": ({"deadline_ms": 0}, ["body", "deadline_ms"], "1"),
    "metadata too long": ({"metadata": {"a": "x" * 16_384}}, ["body", "metadata"], "16384"),
    "metadata that is no object": ({"metadata": [1]}, ["body", "metadata"], "an object"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_terms_that_a_job_cannot_have_are_refused_with_the_limit(slow: Stack, name: str) -> None:
    fields, loc, word = TOO_MUCH[name]
    response = post(slow.url, {**ONE_READ, **fields}, ASYNC)
    assert response.status_code == 422
    (entry,) = response.json()["detail"]
    assert entry["loc"] == loc
    assert word in entry["msg"]


def newest(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = httpx2.get(f"{stack.url}/v1/jobs", params={"limit": 1}).json()["data"][0]
    return found


def engines_put_out(stack: Stack) -> int:
    """How often a worker of the stack has put an engine out, by its log."""
    return sum(worker.written().count("engine out") for worker in stack.workers)
