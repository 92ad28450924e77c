"""The pass-through: what no door claims goes to an engine as it is, and comes back as it arrives.

`pytest -o log_cli=true --log-cli-level=INFO` shows the figures.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import httpx2
import psutil
import pytest
from openai import OpenAI

from client.stack import Stack
from engine.gguf_model import find_model
from engine.tokenizer import ensure_folder
from tests.line.job_support import until
from tests.line.relay_support import MIB, Upstream

log = logging.getLogger(__name__)

ADMIN = {"authorization": "Bearer admin-secret"}


@pytest.fixture(scope="module")
def upstream(stack: Stack) -> Iterator[Upstream]:
    with Upstream(stack.engine_urls[0]) as running:
        yield running


def environment() -> dict[str, str]:
    tokenizer = str(ensure_folder(find_model(None)))
    return {"CANVASS_TOKENIZER": tokenizer, "CANVASS_ADMIN_KEY": "admin-secret"}


@pytest.fixture(scope="module")
def relaying(upstream: Upstream) -> Iterator[Stack]:
    """A stack whose only engine is the one that does as it is told."""
    with Stack(engines=upstream.url, env=environment()) as running:
        yield running


def chat(behave: str, **more: Any) -> dict[str, Any]:
    return {"model": "script", "messages": [{"role": "user", "content": "Hi"}], "behave": behave, **more}


def post(stack: Stack, body: dict[str, Any], **more: Any) -> httpx2.Response:
    return httpx2.post(f"{stack.url}/v1/chat/completions", json=body, timeout=60, **more)


def test_a_stream_arrives_piece_by_piece(relaying: Stack, upstream: Upstream) -> None:
    delays, firsts = [], []
    post(relaying, chat("echo"))
    for _ in range(3):
        with httpx2.stream("POST", f"{relaying.url}/v1/chat/completions", json=chat("ticks")) as response:
            assert response.headers["content-type"] == "text/event-stream"
            came = [(perf_counter(), piece) for piece in response.iter_raw()]
        assert [piece for _, piece in came] == [b"data: %d\n\n" % n for n in range(10)]
        delays.append(1000 * max(at - wrote for (at, _), wrote in zip(came, upstream.wrote_at, strict=True)))
        firsts.append(1000 * (came[0][0] - upstream.wrote_at[0]))
    log.info("first chunks %s ms after the engine's; the slowest of ten %s ms", firsts, delays)
    assert min(delays) < 90


def test_the_openai_client_streams_through(stack: Stack) -> None:
    with OpenAI(base_url=f"{stack.url}/v1", api_key="x") as client:
        stream = client.chat.completions.create(
            model="script", messages=[{"role": "user", "content": "Hi"}], stream=True, max_tokens=6
        )
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream).startswith("The script has")


def test_status_body_and_headers_are_the_engines_own(relaying: Stack) -> None:
    response = post(relaying, chat("teapot"))
    assert (response.status_code, response.content, response.headers["x-engine"]) == (
        418,
        b'{"odd": 1.5}',
        "tea",
    )
    assert response.headers["content-type"].startswith("application/json")
    assert len(response.headers.get_list("date")) == 1


def test_a_request_goes_on_as_it_is_but_for_what_was_said_to_us(relaying: Stack) -> None:
    headers = {
        "authorization": "Bearer x",
        "x-api-key": "y",
        "cookie": "a=b",
        "x-mine": "z",
        "connection": "close",
    }
    body = chat("echo", number=1.0, nested={"ü": [None]})
    echo = post(relaying, body, headers=headers).json()
    assert echo["body"] == body
    sent = {name.lower(): value for name, value in echo["headers"].items()}
    assert sent["x-mine"] == "z"
    assert sent["content-type"] == "application/json"
    assert not sent.keys() & {"authorization", "x-api-key", "cookie", "connection"}
    assert sent["host"] not in relaying.url


def test_an_alias_is_sent_by_the_served_name(relaying: Stack) -> None:
    body = chat("echo", model="jev-latest")
    assert post(relaying, body).json()["body"] == {**body, "model": "script"}


CURL = "application/x-www-form-urlencoded"
"""What curl says of any `-d`."""


@pytest.mark.parametrize("kind", [None, CURL, "text/plain", "Application/JSON; charset=UTF-8", "a/b+JSON"])
def test_a_json_object_is_one_whatever_its_content_type(relaying: Stack, kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    body = chat("echo", model="jev-latest")
    for path in ("/v1/chat/completions", "/v1/raw/chat/completions"):
        response = httpx2.post(relaying.url + path, content=json.dumps(body), headers=headers)
        assert response.status_code == 200, response.text
        assert response.json()["body"] == {**body, "model": "script"}
    content = json.dumps({"model": "jev-latest", "prompt": "Hi", "max_tokens": 2})
    response = httpx2.post(f"{relaying.url}/v1/completions", content=content, headers=headers)
    assert response.status_code == 200, response.text
    assert response.json()["model"] == "script"
    wrong = httpx2.post(f"{relaying.url}/v1/completions", content='{"model": "nobody"}', headers=headers)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (404, "model_not_found")


def echoed(relaying: Stack, content: bytes, kind: str) -> tuple[bytes, str]:
    """A body as it came to the engine, and its content type there."""
    response = httpx2.post(f"{relaying.url}/v1/echo", content=content, headers={"content-type": kind})
    assert response.status_code == 200, response.text
    return response.content, response.headers["x-came-as"]


def test_the_name_is_all_that_changes_of_a_body(relaying: Stack) -> None:
    content = (
        b' { "seed": 123456789012345678901234567890, "model" : "%s",\n "a": [1.0, 1e2, -0.0], '
        b'"text": "\\u00fc \xc3\xbc", "nested": {"model": "jev-latest"}}'
    )
    sent, served = content % b"jev-latest", content % b"script"
    assert echoed(relaying, sent, "application/json") == (served, "application/json")
    # An engine that goes by the content type is told what it is.
    assert echoed(relaying, sent, CURL) == (served, "application/json")
    assert echoed(relaying, served, "application/json") == (served, "application/json")


def test_a_form_that_names_the_alias_reaches_the_engine_by_the_served_name(relaying: Stack) -> None:
    kind = "multipart/form-data; boundary=b"
    part = b'--b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'
    file = b'--b\r\nContent-Disposition: form-data; name="file"; filename="model"\r\n\r\njev-latest\r\n'
    # A name may come twice: an engine's API has lists.
    rest = file + part % (b"x[]", b"1") + part % (b"x[]", b"2") + b"--b--\r\n"
    found = echoed(relaying, part % (b"model", b"jev-latest") + rest, kind)
    assert found == (part % (b"model", b"script") + rest, kind)
    assert echoed(relaying, b"a=1&model=jev-latest&b=%20", CURL) == (b"a=1&model=script&b=%20", CURL)


def test_a_line_of_too_many_fields_is_refused(relaying: Stack) -> None:
    content = b"&".join([b"a=1"] * 2000)
    response = httpx2.post(f"{relaying.url}/v1/echo", content=content, headers={"content-type": CURL})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_form")


@pytest.mark.parametrize("content", [b"", b"{no json", b"[1]", b"\xff\x00binary", b"{" * 5000])
def test_what_is_no_json_and_says_so_goes_on_as_it_is(relaying: Stack, content: bytes) -> None:
    kind = "application/octet-stream"
    assert echoed(relaying, content, kind) == (content, kind)


def test_in_a_mixed_pool_the_model_is_read_whatever_the_content_type(script: str) -> None:
    with (
        Stack(engines=script) as other,
        Stack(engines=script, engine_args=("--model-name", "second"), env=environment()) as stack,
    ):
        url = other.engine_urls[0]
        made = httpx2.post(f"{stack.url}/v1/engines", json={"url": url}, headers=ADMIN)
        assert made.status_code == 202
        until(lambda: len(httpx2.get(f"{stack.url}/v1/models").json()["data"]) > 2, within_s=20)
        for model in ("script", "second") * 3:
            content = json.dumps({"model": model, "prompt": "Hi", "max_tokens": 2})
            answer = httpx2.post(
                f"{stack.url}/v1/completions", content=content, headers={"content-type": CURL}
            )
            assert (answer.status_code, answer.json()["model"]) == (200, model)


def test_what_no_door_claims_goes_to_an_engine(relaying: Stack) -> None:
    tokens = httpx2.post(
        f"{relaying.url}/v1/completions", json={"model": "script", "prompt": "Hi", "max_tokens": 2}
    )
    assert tokens.json()["usage"]["completion_tokens"] == 2
    missing = httpx2.post(f"{relaying.url}/v1/embeddings?a=1", json={"model": "script"})
    assert (missing.status_code, missing.text) == (404, "404: Not Found")
    form = httpx2.post(f"{relaying.url}/v1/audio/speech", data={"model": "nobody"}, files={"file": b"x"})
    assert (form.status_code, form.json()["error"]["code"]) == (404, "model_not_found")


def test_a_form_whose_model_is_no_text_is_refused(relaying: Stack) -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n+2AA-\r\n--b--\r\n'
    kind = {"content-type": "multipart/form-data; boundary=b; charset=utf-7"}
    response = httpx2.post(f"{relaying.url}/v1/audio/speech", content=form, headers=kind)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_form")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/models", 405),
        ("GET", "/v1/decisions", 405),
        ("POST", "/v1/jobs/x/y", 404),
        ("POST", "/v1/%2e%2e/metrics", 404),
        ("POST", "/v2/chat", 404),
    ],
)
def test_our_own_paths_are_never_passed_on(relaying: Stack, method: str, path: str, status: int) -> None:
    response = httpx2.request(method, relaying.url + path, content=b"{}" if method == "POST" else None)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"


def test_a_model_that_nobody_serves_is_404(relaying: Stack) -> None:
    response = post(relaying, chat("echo", model="gpt-9"))
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")
    assert post(relaying, chat("echo", model=7)).status_code == 400


def test_a_client_that_goes_away_ends_the_engines_request(relaying: Stack, upstream: Upstream) -> None:
    ended = upstream.ended
    with (
        httpx2.Client(timeout=0.3) as client,
        pytest.raises(httpx2.ReadTimeout),
        client.stream("POST", f"{relaying.url}/v1/chat/completions", json=chat("silent")),
    ):
        pass
    until(lambda: upstream.ended > ended, within_s=5)
    ended = upstream.ended
    with httpx2.stream("POST", f"{relaying.url}/v1/chat/completions", json=chat("big", mib=200)) as response:
        next(response.iter_raw())
    until(lambda: upstream.ended > ended, within_s=5)


def test_an_answer_that_breaks_off_is_seen_to_be_broken(relaying: Stack) -> None:
    with pytest.raises(httpx2.RemoteProtocolError):
        post(relaying, chat("breaks"))
    assert post(relaying, chat("teapot")).status_code == 418


def test_a_stream_of_100_mb_does_not_grow_the_api_and_waits_for_its_client(
    relaying: Stack, upstream: Upstream
) -> None:
    process = psutil.Process(relaying.apis[0].pid)
    post(relaying, chat("big", mib=1))
    before = peak = process.memory_info().rss
    got = 0
    with httpx2.stream("POST", f"{relaying.url}/v1/chat/completions", json=chat("big", mib=100)) as response:
        pieces = response.iter_raw()
        got += len(next(pieces))
        time.sleep(1)
        stalled = upstream.sent
        for piece in pieces:
            got += len(piece)
            peak = max(peak, process.memory_info().rss) if got % 17 == 0 else peak
        peak = max(peak, process.memory_info().rss)
    grown = (peak - before) / MIB
    log.info("%.1f MiB more for 100 MiB; %.1f sent to a client that waits", grown, stalled / MIB)
    assert got == 100 * MIB
    assert grown < 16
    assert stalled < 32 * MIB


def test_a_body_over_the_limit_is_refused_with_the_limit(relaying: Stack) -> None:
    response = post(relaying, chat("echo", filler="x" * (17 * MIB)))
    assert response.status_code == 413
    assert "CANVASS_MAX_BODY_BYTES" in response.json()["error"]["message"]


def test_503_while_no_engine_takes_anything(relaying: Stack, upstream: Upstream) -> None:
    url = f"{relaying.url}/v1/engines"
    assert httpx2.post(f"{url}/drain", params={"url": upstream.url}, headers=ADMIN).status_code == 202
    until(lambda: post(relaying, chat("teapot")).status_code == 503, within_s=10)
    refused = post(relaying, chat("teapot"))
    assert refused.json()["error"]["type"] == "server_error"
    assert refused.headers["retry-after"] == "1"
    assert httpx2.post(url, json={"url": upstream.url}, headers=ADMIN).status_code == 202
    until(lambda: post(relaying, chat("teapot")).status_code == 418, within_s=10)


def test_a_key_lets_in_and_its_rate_counts(upstream: Upstream) -> None:
    with Stack(engines=upstream.url, env=environment()) as stack:
        made = httpx2.post(
            f"{stack.url}/v1/keys", json={"name": "a", "rate_per_minute": 2}, headers=ADMIN
        ).json()
        refused = post(stack, chat("teapot"))
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
        headers = {"authorization": f"Bearer {made['key']}"}
        answers = [post(stack, chat("teapot"), headers=headers) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [418, 418, 429]
    assert all("ratelimit" in answer.headers for answer in answers)
    assert answers[2].json()["error"]["code"] == "rate_limit_exceeded"
