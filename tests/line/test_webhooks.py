"""Webhooks through a whole stack, to real receivers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from redis import Redis
from standardwebhooks import WebhookVerificationError

from client.stack import Stack
from tests.line.conftest import ask_at
from tests.line.receivers import SECRET, Call, Reply, receiving

URGENT = {"urgent": {"type": "noul", "instructions": "Is it urgent?"}}

HURRIED = {
    "CANVASS_WEBHOOK_SECRET": SECRET,
    "CANVASS_WEBHOOK_ALLOW": "127.0.0.1",
    # Attempts at 0, 0.01, 0.6, 3.6, 14.4 ... seconds.
    "CANVASS_WEBHOOK_PACE": "0.002",
    "CANVASS_WEBHOOK_TIMEOUT_S": "1.5",
}


@pytest.fixture(scope="module")
def hurried(script: str) -> Iterator[Stack]:
    """A stack whose webhooks do not take a day."""
    with Stack(engines=script, env=HURRIED) as stack:
        yield stack


@pytest.fixture(scope="module")
def slow(script: str) -> Iterator[Stack]:
    """The same on an engine that takes its time."""
    with Stack(engines=script, engine_args=("--latency", "2500,0,1000"), env=HURRIED) as stack:
        yield stack


def decided(stack: Stack, webhook: str, **terms: Any) -> str:
    """The id of a decision that was answered and reports to a webhook."""
    response = ask_at(stack.url, questions=URGENT, webhook=webhook, **terms)
    assert response.status_code == 200, response.text
    return response.headers["x-typesafe-request-id"]


def deliveries(stack: Stack, id: str) -> list[dict[str, Any]]:
    response = httpx2.get(f"{stack.url}/v1/jobs/{id}/deliveries")
    assert response.status_code == 200, response.text
    return list(response.json()["data"])


def ended(stack: Stack, id: str, within_s: float = 30) -> dict[str, Any]:
    """The only delivery of a job, once it is pending no more."""
    until = time.monotonic() + within_s
    while True:
        (delivery,) = deliveries(stack, id)
        if delivery["state"] != "pending":
            return delivery
        assert time.monotonic() < until, delivery
        time.sleep(0.05)


def statuses(delivery: dict[str, Any]) -> list[int | None]:
    assert [attempt["n"] for attempt in delivery["attempts"]] == list(range(1, len(delivery["attempts"]) + 1))
    return [attempt["status"] for attempt in delivery["attempts"]]


def require_one_message(calls: list[Call]) -> None:
    """Every attempt is the same message: its id and its bytes; each is signed for its own time."""
    assert len({call.headers["webhook-id"] for call in calls}) == 1
    assert len({call.body for call in calls}) == 1
    for call in calls:
        call.verified()
        assert abs(int(call.headers["webhook-timestamp"]) - call.at) < 3


def test_a_webhook_carries_the_job_and_is_signed(hurried: Stack) -> None:
    with receiving() as inbox:
        id = decided(hurried, inbox.url, metadata={"order": 7})
        (call,) = inbox.wait(1)
        body = call.verified()
        job = httpx2.get(f"{hurried.url}/v1/jobs/{id}").json()
        delivery = ended(hurried, id)
    assert body["type"] == "decision.completed"
    assert body["timestamp"] == job["finished_at"]
    assert body["data"] == job
    assert job["metadata"] == {"order": 7}
    assert job["result"]["answers"]["urgent"]["noul"] == 0.9
    assert call.headers["content-type"] == "application/json"
    assert call.headers["webhook-id"].startswith("evt_")
    assert delivery["id"] == call.headers["webhook-id"]
    assert delivery["n"] == 1
    assert delivery["event"] == "completed"
    assert delivery["url"] == inbox.url
    assert delivery["state"] == "delivered"
    assert delivery["next_attempt_at"] is None
    assert statuses(delivery) == [204]
    assert delivery["attempts"][0]["error"] is None
    assert 0 < delivery["attempts"][0]["ms"] < 5000


def test_start_and_completed_are_two_messages(hurried: Stack) -> None:
    with receiving() as inbox:
        id = decided(hurried, inbox.url, webhook_events_filter=["completed", "start"])
        calls = inbox.wait(2)
    bodies = {body["type"]: body for body in (call.verified() for call in calls)}
    assert set(bodies) == {"decision.started", "decision.completed"}
    assert bodies["decision.started"]["data"]["status"] == "running"
    assert bodies["decision.started"]["data"]["id"] == id
    assert bodies["decision.completed"]["data"]["status"] == "succeeded"
    assert len({call.headers["webhook-id"] for call in calls}) == 2
    assert [(each["n"], each["event"]) for each in deliveries(hurried, id)] == [
        (1, "start"),
        (2, "completed"),
    ]


def test_a_decision_of_several_shards_starts_once(script: str) -> None:
    questions = {f"q{number}": {"type": "noul", "instructions": "Is it urgent?"} for number in range(90)}
    env = {**HURRIED, "CANVASS_SHARD_READS": "20"}
    with Stack(engines=script, env=env) as stack, receiving() as inbox:
        asked = ask_at(
            stack.url,
            questions=questions,
            webhook=inbox.url,
            webhook_events_filter=["start", "completed"],
        )
        assert asked.status_code == 200
        inbox.wait(2)
        time.sleep(1.5)
        types = sorted(call.verified()["type"] for call in inbox.calls)
    assert types == ["decision.completed", "decision.started"]


def test_a_receiver_that_fails_twice_gets_the_same_message_a_third_time(hurried: Stack) -> None:
    with receiving(Reply(500), Reply(503), Reply(200)) as inbox:
        id = decided(hurried, inbox.url)
        delivery = ended(hurried, id)
        time.sleep(1)
        require_one_message(inbox.wait(3))
        assert len(inbox.calls) == 3
    assert delivery["state"] == "delivered"
    assert statuses(delivery) == [500, 503, 200]
    assert [attempt["excerpt"] for attempt in delivery["attempts"]] == [
        '{"said": 500}',
        '{"said": 503}',
        '{"said": 200}',
    ]
    assert "500" in delivery["attempts"][0]["error"]


def test_a_redirect_is_a_failure_and_is_not_followed(hurried: Stack) -> None:
    with receiving() as other, receiving(Reply(302, {"Location": other.url}), Reply(204)) as inbox:
        id = decided(hurried, inbox.url)
        delivery = ended(hurried, id)
        assert other.calls == []
    assert statuses(delivery) == [302, 204]
    assert "redirects are not followed" in delivery["attempts"][0]["error"]


def test_a_receiver_that_hangs_is_given_up_and_called_again(hurried: Stack) -> None:
    with receiving(Reply(200, delay_s=20), Reply(204)) as inbox:
        id = decided(hurried, inbox.url)
        delivery = ended(hurried, id)
        require_one_message(inbox.wait(2))
    assert statuses(delivery) == [None, 204]
    assert delivery["attempts"][0]["error"] == "no answer within 1.5 s"
    assert 1400 < delivery["attempts"][0]["ms"] < 6000


def test_receivers_that_hang_hold_up_neither_decisions_nor_other_webhooks(script: str) -> None:
    patient = {**HURRIED, "CANVASS_WEBHOOK_TIMEOUT_S": "15", "CANVASS_WEBHOOKS_IN_FLIGHT": "40"}
    with (
        Stack(engines=script, env=patient) as stack,
        receiving(Reply(200, delay_s=60)) as hanging,
        receiving() as quick,
    ):
        with ThreadPoolExecutor(12) as threads:
            list(threads.map(lambda _: decided(stack, hanging.url), range(80)))
        hanging.wait(32)
        start = time.monotonic()
        decided(stack, quick.url)
        quick.wait(1)
        assert time.monotonic() - start < 10, "a worker full of hanging attempts is full for 15 s"
        assert len(hanging.calls) < 80


def test_410_stops_it(hurried: Stack) -> None:
    with receiving(Reply(410)) as inbox:
        delivery = ended(hurried, decided(hurried, inbox.url))
        time.sleep(1.5)
        assert len(inbox.calls) == 1
    assert delivery["state"] == "gone"
    assert delivery["next_attempt_at"] is None
    assert statuses(delivery) == [410]


def test_a_retry_after_is_honoured(hurried: Stack) -> None:
    with receiving(Reply(429, {"Retry-After": "3"}), Reply(204)) as inbox:
        id = decided(hurried, inbox.url)
        first, second = inbox.wait(2)
        delivery = ended(hurried, id)
    assert second.at - first.at >= 3
    assert statuses(delivery) == [429, 204]


def test_after_its_last_attempt_a_delivery_has_failed(script: str) -> None:
    env = {**HURRIED, "CANVASS_WEBHOOK_PACE": "0.00002"}
    with Stack(engines=script, env=env) as stack, receiving(Reply(500)) as inbox:
        id = decided(stack, inbox.url)
        delivery = ended(stack, id, within_s=60)
        require_one_message(inbox.calls)
        assert delivery["state"] == "failed"
        assert 5 <= len(delivery["attempts"]) <= 10
        assert len(inbox.calls) == len(delivery["attempts"])
        again = httpx2.post(f"{stack.url}/v1/jobs/{id}/deliveries/1/resend")
        assert again.status_code == 202
        assert again.json()["state"] == "pending"
        with Redis.from_url(stack.redis_url) as redis:
            lasting = [key for key in redis.scan_iter("canvass:deliver*") if redis.ttl(key) < 0]
        assert lasting == []


def test_a_delivery_is_sent_again_on_request(hurried: Stack) -> None:
    with receiving() as inbox:
        id = decided(hurried, inbox.url)
        ended(hurried, id)
        response = httpx2.post(f"{hurried.url}/v1/jobs/{id}/deliveries/1/resend")
        assert response.status_code == 202
        assert response.json()["id"] == inbox.calls[0].headers["webhook-id"]
        assert response.json()["next_attempt_at"] is not None
        require_one_message(inbox.wait(2))
        assert statuses(ended(hurried, id)) == [204, 204]
    assert httpx2.post(f"{hurried.url}/v1/jobs/{id}/deliveries/2/resend").status_code == 404
    assert httpx2.post(f"{hurried.url}/v1/jobs/{id}/deliveries/0/resend").status_code == 422


def test_a_job_without_a_webhook_has_no_deliveries_and_no_job_has_none_at_all(hurried: Stack) -> None:
    asked = ask_at(hurried.url, questions=URGENT)
    assert deliveries(hurried, asked.headers["x-typesafe-request-id"]) == []
    response = httpx2.get(f"{hurried.url}/v1/jobs/dec_nobody/deliveries")
    assert response.status_code == 404
    assert response.json()["code"] == "not_found"


@pytest.mark.parametrize(
    "url",
    ["http://example.com/x", "https://10.0.0.1/x", "https://127.0.0.1.nip.io:22/x", "http://0x7f.1/x", ""],
)
def test_a_url_that_may_not_be_called_is_a_422_on_its_field(hurried: Stack, url: str) -> None:
    response = ask_at(hurried.url, questions=URGENT, webhook=url)
    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"][-1] == "webhook"


def test_without_a_secret_a_webhook_is_refused_and_the_refusal_says_what_to_set(stack: Stack) -> None:
    response = ask_at(stack.url, questions=URGENT, webhook="https://example.com/x")
    assert response.status_code == 422
    assert "CANVASS_WEBHOOK_SECRET" in response.text


def test_each_key_signs_with_its_own_secret_and_sees_its_own_deliveries(script: str) -> None:
    env = {**HURRIED, "CANVASS_WEBHOOK_SECRET": "", "CANVASS_ADMIN_KEY": "an-admin-key-of-the-tests"}
    admin = {"Authorization": f"Bearer {env['CANVASS_ADMIN_KEY']}"}
    with Stack(engines=script, env=env) as stack, receiving() as inbox:
        made = [
            httpx2.post(f"{stack.url}/v1/keys", json={"name": name}, headers=admin).json()
            for name in ("mine", "theirs")
        ]
        mine, theirs = ({"Authorization": f"Bearer {key['key']}"} for key in made)
        body = {"model": "jev-latest", "state": "A.", "questions": URGENT, "webhook": inbox.url}
        id = httpx2.post(f"{stack.url}/v1/systemone", json=body, headers=mine, timeout=30).headers[
            "x-typesafe-request-id"
        ]
        (call,) = inbox.wait(1)
        path = f"{stack.url}/v1/jobs/{id}/deliveries"
        listed = httpx2.get(path, headers=mine)
        refused = [
            httpx2.get(path, headers=theirs),
            httpx2.post(f"{path}/1/resend", headers=theirs),
        ]
    assert call.verified(made[0]["webhook_secret"])["data"]["id"] == id
    with pytest.raises(WebhookVerificationError):
        call.verified(made[1]["webhook_secret"])
    assert [each["id"] for each in listed.json()["data"]] == [call.headers["webhook-id"]]
    assert [response.status_code for response in refused] == [404, 404]


def test_a_canceled_job_is_reported_too(slow: Stack) -> None:
    with receiving() as inbox:
        body = {"model": "jev-latest", "state": "A.", "questions": URGENT, "webhook": inbox.url}
        job = httpx2.post(
            f"{slow.url}/v1/systemone", json=body, headers={"Prefer": "respond-async"}, timeout=30
        ).json()
        httpx2.post(f"{slow.url}/v1/jobs/{job['id']}/cancel", timeout=30)
        (call,) = inbox.wait(1)
    assert call.verified()["data"]["status"] == "canceled"


def test_an_attempt_of_a_killed_worker_is_made_again_by_another(slow: Stack) -> None:
    with receiving(Reply(200, delay_s=60), Reply(204)) as inbox:
        id = decided(slow, inbox.url)
        inbox.wait(1)
        (worker,) = slow.workers
        assert worker.pid is not None
        os.killpg(worker.pid, signal.SIGKILL)
        worker.stop()
        slow.restart(worker)
        require_one_message(inbox.wait(2, within_s=60))
        delivery = ended(slow, id)
    assert delivery["state"] == "delivered"
    assert statuses(delivery) == [204], "what a killed worker did not keep is not shown"


def test_a_job_outlives_the_api_process_that_took_it(slow: Stack) -> None:
    with receiving() as inbox:
        body = {"model": "jev-latest", "state": "A.", "questions": URGENT, "webhook": inbox.url}
        accepted = httpx2.post(
            f"{slow.url}/v1/systemone", json=body, headers={"Prefer": "respond-async"}, timeout=30
        )
        assert accepted.status_code == 202
        (api,) = slow.apis
        api.kill()
        slow.restart(api)
        job = httpx2.get(f"{slow.url}{accepted.headers['location']}?wait=30", timeout=40).json()
        (call,) = inbox.wait(1)
    assert job["status"] == "succeeded"
    assert call.verified()["data"] == job
