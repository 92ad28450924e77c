"""Relaying: which engine is asked, what goes with the request, and what happens when one does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from starlette.datastructures import Headers
from starlette.types import Message

from api.doors.openai_errors import openai_error
from api.refusals import Refusal
from api.relay import Relayed, Relays, Target, request_headers, response_headers, target_of

ALIASES = ("jev-latest",)


def engine(url: str, model: str = "m", state: str = "in", canvas: bool = True) -> dict[str, Any]:
    return {"url": url, "model": model, "state": state, "capabilities": {"canvas": canvas}}


POOL = [
    engine("a"),
    engine("b", "other"),
    engine("c"),
    engine("d", "m", "draining"),
    engine("e", "gone", "out"),
]


@pytest.mark.parametrize(
    ("model", "target"),
    [
        ("m", Target("m", ("a", "c"))),
        ("other", Target("other", ("b",))),
        ("jev-latest", Target("m", ("a", "c"))),
        (None, Target("m", ("a", "c"))),
    ],
)
def test_engines_that_are_in_and_serve_the_model_are_asked(model: str | None, target: Target) -> None:
    assert target_of(model, POOL, ALIASES) == target


def test_an_alias_that_is_served_under_its_own_name_is_no_alias() -> None:
    assert target_of("jev-latest", [engine("a"), engine("b", "jev-latest")], ALIASES).urls == ("b",)


def test_those_without_canvases_are_told_apart() -> None:
    pool = [engine("a"), engine("b", canvas=False), engine("c", "other", canvas=False)]
    assert target_of("m", pool, ALIASES) == Target("m", ("a", "b"), causal=("b",))
    assert target_of("other", pool, ALIASES).causal == ("c",)


@pytest.mark.parametrize(
    ("model", "pool", "status"),
    [
        ("nobody", POOL, 404),
        ("gone", POOL, 503),
        ("m", [engine("d", "m", "draining")], 503),
        ("nobody", [], 503),
        (None, [], 503),
    ],
)
def test_a_model_is_unknown_or_away(model: str | None, pool: list[Any], status: int) -> None:
    with pytest.raises(Refusal) as refusal:
        target_of(model, pool, ALIASES)
    assert refusal.value.status == status


def test_headers_of_the_connection_and_those_for_us_stay() -> None:
    given = {
        "Connection": "close, X-Hop",
        "x-hop": "1",
        "Authorization": "Bearer k",
        "Accept": "*/*",
        "te": "x",
    }
    assert request_headers(Headers(given)) == {"accept": "*/*"}
    raw = [
        (b"Connection", b"x-hop"),
        (b"X-Hop", b"1"),
        (b"Date", b"now"),
        (b"Set-Cookie", b"a"),
        (b"Set-Cookie", b"b"),
    ]
    assert response_headers(raw) == [(b"set-cookie", b"a"), (b"set-cookie", b"b")]


def test_the_one_with_the_least_under_way_comes_first_and_equals_take_turns() -> None:
    async def orders() -> list[list[str]]:
        relays = Relays(1)
        with relays.counted("a"):
            found = [relays.ordered(["a", "b", "c"]) for _ in range(3)]
        await relays.close()
        return found

    found = asyncio.run(orders())
    assert [order[-1] for order in found] == ["a", "a", "a"]
    assert {order[0] for order in found} == {"b", "c"}


async def _told(urls: list[str]) -> tuple[int, bytes]:
    """The status and body of a request that is relayed to engines, the first of them first."""
    relays, sent = Relays(1), []

    async def receive() -> Message:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    relayed = Relayed(relays, urls, "POST", "/v1/x", {}, b"{}", extra={}, refuse=openai_error)
    relayed._urls = urls  # in this order, whoever's turn it is
    await relayed({"type": "http"}, receive, send)
    await relays.close()
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def good(request: web.Request) -> web.Response:
    return web.Response(text="good")


async def busy(request: web.Request) -> web.Response:
    return web.Response(text="busy", status=503)


async def broken(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def silent(request: web.Request) -> web.Response:
    await asyncio.sleep(3)
    return web.Response()


def relay(*handlers: Handler | None) -> tuple[int, bytes]:
    """What comes of asking engines in this order; None is one that is not there."""

    async def run() -> tuple[int, bytes]:
        runners, urls = [], []
        for handler in handlers:
            if handler is None:
                urls.append("http://127.0.0.1:1")
                continue
            app = web.Application()
            app.router.add_post("/v1/x", handler)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            runners.append(runner)
            urls.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        told = await _told(urls)
        for runner in runners:
            await runner.cleanup()
        return told

    return asyncio.run(run())


def test_an_engine_that_is_not_there_or_has_no_room_is_passed_over() -> None:
    assert relay(None, busy, good) == (200, b"good")


def test_the_last_ones_answer_stands_whatever_it_is() -> None:
    assert relay(None, busy) == (503, b"busy")


def test_with_none_there_it_is_503_in_openais_words() -> None:
    status, body = relay(None, None)
    assert (status, b'"server_error"' in body) == (503, True)


@pytest.mark.parametrize("handler", [broken, silent])
def test_what_an_engine_began_is_not_begun_elsewhere(handler: Handler) -> None:
    status, body = relay(handler, good)
    assert (status, b'"bad_gateway"' in body) == (502, True)
