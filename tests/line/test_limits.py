"""Limits of what one decision may take: each refusal names the limit and the value."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import psutil
import pytest
import redis
import zstandard

from client.stack import Stack
from tests.line.conftest import ask_at

URGENT = {"type": "noul", "instructions": "Is it urgent?"}


def test_a_decision_of_too_many_reads_is_refused_with_the_limit(script: str) -> None:
    questions = {f"q{number}": URGENT for number in range(4)}
    with Stack(engines=script, env={"CANVASS_MOST_READS": "10"}) as stack:
        assert ask_at(stack.url, questions=questions, samples=2).status_code == 200
        response = ask_at(stack.url, questions=questions, samples=3)
    assert response.status_code == 422
    (entry,) = response.json()["detail"]
    assert entry["loc"] == ["body", "questions"]
    assert "12 reads" in entry["msg"]
    assert "CANVASS_MOST_READS" in entry["msg"]


def test_401_questions_are_too_many(stack: Stack) -> None:
    response = ask_at(stack.url, questions={f"q{number}": URGENT for number in range(401)})
    assert response.status_code == 422
    assert response.json()["detail"][0]["type"] == "too_long"


def test_every_key_of_ours_expires(stack: Stack) -> None:
    assert ask_at(stack.url, questions={"urgent": URGENT}).status_code == 200
    with redis.Redis.from_url(stack.redis_url) as connection:
        names = [
            name for name in connection.scan_iter("canvass:*") if not name.startswith(b"canvass:celery:")
        ]
        assert names
        assert [name for name in names if connection.ttl(name) < 0] == []


CLOSE = {
    "CANVASS_MAX_BODY_BYTES": "20000",
    "CANVASS_MAX_QUESTIONS": "3",
    "CANVASS_MAX_JSON_DEPTH": "10",
    "CANVASS_MAX_IMAGES": "2",
    "CANVASS_MAX_IMAGE_PIXELS": "16",
}
TINY = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"  # one pixel


@pytest.fixture(scope="module")
def close(script: str) -> Iterator[Stack]:
    """A stack whose limits are close."""
    with Stack(engines=script, engine_args=("--max-model-len", "2048"), env=CLOSE) as running:
        yield running


def nested(depth: int) -> Any:
    """A state for a body that nests so deep."""
    value: Any = "x"
    for _ in range(depth - 1):
        value = [value]
    return value


OVER: dict[str, tuple[dict[str, Any], int, str, tuple[str, ...]]] = {
    "body": ({"state": "x" * 20_000}, 413, "CANVASS_MAX_BODY_BYTES", ("20000",)),
    "questions": (
        {"questions": {f"q{number}": URGENT for number in range(4)}},
        422,
        "CANVASS_MAX_QUESTIONS",
        ("4 questions", "takes 3"),
    ),
    "depth": ({"state": nested(11)}, 422, "CANVASS_MAX_JSON_DEPTH", ("more than 10 deep",)),
    "state": ({"state": "word " * 3000}, 400, "the model's context", ("tokens", "holds 2048")),
    "images": ({"images": [TINY] * 3}, 422, "CANVASS_MAX_IMAGES", ("3 images", "takes 2")),
}


@pytest.mark.parametrize("limit", OVER)
def test_each_limit_is_told_by_name_and_value(close: Stack, limit: str) -> None:
    body, status, name, told = OVER[limit]
    response = ask_at(close.url, **{"questions": {"a": URGENT}, **body})
    assert response.status_code == status, response.text
    for text in (name, *told):
        assert text in response.text


def test_what_an_engine_refuses_is_told_without_where_it_is(close: Stack) -> None:
    response = ask_at(close.url, questions={"a": URGENT}, state="word " * 3000, images=[TINY])
    assert response.status_code == 400, response.text
    detail = response.json()["detail"]
    assert detail["error_type"] == "max_tokens_exceeded"
    assert detail["message"].startswith("the engine says: ")
    assert "maximum context length" in detail["message"]
    assert "127.0.0.1" not in response.text
    assert "http" not in response.text


def test_what_is_within_the_limits_is_answered(close: Stack) -> None:
    questions = {f"q{number}": URGENT for number in range(3)}
    assert ask_at(close.url, questions=questions).status_code == 200
    assert ask_at(close.url, questions={"a": URGENT}, state=nested(10)).status_code == 200
    assert ask_at(close.url, questions={"a": URGENT}, images=[TINY] * 2).status_code == 200


@pytest.mark.parametrize("depth", [101, 1025, 5000])
def test_a_body_of_any_depth_is_told_the_limit(stack: Stack, depth: int) -> None:
    response = httpx2.post(f"{stack.url}/v1/systemone", content=b"[" * depth + b"]" * depth)
    assert response.status_code == 422
    assert "nested more than 100 deep (CANVASS_MAX_JSON_DEPTH)" in response.text


def test_openais_doors_and_batches_keep_to_the_same_limits(close: Stack) -> None:
    question = {"type": "predicate", "instructions": "Is it urgent?"}
    body = {"model": "jev-latest", "input": "x", "questions": [question] * 4}
    response = httpx2.post(f"{close.url}/v1/decisions", json=body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "questions")
    assert "CANVASS_MAX_QUESTIONS" in response.text
    batch = {"model": "jev-latest", "states": ["x"], "questions": {f"q{n}": URGENT for n in range(4)}}
    response = httpx2.post(f"{close.url}/v1/batches", json=batch)
    assert response.status_code == 422
    assert "CANVASS_MAX_QUESTIONS" in response.text


FORMS = {
    "no boundary": ("multipart/form-data", b"x"),
    "a charset that it is not in": ("multipart/form-data; boundary=b; charset=idna", b"\xff"),
    "a charset that makes half of a pair": ("multipart/form-data; boundary=b; charset=utf-7", b"+2AA-"),
    "no part": ("multipart/form-data; boundary=b", b""),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_cannot_be_read_is_refused(stack: Stack, name: str) -> None:
    kind, content = FORMS[name]
    form = b'--b\r\nContent-Disposition: form-data; name="request"\r\n\r\n%b\r\n--b--\r\n' % content
    response = httpx2.post(f"{stack.url}/v1/systemone", content=form, headers={"content-type": kind})
    assert response.status_code == 422, response.text
    assert response.json()["detail"][0]["type"] == "json_invalid"


@pytest.fixture(scope="module")
def wide(script: str) -> Iterator[Stack]:
    """A stack whose model has a context of 262,144 tokens."""
    with Stack(engines=script) as running:
        yield running


def worst_health(stack: Stack, content: bytes, **headers: str) -> tuple[httpx2.Response, float]:
    """The response to a body, and the longest that `/health` took meanwhile (seconds)."""
    worst, done = [0.0], threading.Event()

    def look() -> None:
        with httpx2.Client(timeout=60) as client:
            while not done.is_set():
                since = time.perf_counter()
                assert client.get(f"{stack.url}/health").status_code == 200
                worst[0] = max(worst[0], time.perf_counter() - since)
                time.sleep(0.01)

    looking = threading.Thread(target=look)
    looking.start()
    time.sleep(0.1)
    try:
        response = httpx2.post(f"{stack.url}/v1/systemone", content=content, headers=headers, timeout=90)
    finally:
        done.set()
        looking.join()
    return response, worst[0]


def body(**more: Any) -> bytes:
    return json.dumps({"model": "jev-latest", "state": "x", "questions": {"q": URGENT}, **more}).encode()


SMALL: dict[str, tuple[bytes, dict[str, str], int]] = {
    "gzip members": (gzip.compress(b"") * 130_000, {"content-encoding": "gzip"}, 400),
    "zstd frames": (zstandard.compress(b"") * 130_000, {"content-encoding": "zstd"}, 400),
    "wrong names": (body(questions={"q": {**URGENT, "depends_on": [0] * 400_000}}), {}, 422),
    "wrong options": (
        body(questions={"q": {"type": "choice", "criteria": {str(n): 7 for n in range(100_000)}}}),
        {},
        422,
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_no_small_body_stops_the_api(stack: Stack, name: str) -> None:
    content, headers, status = SMALL[name]
    response, worst = worst_health(stack, content, **headers)
    assert response.status_code == status, response.text[:500]
    assert len(response.content) < 100_000
    # It was 12 to 14 seconds.
    assert worst < 3


@pytest.mark.parametrize("kind", ["noul", "span"])
def test_a_state_far_too_long_is_refused_in_little_time_and_memory(wide: Stack, kind: str) -> None:
    process = psutil.Process(wide.apis[0].pid)
    before = process.memory_info().rss
    content = body(state="ab " * 5_000_000, questions={"q": {"type": kind, "instructions": "Who?"}})
    response, worst = worst_health(wide, content)
    assert response.status_code == 400, response.text
    assert response.json()["detail"]["error_type"] == "max_tokens_exceeded"
    assert "needs more than 262144 tokens" in response.text
    assert "holds 262144" in response.text
    # It took 1.9 GB.
    assert process.memory_info().rss - before < 500 * 2**20
    assert worst < 3


def test_whole_numbers_of_any_size_keep_their_digits(stack: Stack) -> None:
    large = 123456789012345678901234567890
    asked = {
        "state": {"n": large, "m": -large},
        "metadata": {"n": large},
        "diagnostics": True,
        "questions": {
            "s": {"type": "score", "instructions": "How heavy?", "criteria": [{"up to": large}, "b"]}
        },
    }
    response = ask_at(stack.url, **asked)
    assert response.status_code == 200, response.text
    assert json.loads(response.content)["answers"]["s"]["legend"]["0"] == {"up to": large}
    job = httpx2.get(f"{stack.url}/v1/jobs/{response.headers['x-typesafe-request-id']}")
    assert json.loads(job.content)["metadata"] == {"n": large}
    assert json.loads(job.content)["result"]["answers"]["s"]["legend"]["0"] == {"up to": large}
    refused = ask_at(stack.url, **{**asked, "samples": large})
    assert (refused.status_code, json.loads(refused.content)["detail"][0]["input"]) == (422, large)


ID_HEADERS = {
    "/v1/systemone": "x-typesafe-request-id",
    "/v1/decisions": "x-request-id",
    "/v1/chat/completions": "x-request-id",
}


@pytest.mark.parametrize("path", ID_HEADERS)
@pytest.mark.parametrize("content", [b"{", b'{"model": "nobody"}'])
def test_a_refusal_has_an_id_too(stack: Stack, path: str, content: bytes) -> None:
    response = httpx2.post(stack.url + path, content=content)
    assert response.status_code in (400, 404, 422)
    assert response.headers[ID_HEADERS[path]].startswith("dec_")
