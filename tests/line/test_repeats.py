"""Requests that come again: idempotency keys, and the retries of the official SDK."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import redis
from typesafe_sdk import Noul, NoulAnswer, TypeSafeClient

from client.stack import Stack
from tests.line.job_support import (
    ASYNC,
    CHORD,
    ONE_READ,
    ONE_SHARD,
    STAGES,
    cancel,
    job,
    ours,
    post,
    reads_running,
    submit,
    tokens_read,
    until,
)


def keyed(**more: str) -> dict[str, str]:
    """Headers with a key that nobody had before."""
    return {"idempotency-key": uuid4().hex, **more}


def test_a_key_that_comes_again_gets_the_same_answer_from_either_api(slow: Stack) -> None:
    headers = keyed(prefer="wait=20")
    first, again, elsewhere = (post(url, ONE_READ, headers) for url in (slow.url, slow.url, slow.urls[1]))
    assert first.status_code == again.status_code == elsewhere.status_code == 200
    assert first.content == again.content == elsewhere.content
    id = first.headers["x-typesafe-request-id"]
    assert again.headers["x-typesafe-request-id"] == elsewhere.headers["x-typesafe-request-id"] == id
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"


def test_a_key_with_another_body_is_refused(slow: Stack) -> None:
    headers = keyed(**ASYNC)
    submit(slow.url, ONE_READ, headers)
    response = post(slow.url, {**ONE_READ, "seed": 1}, headers)
    assert response.status_code == 422
    assert "another body" in response.json()["detail"]["message"]


def test_a_key_whose_first_request_still_waits_is_a_conflict(slow: Stack) -> None:
    headers = keyed(prefer="wait=20")
    with ThreadPoolExecutor() as threads:
        first = threads.submit(post, slow.url, ONE_SHARD, headers)
        time.sleep(0.5)
        response = post(slow.urls[1], ONE_SHARD, headers)
        assert response.status_code == 409
        assert int(response.headers["retry-after"]) >= 1
        assert first.result().status_code == 200
    assert post(slow.urls[1], ONE_SHARD, headers).content == first.result().content


def test_two_requests_at_once_with_one_key_are_one_decision(slow: Stack) -> None:
    headers = keyed(**ASYNC)
    with ThreadPoolExecutor(8) as threads:
        responses = list(threads.map(lambda n: post(slow.urls[n % 2], ONE_READ, headers), range(8)))
    accepted = [response.json()["id"] for response in responses if response.status_code == 202]
    assert len(set(accepted)) == 1
    assert {response.status_code for response in responses} <= {202, 409}


def test_a_key_that_got_a_job_gets_it_again_as_it_stands(slow: Stack) -> None:
    headers = keyed(**ASYNC)
    id = submit(slow.url, ONE_SHARD, headers)
    again = post(slow.urls[1], ONE_SHARD, headers)
    assert again.status_code == 202
    assert again.json()["id"] == id
    assert again.headers["location"] == f"/v1/jobs/{id}"
    assert again.headers["idempotent-replayed"] == "true"
    result = job(slow.url, id, wait=20)["result"]
    answered = post(slow.url, ONE_SHARD, headers)
    assert answered.status_code == 200
    assert answered.json() == result


def test_a_key_whose_request_was_refused_is_free_again(slow: Stack) -> None:
    headers = keyed()
    assert post(slow.url, {**ONE_READ, "model": "gpt-9"}, headers).status_code == 400
    response = post(slow.url, ONE_READ, headers)
    assert response.status_code == 200
    assert "idempotent-replayed" not in response.headers


def test_a_key_whose_request_was_invalid_was_never_taken(slow: Stack) -> None:
    headers = keyed()
    assert post(slow.url, {"questions": {}}, headers).status_code == 422
    assert post(slow.url, ONE_READ, headers).status_code == 200


def test_a_key_whose_job_was_canceled_says_so_again(slow: Stack) -> None:
    headers = keyed(**ASYNC)
    cancel(slow.url, submit(slow.url, ONE_SHARD, headers))
    until(lambda: post(slow.url, ONE_SHARD, headers).status_code == 409)
    assert "canceled" in post(slow.url, ONE_SHARD, headers).json()["detail"]["message"]


def test_a_key_whose_decision_failed_for_now_may_be_used_again(slow: Stack) -> None:
    headers = keyed(prefer="wait=20")
    body: dict[str, Any] = {**ONE_SHARD, "deadline_ms": 500}
    for _ in range(2):
        failed = post(slow.url, body, headers)
        assert failed.status_code == 529
        assert int(failed.headers["retry-after"]) >= 1
        assert "idempotent-replayed" not in failed.headers, "it was tried again, as the client was told"


def test_a_key_of_no_or_too_many_characters_is_refused(slow: Stack) -> None:
    for key in ("", "x" * 256):
        assert post(slow.url, ONE_READ, {"idempotency-key": key}).status_code == 400


def test_over_the_sync_limit_a_retry_of_the_sdk_finds_its_running_decision(slow: Stack) -> None:
    once = read_by(slow, lambda: post(slow.url, STAGES, {"prefer": "wait=20"}).raise_for_status())
    questions = {id: Noul(instructions="Is it urgent?") for id in STAGES["questions"]}

    def ask() -> None:
        with TypeSafeClient(base_url=slow.url, api_key="x") as client:
            found = client.system_one(
                "My printer is on fire.",
                questions,
                model="jev-latest",
                extra_body={"questions": dict(STAGES["questions"])},
            )
        assert isinstance(found.answers["q5"], NoulAnswer)
        assert found.answers["q5"].noul == 0.9

    start = time.monotonic()
    assert read_by(slow, ask) == once
    assert time.monotonic() - start > 2, "the first request was refused after a second"


def test_the_same_body_by_another_client_is_another_decision(slow: Stack) -> None:
    once = read_by(slow, lambda: post(slow.url, ONE_READ).raise_for_status())
    assert once > 0
    assert read_by(slow, lambda: post(slow.url, ONE_READ).raise_for_status()) == once


def test_nothing_of_all_this_stays_in_redis_for_ever(slow: Stack) -> None:
    cancel(slow.url, submit(slow.url, CHORD))
    assert job(slow.url, submit(slow.url, CHORD, keyed()), wait=30)["done"]
    with redis.Redis.from_url(slow.redis_url) as connection:
        kept = ours(connection)
    assert kept
    assert [name for name, ttl in kept.items() if ttl < 0] == []


def read_by(stack: Stack, action: Any) -> float:
    """Prompt tokens that the engine reads for an action."""
    until(lambda: reads_running(stack) == 0)
    before = tokens_read(stack)
    action()
    return tokens_read(stack) - before
