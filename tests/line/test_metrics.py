"""Metrics and logs of a whole stack: what was done is what is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest
import redis

from client.ports import free_port
from client.stack import Stack
from tests.line.figures import Figures, figures
from tests.line.job_support import (
    ASYNC,
    ONE_READ,
    URGENT,
    cancel,
    events,
    job,
    post,
    submit,
    until,
    until_status,
    workers_stopped,
)
from tests.line.receivers import SECRET, Reply, receiving

SECRETIVE = "The launch code is swordfish."


@dataclass(frozen=True)
class Watched:
    """A stack of one API and one worker, both of which tell their metrics."""

    stack: Stack
    worker_url: str

    def api(self) -> Figures:
        return figures(self.stack.url)

    def worker(self) -> Figures:
        return figures(self.worker_url)


@pytest.fixture(scope="module")
def watched(script: str) -> Iterator[Watched]:
    port = free_port()
    env = {
        "CANVASS_METRICS_PORT": str(port),
        "CANVASS_LOG_FORMAT": "json",
        "CANVASS_LOG_LEVEL": "DEBUG",
        "CANVASS_QUEUED_LEASE_S": "1.5",
        "CANVASS_WEBHOOK_SECRET": SECRET,
        "CANVASS_WEBHOOK_ALLOW": "127.0.0.1",
        "CANVASS_WEBHOOK_PACE": "0.002",
    }
    with Stack(engines=script, engine_count=2, env=env) as stack:
        yield Watched(stack, f"http://127.0.0.1:{port}")


def test_each_decision_and_each_read_is_counted_once(watched: Watched) -> None:
    api, worker = watched.api(), watched.worker()
    for number in range(7):
        body = {"state": f"State {number}.", "questions": {"a": URGENT, "b": URGENT}}
        assert post(watched.stack.url, body).status_code == 200
    api_now, worker_now = watched.api(), watched.worker()

    def more(name: str, **labels: str) -> float:
        return worker_now.of(name, **labels) - worker.of(name, **labels)

    door = {"door": "systemone"}
    name = "canvass_decisions_accepted_total"
    assert api_now.of(name, **door) - api.of(name, **door) == 7
    assert more("canvass_decisions_ended_total", status="succeeded", lane="interactive", **door) == 7
    for phase in ("queued", "running", "total"):
        assert more("canvass_decision_seconds_count", phase=phase, lane="interactive") == 7
    total = more("canvass_decision_seconds_sum", phase="total")
    parts = sum(more("canvass_decision_seconds_sum", phase=phase) for phase in ("queued", "running"))
    assert total == pytest.approx(parts)
    assert more("canvass_reads_total", outcome="ok") == more("canvass_reads_total") == 14
    assert more("canvass_read_seconds_count") == 14
    assert 0 < more("canvass_cached_tokens_total") < more("canvass_prompt_tokens_total")
    assert more("canvass_plan_seconds_count") == 7
    assert api_now.of("canvass_plan_seconds_count") - api.of("canvass_plan_seconds_count") == 7


def test_requests_are_counted_by_route_and_never_by_path(watched: Watched) -> None:
    url, before = watched.stack.url, watched.api()
    assert post(url, ONE_READ).status_code == 200
    assert post(url, {"questions": {}}).status_code == 422
    for path in ("/v1/jobs/dec_1", "/v1/jobs/dec_2", "/nowhere/1", "/nowhere/2"):
        assert httpx2.get(f"{url}{path}").status_code == 404
    assert httpx2.request("PROPFIND", f"{url}/nowhere").status_code == 404
    now = watched.api()

    def more(**labels: str) -> float:
        name = "canvass_http_requests_total"
        return now.of(name, **labels) - before.of(name, **labels)

    assert more(route="/v1/systemone", method="POST", status="200") == 1
    assert more(route="/v1/systemone", method="POST", status="422") == 1
    assert more(route="/v1/jobs/{id}", method="GET", status="404") == 2
    assert more(route="none", method="GET", status="404") == 2
    assert more(route="none", method="other") == 1
    assert now.of("canvass_refusals_total", code="invalid_request") > 0
    assert now.of("canvass_http_request_seconds_count", route="/v1/systemone") == now.of(
        "canvass_http_requests_total", route="/v1/systemone"
    )


def test_what_waits_is_told_and_how_long_it_waits(watched: Watched) -> None:
    url, before = watched.stack.url, watched.api()
    with workers_stopped(watched.stack):
        ids = [submit(url, ONE_READ) for _ in range(3)]
        stream = events(url, ids[0])
        assert next(stream).name == "queued"
        now = watched.api()
        assert now.of("canvass_queued_decisions") == 3
        assert now.of("canvass_queue_age_seconds") > 0
        assert now.of("canvass_open_decisions") >= 3
        assert now.of("canvass_event_streams") == 1
        until(lambda: watched.api().of("canvass_queue_messages", lane="interactive") >= 1)
        # Nobody runs it, so the API itself ends it.
        assert cancel(url, ids[2])["status"] == "canceled"
        ended = {"status": "canceled", "door": "systemone"}
        name = "canvass_decisions_ended_total"
        assert watched.api().of(name, **ended) - before.of(name, **ended) == 1
    assert [event.name for event in stream][-1] == "done"
    assert {until_status(url, id, "succeeded")["status"] for id in ids[:2]} == {"succeeded"}
    until(lambda: watched.api().of("canvass_queued_decisions") == 0)
    until(lambda: watched.api().of("canvass_event_streams") == 0)


def test_a_lost_message_is_a_takeover(watched: Watched) -> None:
    before = watched.worker()
    with workers_stopped(watched.stack):
        # The worker waits for a message, so Redis hands it the first one even now.
        ids = [submit(watched.stack.url, ONE_READ) for _ in range(2)]
        with redis.Redis.from_url(watched.stack.redis_url) as connection:
            until(lambda: bool(connection.llen("canvass:celery:interactive")))
            connection.delete("canvass:celery:interactive")
    assert [job(watched.stack.url, id, wait=20)["status"] for id in ids] == ["succeeded"] * 2
    assert watched.worker().of("canvass_takeovers_total") > before.of("canvass_takeovers_total")


def test_attempts_of_webhooks_are_counted_by_what_they_came_to(watched: Watched) -> None:
    before = watched.worker()

    def more(state: str) -> float:
        name = "canvass_webhook_attempts_total"
        return watched.worker().of(name, state=state) - before.of(name, state=state)

    with receiving(Reply(500), Reply(204)) as inbox:
        assert post(watched.stack.url, {**ONE_READ, "webhook": inbox.url}).status_code == 200
        inbox.wait(2)
        until(lambda: more("delivered") == 1)
    assert more("pending") == 1


def test_what_engines_say_of_their_prefix_caches_is_passed_on(watched: Watched) -> None:
    def told() -> bool:
        now = watched.worker()
        hits, queries = (now.of(f"canvass_engine_prefix_cache_{n}_total") for n in ("hits", "queries"))
        return 0 < hits < queries

    until(told, within_s=30)


def test_requests_that_failed_are_counted_with_their_retries(script: str) -> None:
    port = free_port()
    faults = ("--fault", "500:0.3", "--fault", "503:0.2")
    with Stack(engines=script, engine_args=faults, env={"CANVASS_METRICS_PORT": str(port)}) as stack:
        for number in range(40):
            assert post(stack.url, {**ONE_READ, "state": f"State {number}."}).status_code == 200
        now = figures(f"http://127.0.0.1:{port}")
    counts = {
        outcome: now.of("canvass_reads_total", outcome=outcome)
        for outcome in ("ok", "unreachable", "busy", "not_sent", "dropped", "ejected")
    }
    assert counts["ok"] == 40
    assert counts["unreachable"] > 0
    assert counts["busy"] > 0
    assert now.of("canvass_reads_total") == sum(counts.values())
    assert now.of("canvass_read_retries_total") >= counts["unreachable"]


def test_an_engine_that_is_gone_is_told_to_be_down(watched: Watched) -> None:
    stack = watched.stack
    assert watched.worker().of("canvass_engine_up") == 2
    dead, url = stack.engines[0], stack.engine_urls[0]
    dead.kill()
    until(lambda: watched.worker().of("canvass_engine_up", engine=url) == 0)
    assert watched.worker().of("canvass_engine_up", engine=stack.engine_urls[1]) == 1
    stack.restart(dead)
    until(lambda: watched.worker().of("canvass_engine_up", engine=url) == 1, within_s=30)
    assert watched.worker().of("canvass_engine_breaker_open") == 0


def test_without_the_store_the_rest_is_told_all_the_same(watched: Watched) -> None:
    stack = watched.stack
    assert stack.redis is not None
    stack.redis.kill()
    try:
        now = watched.api()
        assert now.of("canvass_store_up") == 0
        assert str(now.of("canvass_queued_decisions")) == "nan"
        assert now.of("canvass_decisions_accepted_total") > 0
    finally:
        stack.restart(stack.redis)
    until(lambda: watched.api().of("canvass_store_up") == 1, within_s=20)


def test_logs_are_json_tell_of_each_decision_by_its_id_and_hold_no_state(watched: Watched) -> None:
    response = post(watched.stack.url, {**ONE_READ, "state": SECRETIVE})
    assert response.status_code == 200
    id = response.headers["x-typesafe-request-id"]
    processes = (*watched.stack.apis, *watched.stack.workers)

    def written() -> str:
        return "".join(process.written() for process in processes)

    until(lambda: written().count(id) == 2)
    lines = [json.loads(line) for line in written().splitlines()]
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)
    told = [line["event"] for line in lines if line.get("decision") == id]
    assert sorted(told) == ["decision accepted", "decision succeeded"]
    assert "celery" in {str(line.get("logger")).partition(".")[0] for line in lines}
    assert "swordfish" not in written()


def test_states_are_logged_where_a_setting_says_so(script: str) -> None:
    env = {"CANVASS_LOG_STATES": "true", "CANVASS_LOG_LEVEL": "DEBUG", "CANVASS_LOG_FORMAT": "json"}
    with Stack(engines=script, env=env) as stack:
        id = submit(stack.url, {**ONE_READ, "state": SECRETIVE}, ASYNC)
        assert job(stack.url, id, wait=20)["status"] == "succeeded"
        (line,) = [line for line in stack.apis[0].written().splitlines() if "swordfish" in line]
    assert json.loads(line)["decision"] == id
    assert json.loads(line)["state"] == SECRETIVE
