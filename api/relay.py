"""Relaying: a request goes to an engine as it is, and what the engine answers comes back as it arrives.

    which engines serve the model > the one with the least under way > its answer, piece by piece

An engine's answer is never held: the next piece is read once the client took the last one, so a slow client
slows its engine and nothing piles up here. A client that goes away ends the engine's request at once,
also one that has not answered yet.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import aiohttp
import structlog
from fastapi import Response
from starlette.types import Receive, Scope, Send
from yarl import URL

from api.refusals import Refusal, Unavailable

CONNECT_TIMEOUT_S = 2.0
KEEPALIVE_S = 30.0

HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""Headers that concern one connection (RFC 9110, section 7.6.1)."""

_OURS = frozenset(
    {"authorization", "x-api-key", "cookie", "host", "content-length", "content-encoding", "expect"}
)
"""Headers of a request that are said to us, or that the sending client sets anew."""

_SET_ANEW = frozenset({"date", "server"})

log = structlog.get_logger()

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Target:
    """Who may answer: the engines at `urls`, which serve the model by this name; those of them that read no
    canvases are `causal`.
    """

    model: str
    urls: tuple[str, ...]
    causal: tuple[str, ...] = ()


def target_of(model: str | None, engines: Sequence[Mapping[str, Any]], aliases: Sequence[str]) -> Target:
    """The engines that serve a model, of those that `engines_of` lists; None is whichever comes first.

    An alias is the model of the first engine. Raises Refusal: 404 for a model that nobody knows, 503 when
    no engine that serves it is in.
    """
    taking = [engine for engine in engines if engine["state"] == "in"]
    name = model
    if model is None or (model in aliases and model not in {engine["model"] for engine in engines}):
        name = str(taking[0]["model"]) if taking else None
    serving = [engine for engine in taking if engine["model"] == name]
    if serving and name is not None:
        causal = [engine for engine in serving if not engine["capabilities"]["canvas"]]
        return Target(name, _urls(serving), _urls(causal))
    if not taking or name in {engine["model"] for engine in engines}:
        raise Unavailable(f"no engine that serves {model!r} is in" if model else "no engine is in")
    known = ", ".join(repr(known) for known in dict.fromkeys([*aliases, *(str(e["model"]) for e in taking)]))
    raise Refusal(404, "unknown_model", f"there is no model {model!r}; there are {known}")


def _urls(engines: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(engine["url"] for engine in engines)


def request_headers(given: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request that go on to an engine."""
    named = {name.strip().lower() for name in given.get("connection", "").split(",")}
    dropped = HOP_BY_HOP | _OURS | named
    return {name: value for name, value in given.items() if name.lower() not in dropped}


def response_headers(given: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of an engine's response that go on to the client."""
    connection = b",".join(value for name, value in given if name.lower() == b"connection").decode("latin-1")
    dropped = HOP_BY_HOP | _SET_ANEW | {name.strip().lower() for name in connection.split(",")}
    return [(name.lower(), value) for name, value in given if name.decode("latin-1").lower() not in dropped]


class Relays:
    """What this process relays. Belongs to one event loop; `read_timeout_s` bounds an engine's silence."""

    def __init__(self, read_timeout_s: float) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=read_timeout_s
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            # An encoded body goes on as it is.
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )
        self._in_flight: Counter[str] = Counter()
        self._turns = count()

    async def close(self) -> None:
        """Let go of every connection."""
        await self._session.close()

    def ordered(self, urls: Sequence[str]) -> list[str]:
        """Engines, the one with the least of ours under way first; equals take turns."""
        turn = next(self._turns)
        turned = [urls[(place + turn) % len(urls)] for place in range(len(urls))]
        return sorted(turned, key=self._in_flight.__getitem__)

    @contextmanager
    def counted(self, url: str) -> Iterator[None]:
        """One more under way at an engine meanwhile."""
        self._in_flight[url] += 1
        try:
            yield
        finally:
            self._in_flight[url] -= 1
            if not self._in_flight[url]:
                del self._in_flight[url]

    def request(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes
    ) -> aiohttp.client._RequestContextManager:
        """A request to an engine."""
        return self._session.request(
            method, URL(url, encoded=True), headers=headers, data=content or None, allow_redirects=False
        )


class Relayed(Response):
    """The response to a request that an engine answers.

    Engines are asked in their order: the next one when one cannot be reached, or has no room (503) while
    another may have. `path` is that of the request with its query, `extra` goes with the engine's own
    headers, `refuse` tells that none answered.
    """

    def __init__(
        self,
        relays: Relays,
        urls: Sequence[str],
        method: str,
        path: str,
        headers: Mapping[str, str],
        content: bytes,
        *,
        extra: Mapping[str, str],
        refuse: Callable[[Refusal], Response],
    ) -> None:
        super().__init__()
        self._relays = relays
        self._urls = relays.ordered(urls)
        self._method = method
        self._path = path
        self._told = headers
        self._content = content
        self._extra = extra
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Relay until the end, or until the client is gone."""
        relaying = asyncio.create_task(self._relay(scope, receive, send))
        leaving = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait((relaying, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (relaying, leaving):
                task.cancel()
            await asyncio.gather(relaying, leaving, return_exceptions=True)
        if not relaying.cancelled():
            relaying.result()

    async def _relay(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal: Refusal = Unavailable("no engine is in")
        for place, engine in enumerate(self._urls):
            others = place + 1 < len(self._urls)
            with self._relays.counted(engine):
                try:
                    async with self._relays.request(
                        self._method, engine + self._path, self._told, self._content
                    ) as response:
                        if response.status == 503 and others:
                            continue
                        await self._pass_on(response, send)
                        return
                except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                    log.warning("not relayed", engine=engine, reason=str(error))
                    refusal = Unavailable(f"the engine does not answer: {type(error).__name__}")
                except (aiohttp.ClientError, TimeoutError, OSError) as error:
                    # It may have been at work: what it began is not begun elsewhere.
                    log.warning("no answer to relay", engine=engine, reason=str(error))
                    refusal = Refusal(502, "bad_gateway", f"the engine broke off: {type(error).__name__}")
                    break
        refused = self._refuse(refusal)
        refused.headers.update(self._extra)
        await refused(scope, receive, send)

    async def _pass_on(self, response: aiohttp.ClientResponse, send: Send) -> None:
        extra = ((name.lower().encode(), value.encode()) for name, value in self._extra.items())
        headers = [*response_headers(response.raw_headers), *extra]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        try:
            async for piece in response.content.iter_any():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # The status is told already. Left unfinished, the client sees that its answer is not whole.
            log.warning("an answer broke off", engine=str(response.url), reason=str(error))
            return
        await send({"type": "http.response.body", "body": b""})


async def _gone(receive: Receive) -> None:
    """Return once the client is gone. Its request was read before."""
    while (await receive())["type"] != "http.disconnect":
        pass
