"""What a webhook sends: the job or the batch as it was, under one id, signed for each attempt."""

from __future__ import annotations

import time

import orjson
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from workers.jobs import job_of
from workers.webhooks.payload import body_of, headers_of, webhook_id

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = '{"answer":"naïve ☂"}'.encode()

FIELDS = {
    "status": b"succeeded",
    "body": BODY,
    "created": b"1000",
    "started": b"1001.5",
    "finished": b"1002.25",
    "deadline": b"1600",
    "expires": b"4602.25",
    "stage": b"0",
    "stages": b"1",
    "planned": b"1",
    "done": b"1",
    "event": b"completed",
    "state": b"pending",
    "webhook": b"https://example.com/x",
    "hooks": b"start completed",
}


def test_the_body_is_the_job_and_the_time_of_the_event() -> None:
    body = orjson.loads(body_of("dec_1", FIELDS))
    assert body["type"] == "decision.completed"
    assert body["timestamp"] == "1970-01-01T00:16:42.250Z"
    assert body["data"] == orjson.loads(orjson.dumps(job_of("dec_1", FIELDS)))
    assert body["data"]["result"] == {"answer": "naïve ☂"}


def test_attempts_that_were_made_change_nothing_of_the_body() -> None:
    later = {
        **FIELDS,
        "attempts": b"2",
        "attempt:1": b"{}",
        "next": b"2000",
        "first": b"1003",
        "holder": b"x",
    }
    assert body_of("dec_1", later) == body_of("dec_1", FIELDS)


def test_a_batch_reports_itself() -> None:
    counts = {
        "total": b"3",
        "fed": b"3",
        "succeeded": b"2",
        "failed": b"1",
        "canceled": b"0",
        "expired": b"0",
    }
    body = orjson.loads(body_of("bat_1", {**FIELDS, **counts, "object": b"batch"}))
    assert body["type"] == "batch.completed"
    assert body["data"]["id"] == "bat_1"
    assert body["data"]["counts"]["succeeded"] == 2


def test_an_id_is_of_its_event_and_has_no_point() -> None:
    assert webhook_id("dec_1:completed") == webhook_id("dec_1:completed")
    assert len({webhook_id(name) for name in ("dec_1:completed", "dec_1:start", "dec_2:start")}) == 3
    # The signed text is joined with points, so an id must have none; that of a batch's decision does.
    assert "." not in webhook_id("bat_1.7:completed")


def test_the_signature_is_one_that_the_library_verifies() -> None:
    headers = headers_of("dec_1:completed", BODY, SECRET, time.time())
    assert Webhook(SECRET).verify(BODY, headers) == orjson.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(BODY + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + "A" * 32).verify(BODY, headers)
