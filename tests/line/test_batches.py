"""Batches: many states posted once, a line of results for each, in order, exactly once."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
import pytest
import redis

from client.stack import Stack
from tests.line.job_support import FOR_EVER
from tests.line.receivers import SECRET, receiving

QUESTIONS = {"urgent": {"type": "noul", "instructions": "Is it urgent?"}}
REQUEST: dict[str, Any] = {"model": "jev-latest", "questions": QUESTIONS}
SLOW = ("--latency", "400,0,1000")


@pytest.fixture(scope="module")
def fast(script: str) -> Iterator[Stack]:
    """A stack whose one worker serves both queues, and sends webhooks to this machine."""
    env = {"CANVASS_WEBHOOK_SECRET": SECRET, "CANVASS_WEBHOOK_ALLOW": "127.0.0.1"}
    with Stack(engines=script, engine_args=("--max-model-len", "2048"), env=env) as running:
        yield running


@pytest.fixture(scope="module")
def slow(script: str) -> Iterator[Stack]:
    """A stack whose engine takes 0.4 s for a read, and whose feeder keeps 8 states in flight."""
    env = {
        "CANVASS_BATCH_IN_FLIGHT": "8",
        "CANVASS_LEASE_S": "3",
        "CANVASS_QUEUED_LEASE_S": "3",
    }
    with Stack(engines=script, engine_args=SLOW, batch_workers=1, env=env) as running:
        yield running


def create(stack: Stack, states: Sequence[Any], **more: Any) -> dict[str, Any]:
    """A batch that was just accepted."""
    response = httpx2.post(f"{stack.url}/v1/batches", json={**REQUEST, **more, "states": states}, timeout=60)
    assert response.status_code == 202, response.text
    batch: dict[str, Any] = response.json()
    assert response.headers["location"] == batch["urls"]["get"]
    return batch


def upload(stack: Stack, name: str, content: bytes, **request: Any) -> httpx2.Response:
    """The response to a form with a file."""
    parts = [("request", (None, json.dumps({**REQUEST, **request}).encode())), ("file", (name, content))]
    return httpx2.post(f"{stack.url}/v1/batches", files=parts, timeout=60)


def get(stack: Stack, id: str, wait: float = 0) -> dict[str, Any]:
    """A batch, after a long poll of `wait` seconds at most."""
    response = httpx2.get(f"{stack.url}/v1/batches/{id}", params={"wait": wait}, timeout=70)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def results(stack: Stack, id: str, **query: Any) -> list[dict[str, Any]]:
    """The lines of a batch's results."""
    response = httpx2.get(f"{stack.url}/v1/batches/{id}/results", params=query, timeout=120)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.split("\n") if line]


def test_states_in_json_are_answered_in_their_order(fast: Stack) -> None:
    batch = create(fast, ["one", {"custom_id": "b", "state": {"text": "two"}}, {"text": "three"}, ["four"]])
    assert batch["status"] == "queued"
    assert batch["counts"] == {
        "total": 4, "queued": 4, "running": 0, "succeeded": 0, "failed": 0, "canceled": 0, "expired": 0,
    }  # fmt: skip
    lines = results(fast, batch["id"])
    assert [(line["index"], line["custom_id"], line["status"]) for line in lines] == [
        (0, None, "succeeded"),
        (1, "b", "succeeded"),
        (2, None, "succeeded"),
        (3, None, "succeeded"),
    ]
    assert lines[0]["result"]["answers"]["urgent"]["noul"] == 0.9
    ended = get(fast, batch["id"])
    assert (ended["status"], ended["done"], ended["counts"]["succeeded"]) == ("succeeded", True, 4)
    assert ended["started_at"] <= ended["finished_at"] < ended["expires_at"]


def test_json_lines_are_taken_and_a_bad_line_fails_alone(fast: Stack) -> None:
    content = b"\xef\xbb\xbf" + b"\n".join(
        [
            b'{"custom_id": "a", "state": "one"}',
            b'{"custom_id": "b", "state": ',
            b"",
            b'{"custom_id": "c"}',
            b'{"custom_id": "d", "state": 7}',
            b'{"custom_id": 5, "state": "five"}',
            b'{"custom_id": "f", "state": "' + b"long " * 4000 + b'"}',
            b'["g"]',
            b'{"state": "\xe2\x80\xa8 last"}\r',
        ]
    )
    response = upload(fast, "states.jsonl", content)
    assert response.status_code == 202, response.text
    lines = results(fast, response.json()["id"])
    assert [line["index"] for line in lines] == list(range(8))
    assert [line.get("error", {}).get("code") for line in lines] == [
        None,
        "invalid_json",
        "missing_state",
        "invalid_request",
        "bad_custom_id",
        "max_tokens_exceeded",
        "invalid_request",
        None,
    ]
    assert [line["custom_id"] for line in lines] == ["a", None, "c", "d", None, "f", None, None]
    assert all(line["error"]["message"] for line in lines if line["status"] == "failed")
    ended = get(fast, response.json()["id"])
    assert (ended["status"], ended["counts"]["succeeded"], ended["counts"]["failed"]) == ("succeeded", 2, 6)


def test_csv_with_a_state_column_and_with_others(fast: Stack) -> None:
    first = upload(fast, "a.csv", b'custom_id,state\nx,"two\nlines, and a ""quote"""\n,plain\n')
    lines = results(fast, first.json()["id"])
    assert [(line["custom_id"], line["status"]) for line in lines] == [
        ("x", "succeeded"),
        (None, "succeeded"),
    ]
    second = upload(
        fast, "b.csv", b"custom_id,subject,body\nx,Fire,Printer\ny,too few\nz,a,b,c\n\xff,\xff,b\n\xff\n"
    )
    lines = results(fast, second.json()["id"])
    assert [line["status"] for line in lines] == ["succeeded", "failed", "failed", "failed", "failed"]
    assert [line["custom_id"] for line in lines] == ["x", "y", "z", None, None]
    assert {line["error"]["code"] for line in lines[1:]} == {"invalid_csv"}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"states": []}, 422, "invalid_request"),
        ({"states": ["a"], "questions": {}}, 422, "invalid_request"),
        ({"states": ["a"], "questions": {"q": {"type": "box"}}}, 422, "invalid_request"),
        ({"states": ["a"], "model": "nobody"}, 400, "unknown_model"),
        ({"states": ["a"], "state": "b"}, 422, "invalid_request"),
        ({"states": ["a"], "metadata": "text"}, 422, "invalid_request"),
        ({"states": "a"}, 422, "invalid_request"),
    ],
)
def test_what_is_wrong_with_the_request_refuses_all_of_it(
    fast: Stack, body: dict[str, Any], status: int, code: str
) -> None:
    response = httpx2.post(f"{fast.url}/v1/batches", json={**REQUEST, **body})
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    assert response.headers["content-type"] == "application/problem+json"


def test_a_csv_row_that_is_too_long_fails_alone(fast: Stack) -> None:
    most = 16 * 2**20
    long = b"x" * most
    response = upload(fast, "a.csv", b"state\none\n" + long + b'y\r\n"two\n' + long + b'"\nthree\n')
    assert response.status_code == 202, response.text
    lines = results(fast, response.json()["id"])
    assert [line.get("error", {}).get("code") for line in lines] == [None, "too_long", "too_long", None]
    assert str(most) in lines[1]["error"]["message"]


def test_a_form_that_is_not_as_it_should_be_is_refused(fast: Stack) -> None:
    assert upload(fast, "states.txt", b"{}").json()["code"] == "bad_file"
    assert upload(fast, "states.csv", b"custom_id\nx\n").json()["code"] == "bad_file"
    assert upload(fast, "states.jsonl", b"\n\n").json()["code"] == "invalid_request"
    assert upload(fast, "states.jsonl", b"{}", states=["a"]).json()["code"] == "invalid_request"
    alone = httpx2.post(f"{fast.url}/v1/batches", files={"file": ("states.jsonl", b"{}")})
    assert (alone.status_code, alone.json()["code"]) == (422, "bad_form")
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    assert upload(fast, "states.jsonl", b"{}", other=deep).json()["code"] == "invalid_json"
    headers = {"content-type": "multipart/form-data; boundary=q; charset=undefined"}
    part = b'--q\r\nContent-Disposition: form-data; name="request"\r\n\r\n{}\r\n--q--\r\n'
    unknown = httpx2.post(f"{fast.url}/v1/batches", content=part, headers=headers)
    assert (unknown.status_code, unknown.json()["code"]) == (422, "bad_form")


def test_two_thousand_states_are_answered_once_each_and_in_order(fast: Stack) -> None:
    content = b"\n".join(b'{"custom_id":"t%d","state":"ticket %d"}' % (n, n) for n in range(2000))
    id = upload(fast, "states.jsonl", content).json()["id"]
    lines = results(fast, id)
    assert [(line["index"], line["custom_id"]) for line in lines] == [(n, f"t{n}") for n in range(2000)]
    assert {line["status"] for line in lines} == {"succeeded"}
    assert results(fast, id, after=1997, wait=False) == lines[1998:]
    assert results(fast, id, after=1999) == []
    with redis.Redis.from_url(fast.redis_url) as store:
        left = [key for key in store.scan_iter(count=1000) if id.encode() in key]
        assert sorted(left) == sorted(
            [f"canvass:batch:{id}".encode(), *(f"canvass:batch:{id}:out:{n}".encode() for n in range(2))]
        )


def test_a_webhook_at_the_start_and_at_the_end(fast: Stack) -> None:
    with receiving() as inbox:
        batch = create(
            fast,
            ["one", "two"],
            webhook=inbox.url,
            webhook_events_filter=["start", "completed"],
            metadata={"a": 1},
        )
        calls = inbox.wait(2)
    told = {call.verified()["type"]: call.verified()["data"] for call in calls}
    assert set(told) == {"batch.started", "batch.completed"}
    ended = told["batch.completed"]
    assert (ended["id"], ended["object"], ended["status"]) == (batch["id"], "batch", "succeeded")
    assert (ended["counts"]["succeeded"], ended["metadata"]) == (2, {"a": 1})


def test_the_same_idempotency_key_gives_the_same_batch(fast: Stack) -> None:
    def send(content: bytes) -> httpx2.Response:
        parts = [("request", (None, json.dumps(REQUEST).encode())), ("file", ("s.jsonl", content))]
        headers = {"idempotency-key": "batch-1"}
        return httpx2.post(f"{fast.url}/v1/batches", files=parts, headers=headers)

    first, again, other = send(b'{"state":"a"}'), send(b'{"state":"a"}'), send(b'{"state":"b"}')
    assert first.json()["id"] == again.json()["id"]
    assert again.headers["idempotent-replayed"] == "true"
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


def test_batches_are_listed_newest_first(fast: Stack) -> None:
    made = [create(fast, ["a"])["id"] for _ in range(3)]
    page = httpx2.get(f"{fast.url}/v1/batches", params={"limit": 2}).json()
    assert [batch["id"] for batch in page["data"]] == made[:0:-1]
    rest = httpx2.get(f"{fast.url}/v1/batches", params={"limit": 2, "after": page["next"]}).json()
    assert rest["data"][0]["id"] == made[0]


def test_an_unknown_batch_is_not_found(fast: Stack) -> None:
    for method, path in (("GET", ""), ("GET", "/results"), ("POST", "/cancel")):
        response = httpx2.request(method, f"{fast.url}/v1/batches/bat_none{path}")
        assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_results_come_while_the_batch_runs_and_few_states_are_open(slow: Stack) -> None:
    id = create(slow, [f"ticket {number}" for number in range(40)])["id"]
    seen: list[int] = []
    with httpx2.stream("GET", f"{slow.url}/v1/batches/{id}/results", timeout=60) as response:
        for line in response.iter_lines():
            seen.append(json.loads(line)["index"])
            if len(seen) == 8:
                batch = get(slow, id)
                assert batch["status"] == "running"
                assert 0 < batch["counts"]["running"] <= 8
                assert batch["counts"]["queued"] > 0
                assert results(slow, id, after=2, wait=False)[0]["index"] == 3
    assert seen == list(range(40))


def test_a_canceled_batch_ends_once_what_was_open_has_stopped(slow: Stack) -> None:
    states = [{"custom_id": f"t{number}", "state": "a ticket"} for number in range(1500)]
    id = create(slow, states)["id"]
    while get(slow, id)["counts"]["succeeded"] < 8:
        time.sleep(0.1)
    asked = httpx2.post(f"{slow.url}/v1/batches/{id}/cancel")
    assert asked.status_code == 202
    assert asked.json()["cancel_requested_at"] is not None
    ended = get(slow, id, wait=20)
    assert ended["status"] == "canceled"
    lines = results(slow, id)
    assert [(line["index"], line["custom_id"]) for line in lines] == [(n, f"t{n}") for n in range(1500)]
    canceled = [line for line in lines if line["status"] == "canceled"]
    assert len(canceled) == ended["counts"]["canceled"] == 1500 - ended["counts"]["succeeded"]
    assert canceled[-1]["error"]["code"] == "canceled"
    assert httpx2.post(f"{slow.url}/v1/batches/{id}/cancel").json()["status"] == "canceled"


def test_a_worker_killed_in_the_middle_loses_no_line_and_doubles_none(slow: Stack) -> None:
    id = create(slow, [f"ticket {number}" for number in range(60)])["id"]
    while get(slow, id)["counts"]["succeeded"] < 10:
        time.sleep(0.1)
    worker = slow.workers[-1]
    assert worker.pid is not None
    os.killpg(worker.pid, signal.SIGKILL)
    slow.workers.remove(worker)
    worker.stop()
    slow.add_worker({"CANVASS_QUEUES": "batch"})
    lines = results(slow, id)
    assert [line["index"] for line in lines] == list(range(60))
    assert {line["status"] for line in lines} == {"succeeded"}
    assert get(slow, id)["counts"]["succeeded"] == 60


def test_an_engine_that_is_away_delays_a_batch_and_fails_no_line(script: str) -> None:
    with Stack(engines=script) as stack:
        (engine,) = stack.engines
        id = create(stack, [f"ticket {number}" for number in range(2000)])["id"]
        while get(stack, id)["counts"]["succeeded"] < 100:
            time.sleep(0.05)
        engine.stop()
        time.sleep(4)
        stack.restart(engine)
        counts = get(stack, id, wait=60)["counts"]
    assert counts["succeeded"] >= 2000 - 64, "but for those that were open, whose patience is 2 s"
    assert counts["succeeded"] + counts["failed"] == 2000


def test_past_its_deadline_a_batch_is_expired_and_nothing_stays_for_ever(script: str) -> None:
    env = {"CANVASS_BATCH_DEADLINE_S": "3", "CANVASS_BATCH_RETENTION_S": "4", "CANVASS_BATCH_IN_FLIGHT": "2"}
    with Stack(engines=script, engine_args=SLOW, env=env) as stack:
        batch = create(stack, [f"ticket {number}" for number in range(200)])
        with redis.Redis.from_url(stack.redis_url) as store:
            time.sleep(1)
            assert _without_expiry(store) == []
            ended = get(stack, batch["id"], wait=20)
            assert ended["status"] == "expired"
            lines = results(stack, batch["id"])
            assert [line["index"] for line in lines] == list(range(200))
            assert (lines[0]["status"], lines[-1]["status"]) == ("succeeded", "expired")
            assert ended["counts"]["succeeded"] + ended["counts"]["expired"] == 200
            assert _without_expiry(store) == []
            time.sleep(6)
            assert list(store.scan_iter("canvass:batch*", count=1000)) == []
        assert httpx2.get(f"{stack.url}/v1/batches/{batch['id']}").status_code == 404


def test_another_keys_batch_is_not_found(script: str) -> None:
    with Stack(engines=script, env={"CANVASS_ADMIN_KEY": "an admin key"}) as stack:
        keys = f"{stack.url}/v1/keys"
        admin = {"authorization": "Bearer an admin key"}
        made = [httpx2.post(keys, json={"name": name}, headers=admin).json()["key"] for name in "ab"]
        mine, other = ({"authorization": f"Bearer {key}"} for key in made)
        posted = httpx2.post(f"{stack.url}/v1/batches", json={**REQUEST, "states": ["a"]}, headers=mine)
        url = f"{stack.url}{posted.json()['urls']['get']}"
        for method, path in (("GET", ""), ("GET", "/results"), ("POST", "/cancel")):
            assert httpx2.request(method, f"{url}{path}", headers=other).status_code == 404
        assert httpx2.get(f"{stack.url}/v1/batches", headers=other).json()["data"] == []
        assert json.loads(httpx2.get(f"{url}/results", headers=mine).text)["status"] == "succeeded"


def _without_expiry(store: redis.Redis) -> list[bytes]:
    return [
        key for key in store.scan_iter(count=1000) if store.ttl(key) == -1 and not key.startswith(FOR_EVER)
    ]
