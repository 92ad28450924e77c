"""Flows put into practice: over HTTP, in a thread or on an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TypeVar, cast

import httpx2

from client import errors
from client.http import DEFAULT_URL, Response, bearer, connection, is_url_list
from client.sdk.errors import BadKey, BadUrl, Unreachable
from client.sdk.flow import Call, Flow, Pause, Server

CONNECT_S = 5.0

LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=256, keepalive_expiry=30.0)
"""How many calls are under way is for who makes them to say: nothing waits for a connection."""

T = TypeVar("T")


class Stopped(Exception):
    """A flow was given up between two of its steps."""


def server_of(
    base_url: str | None, api_key: str | None, model: str, timeout_s: float, retries: int
) -> Server:
    """The server that a client was given, or that the environment names. Raises `BadUrl` or `BadKey`."""
    url = (base_url or os.environ.get("CANVASS_URL") or DEFAULT_URL).rstrip("/")
    if not is_url_list(url):
        raise BadUrl(f"{url!r} is no URL. {BadUrl.__doc__}")
    key = os.environ.get("CANVASS_KEY") or None if api_key is None else api_key
    try:
        headers = {"content-type": "application/json", **bearer(key)}
    except errors.BadKey as error:
        raise BadKey(BadKey.__doc__) from error
    return Server(url, headers, model, timeout_s, retries)


def sync_http(url: str) -> httpx2.Client:
    """A client for calls from threads."""
    return httpx2.Client(limits=LIMITS, **connection(url))


def async_http(url: str) -> httpx2.AsyncClient:
    """A client for calls from an event loop."""
    return httpx2.AsyncClient(limits=LIMITS, **connection(url))


def run(flow: Flow[T], server: Server, http: httpx2.Client, stopping: threading.Event | None = None) -> T:
    """The result of a flow, here and now. Raises what it raises, and `Stopped` once `stopping` is set."""
    stopping = stopping or threading.Event()
    came: httpx2.Response | httpx2.HTTPError | None
    try:
        step = next(flow)
        while not stopping.is_set():
            if isinstance(step, Pause):
                stopping.wait(step.seconds)
                came = None
            else:
                try:
                    came = http.send(_request(http, server, step))
                except httpx2.HTTPError as error:
                    came = error
            step = _given(flow, server, came)
    except StopIteration as end:
        return cast("T", end.value)
    raise Stopped


async def run_async(flow: Flow[T], server: Server, http: httpx2.AsyncClient) -> T:
    """The result of a flow. Raises what it raises."""
    came: httpx2.Response | httpx2.HTTPError | None
    try:
        step = next(flow)
        while True:
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                came = None
            else:
                try:
                    came = await http.send(_request(http, server, step))
                except httpx2.HTTPError as error:
                    came = error
            step = _given(flow, server, came)
    except StopIteration as end:
        return cast("T", end.value)


def _given(flow: Flow[T], server: Server, came: httpx2.Response | httpx2.HTTPError | None) -> Call | Pause:
    """The next step of a flow that is told what came of the one before."""
    if isinstance(came, httpx2.HTTPError):
        absent = isinstance(came, (httpx2.ConnectError, httpx2.ConnectTimeout))
        return flow.throw(Unreachable(server.url, str(came) or type(came).__name__, connected=not absent))
    if came is None:
        return flow.send(Response(0, b"", {}))
    return flow.send(Response(came.status_code, came.content, dict(came.headers)))


def _request(http: httpx2.Client | httpx2.AsyncClient, server: Server, call: Call) -> httpx2.Request:
    return http.build_request(
        call.method,
        server.url + call.path,
        content=call.content,
        headers={**server.headers, **call.headers},
        timeout=httpx2.Timeout(call.timeout_s, connect=CONNECT_S, pool=None),
    )
