"""API keys on a real stack of two API processes: who is let in, what is theirs, and how much they may ask."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
import redis
from typesafe_sdk import (
    Noul,
    RetryPolicy,
    TypeSafeAuthenticationError,
    TypeSafeClient,
    TypeSafePermissionDeniedError,
    TypeSafeRateLimitError,
)

from client.stack import Stack

ADMIN = "an admin key for the tests"
URGENT = {"urgent": {"type": "noul", "instructions": "Is it urgent?"}}
READ_MS = 100
NO_RETRY = RetryPolicy(max_retries=0)


@pytest.fixture(scope="module")
def closed(script: str) -> Iterator[Stack]:
    """Two API processes with one Redis, closed by a first key; every read takes 100 ms."""
    latency = ("--latency", f"{READ_MS},0,1000", "--max-model-len", "8192")
    with Stack(engines=script, apis=2, engine_args=latency, env={"CANVASS_ADMIN_KEY": ADMIN}) as stack:
        make(stack, "the first")
        until(lambda: [ask(url).status_code for url in stack.urls] == [403, 403], 3)
        yield stack


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def make(stack: Stack, name: str, **limits: int) -> dict[str, Any]:
    response = httpx2.post(f"{stack.url}/v1/keys", json={"name": name, **limits}, headers=bearer(ADMIN))
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


def revoke(stack: Stack, id: str) -> httpx2.Response:
    return httpx2.delete(f"{stack.url}/v1/keys/{id}", headers=bearer(ADMIN))


def ask(url: str, headers: Any = None, **body: Any) -> httpx2.Response:
    whole = {"model": "jev-latest", "state": "My printer is on fire.", "questions": URGENT, **body}
    return httpx2.post(f"{url}/v1/systemone", json=whole, headers=headers, timeout=60)


def until(true: Callable[[], bool], limit_s: float) -> float:
    """Wait for something to be so; the seconds it took."""
    start = time.monotonic()
    while not true():
        assert time.monotonic() - start < limit_s, f"not so within {limit_s} s"
        time.sleep(0.02)
    return time.monotonic() - start


def test_a_key_made_through_one_process_works_at_the_other_at_once(closed: Stack) -> None:
    key = make(closed, "at once")["key"]
    assert re.fullmatch(r"cvs_[A-Za-z0-9_-]{32,}", key)
    assert ask(closed.urls[1], bearer(key)).status_code == 200
    assert ask(closed.urls[1], {"x-api-key": key}).status_code == 200


def test_a_request_without_a_key_is_403_and_with_a_wrong_one_401(closed: Stack) -> None:
    missing = ask(closed.url)
    assert missing.status_code == 403
    assert missing.json()["detail"]["error_type"] == "authentication_error"
    for headers in (
        bearer("cvs_" + 40 * "x"),
        bearer(ADMIN),
        {"x-api-key": b"\xe9"},
        {"Authorization": "Basic eDp5"},
    ):
        wrong = ask(closed.url, headers)
        assert wrong.status_code == 401, headers
        assert wrong.json()["detail"]["error_type"] == "authentication_error"
        assert wrong.headers["www-authenticate"] == "Bearer"


def test_a_request_that_is_not_let_in_is_not_read(closed: Stack) -> None:
    response = httpx2.post(f"{closed.url}/v1/systemone", content=b"no JSON")
    assert response.status_code == 403


def test_models_and_jobs_want_a_key_and_the_probes_do_not(closed: Stack) -> None:
    key = make(closed, "models")["key"]
    for path in ("/v1/models", "/v1/jobs"):
        statuses = [
            httpx2.get(f"{closed.url}{path}", headers=headers).status_code
            for headers in ({}, bearer("cvs_wrong"), bearer(key))
        ]
        assert statuses == [403, 401, 200], path
    assert "error_type" in httpx2.get(f"{closed.url}/v1/models").json()["detail"]
    assert httpx2.get(f"{closed.url}/v1/jobs").json()["code"] == "no_key"
    for path in ("/health", "/ready"):
        assert httpx2.get(f"{closed.url}{path}").status_code == 200


def test_a_revoked_key_is_out_at_every_process_within_two_seconds(closed: Stack) -> None:
    made = make(closed, "to be revoked")
    headers = bearer(made["key"])
    assert ask(closed.urls[1], headers).status_code == 200
    response = revoke(closed, made["id"])
    assert response.status_code == 200
    assert response.json()["revoked_at"]
    assert ask(closed.urls[0], headers).status_code == 401, "the process that revoked it knows at once"
    assert until(lambda: ask(closed.urls[1], headers).status_code == 401, 5) < 2
    again = revoke(closed, made["id"]).json()
    assert again["revoked_at"] == response.json()["revoked_at"], "the first time stays"


def test_the_official_client_works_with_a_key_and_raises_its_own_errors(closed: Stack) -> None:
    made = make(closed, "the SDK's", rate_per_minute=1)
    questions = {"urgent": Noul(instructions="Is it urgent?")}
    with TypeSafeClient(base_url=closed.url, api_key=made["key"], retry=NO_RETRY) as client:
        assert client.system_one("It burns.", questions).answers["urgent"]
        assert client.models.list().models
        with pytest.raises(TypeSafeRateLimitError, match="1 times a minute") as limited:
            client.system_one("It burns.", questions)
        assert 0 < (limited.value.retry_after_ms or 0) <= 60_000
    with TypeSafeClient(base_url=closed.url, api_key="cvs_wrong", retry=NO_RETRY) as client:
        with pytest.raises(TypeSafeAuthenticationError, match="not one of this server's"):
            client.system_one("It burns.", questions)
        with pytest.raises(TypeSafeAuthenticationError):
            client.models.list()


def test_the_official_client_without_a_key_is_denied(closed: Stack) -> None:
    def keyless(request: Any) -> Any:
        del request.headers["authorization"]
        return request

    with (
        httpx2.Client(event_hooks={"request": [keyless]}) as http,
        TypeSafeClient(base_url=closed.url, api_key="x", retry=NO_RETRY, http_client=http) as client,
        pytest.raises(TypeSafePermissionDeniedError, match="wants an API key"),
    ):
        client.system_one("It burns.", {"urgent": Noul(instructions="Is it urgent?")})


def test_the_rate_is_told_on_every_answer_and_kept_across_processes(closed: Stack) -> None:
    key = make(closed, "three a minute", rate_per_minute=3)["key"]
    lefts = []
    for url in (closed.urls[0], closed.urls[1], closed.urls[0]):
        response = ask(url, bearer(key))
        assert response.status_code == 200
        assert response.headers["ratelimit-policy"] == '"default";q=3;w=60'
        left, reset = re.fullmatch(r'"default";r=(\d+);t=(\d+)', response.headers["ratelimit"]).groups()  # type: ignore[union-attr]
        lefts.append(int(left))
        assert 50 <= int(reset) <= 60
    assert lefts == [2, 1, 0]
    refused = ask(closed.urls[1], bearer(key))
    assert refused.status_code == 429
    assert refused.json()["detail"]["error_type"] == "rate_limit_error"
    assert refused.headers["ratelimit"].startswith('"default";r=0;t=')
    assert 50 <= int(refused.headers["retry-after"]) <= 60
    assert ask(closed.urls[1], bearer(make(closed, "another")["key"])).status_code == 200


def test_a_request_that_fails_counts_and_tells_the_rate_too(closed: Stack) -> None:
    key = make(closed, "failing", rate_per_minute=5)["key"]
    response = ask(closed.url, bearer(key), questions={})
    assert response.status_code == 422
    assert response.headers["ratelimit"].startswith('"default";r=4;')


def test_reading_jobs_is_free(closed: Stack) -> None:
    key = make(closed, "one a minute", rate_per_minute=1)["key"]
    job = ask(closed.url, {**bearer(key), "Prefer": "respond-async"}).json()
    for _ in range(3):
        assert httpx2.get(f"{closed.url}/v1/jobs/{job['id']}", headers=bearer(key)).status_code == 200
    assert ask(closed.url, bearer(key)).status_code == 429


def test_a_batch_counts_once_whatever_its_size(closed: Stack) -> None:
    key = make(closed, "one batch a minute", rate_per_minute=1)["key"]
    batch = {"model": "jev-latest", "questions": URGENT, "states": ["It burns.", "It rains."]}

    def post() -> httpx2.Response:
        return httpx2.post(f"{closed.url}/v1/batches", json=batch, headers=bearer(key))

    accepted, refused = post(), post()
    assert (accepted.status_code, refused.status_code) == (202, 429), accepted.text
    assert accepted.headers["ratelimit"].startswith('"default";r=0;')
    assert refused.json()["code"] == "rate_limited"
    assert int(refused.headers["retry-after"]) >= 1


def test_of_many_at_once_exactly_as_many_as_the_rate_are_let_in(closed: Stack) -> None:
    key = make(closed, "seven", rate_per_minute=7)["key"]
    headers = {**bearer(key), "Prefer": "respond-async"}
    with ThreadPoolExecutor(10) as executor:
        statuses = list(executor.map(lambda n: ask(closed.urls[n % 2], headers).status_code, range(20)))
    assert sorted(statuses) == 7 * [202] + 13 * [429]


def test_a_key_has_as_many_open_decisions_as_it_may(closed: Stack) -> None:
    key = make(closed, "one open", most_open=1)["key"]
    chain = {str(n): {**URGENT["urgent"], **({"depends_on": [str(n - 1)]} if n else {})} for n in range(20)}
    headers = {**bearer(key), "Prefer": "respond-async"}
    job = ask(closed.urls[0], headers, questions=chain).json()
    refused = ask(closed.urls[1], headers)
    assert refused.status_code == 429
    assert "1 decisions of this key are open" in refused.json()["detail"]["message"]
    assert int(refused.headers["retry-after"]) >= 1
    assert ask(closed.urls[1], bearer(make(closed, "another")["key"])).status_code == 200
    assert httpx2.post(f"{closed.url}/v1/jobs/{job['id']}/cancel", headers=bearer(key)).status_code == 202
    until(lambda: ask(closed.urls[1], headers).status_code == 202, 10)


def test_another_keys_job_is_a_404(closed: Stack) -> None:
    mine, theirs = (make(closed, name)["key"] for name in ("mine", "theirs"))
    id = ask(closed.url, bearer(mine)).headers["x-typesafe-request-id"]
    for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("GET", "/deliveries")):
        url = f"{closed.urls[1]}/v1/jobs/{id}{path}"
        assert httpx2.request(method, url, headers=bearer(mine)).status_code in (200, 202), path
        response = httpx2.request(method, url, headers=bearer(theirs))
        assert response.status_code == 404, path
        assert response.json()["code"] == "not_found"
        assert httpx2.request(method, url).status_code == 403, path

    def listed(key: str) -> list[str]:
        jobs = httpx2.get(f"{closed.url}/v1/jobs", headers=bearer(key)).json()["data"]
        return [job["id"] for job in jobs]

    assert listed(mine) == [id]
    assert listed(theirs) == []


def test_an_idempotency_key_is_the_callers_own(closed: Stack) -> None:
    first, second = (make(closed, name)["key"] for name in ("first", "second"))
    ids = [
        ask(closed.url, {**bearer(key), "Idempotency-Key": "k"}).headers["x-typesafe-request-id"]
        for key in (first, second, first)
    ]
    assert ids[0] == ids[2] != ids[1]


def test_two_keys_share_no_prefix_cache_and_one_key_does(closed: Stack) -> None:
    state = "The printer on the third floor caught fire again. " * 20

    def cached(key: str) -> int:
        response = ask(closed.url, bearer(key), state=state, diagnostics=True)
        return sum(int(read["cached_tokens"]) for read in response.json()["diagnostics"]["reads"])

    first, second = (make(closed, name)["key"] for name in ("salted", "salted otherwise"))
    assert cached(first) == 0
    assert cached(first) > 100
    assert cached(second) == 0
    assert cached(second) > 100


def test_keys_are_stored_hashed_and_a_listing_has_no_secrets(closed: Stack) -> None:
    made = make(closed, "hashed", rate_per_minute=9)
    assert ask(closed.url, bearer(made["key"])).status_code == 200
    folder = closed.logs.parent
    written = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert made["prefix"].encode() in written, "Redis's log of its commands is among what is looked through"
    assert made["key"].encode() not in written
    with redis.Redis.from_url(closed.redis_url) as connection:
        rates = list(connection.scan_iter("canvass:rate:*"))
        assert rates
        assert [name for name in rates if connection.ttl(name) < 0] == []
    listed = httpx2.get(f"{closed.url}/v1/keys", headers=bearer(ADMIN))
    assert listed.headers["cache-control"] == "no-store"
    assert made["key"] not in listed.text
    assert "whsec_" not in listed.text
    newest = listed.json()["data"][0]
    assert newest == {name: made[name] for name in made if name not in ("key", "webhook_secret")}


def test_the_admin_key_alone_manages_keys(closed: Stack, stack: Stack) -> None:
    key = make(closed, "no admin")["key"]
    url = f"{closed.url}/v1/keys"
    for headers, status, code in (
        ({}, 403, "no_key"),
        (bearer(key), 401, "wrong_key"),
        (bearer(ADMIN + "x"), 401, "wrong_key"),
    ):
        for method, target in (("GET", url), ("POST", url), ("DELETE", f"{url}/key_x")):
            response = httpx2.request(method, target, headers=headers, json={"name": "x"})
            assert (response.status_code, response.json()["code"]) == (status, code)
    without = httpx2.get(f"{stack.url}/v1/keys", headers=bearer(ADMIN))
    assert (without.status_code, without.json()["code"]) == (403, "no_admin_key")
    assert "CANVASS_ADMIN_KEY" in without.json()["detail"]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"name": ""},
        {"name": "x", "rate_per_minute": -1},
        {"name": "x", "most_open": "1"},
        {"name": "x", "a": 1},
    ],
)
def test_a_wrong_key_to_make_is_told(closed: Stack, wrong: dict[str, Any]) -> None:
    response = httpx2.post(f"{closed.url}/v1/keys", json=wrong, headers=bearer(ADMIN))
    assert response.status_code == 422
    assert response.json()["code"] == "invalid_request"


def test_a_key_that_never_was_cannot_be_revoked(closed: Stack) -> None:
    response = revoke(closed, "key_none")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_revoking_the_last_key_does_not_open_the_server_nor_does_a_restart(script: str) -> None:
    with Stack(engines=script, env={"CANVASS_ADMIN_KEY": ADMIN}) as stack:
        assert ask(stack.url).status_code == 200, "a server without any key is open"
        assert ask(stack.url, bearer("cvs_of_another_server")).status_code == 200
        made = make(stack, "the only one")
        assert ask(stack.url).status_code == 403
        revoke(stack, made["id"])
        assert ask(stack.url).status_code == 403
        stack.apis[0].stop()
        stack.restart(stack.apis[0])
        assert ask(stack.url).status_code == 403
        assert ask(stack.url, bearer(made["key"])).status_code == 401
        limited = bearer(make(stack, "limited", rate_per_minute=100)["key"])
        assert ask(stack.url, limited).status_code == 200
        assert stack.redis is not None
        stack.redis.stop()
        assert ask(stack.url).status_code == 403, "it was seen to be closed"
        for headers in (limited, bearer("cvs_unknown")):
            start = time.monotonic()
            response = ask(stack.url, headers)
            assert time.monotonic() - start < 9, "well before the official client gives up, at 10 s"
            assert response.status_code == 529, "what cannot be counted or looked up is not let by"
            assert "Redis does not answer" in response.json()["detail"]["message"]
