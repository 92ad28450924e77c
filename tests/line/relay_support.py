"""An engine for tests of the pass-through: it reads canvases as another does, and chats as it is told.

A chat's `behave` says how: `ticks` (ten chunks, 0.1 s apart), `big` (as many MiB as `mib` says), `silent` (no
answer at all), `teapot` (a status and a header of its own), `breaks` (off, in the middle), `echo` (what it
was sent).
"""

from __future__ import annotations

import asyncio
import json
import threading
from time import perf_counter
from typing import Any, Self

import aiohttp
from aiohttp import web

MIB = 2**20
PIECE = b"x" * (64 * 1024)


class Upstream:
    """The engine, in a thread of its own, from `with` to its end.

    `sent` counts the bytes that its sockets took, `wrote_at` has the times of its chunks (`perf_counter`),
    `ended` counts the requests whose client went away.
    """

    def __init__(self, behind: str) -> None:
        self.url = ""
        self.sent = 0
        self.wrote_at: list[float] = []
        self.ended = 0
        self._behind = behind
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        self._session = aiohttp.ClientSession()
        app = web.Application(client_max_size=64 * MIB)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/echo", self._echo)
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _pass(self, request: web.Request) -> web.Response:
        content = await request.read()
        url = self._behind + request.path_qs
        async with self._session.request(request.method, url, data=content or None) as response:
            return web.Response(
                body=await response.read(), status=response.status, content_type=response.content_type
            )

    async def _echo(self, request: web.Request) -> web.Response:
        """What came, byte by byte, and as what."""
        told = {"x-came-as": request.headers.get("content-type", "")}
        return web.Response(body=await request.read(), headers=told)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        try:
            match body.get("behave"):
                case "ticks":
                    return await self._pieces(request, (b"data: %d\n\n" % n for n in range(10)), pause_s=0.1)
                case "big":
                    self.sent = 0
                    return await self._pieces(request, (PIECE for _ in range(body["mib"] * 16)))
                case "silent":
                    await asyncio.sleep(60)
                case "teapot":
                    return web.json_response({"odd": 1.50}, status=418, headers={"x-engine": "tea"})
                case "breaks":
                    response = await self._begin(request)
                    await response.write(b"data: half")
                    assert request.transport is not None
                    request.transport.abort()
                case "echo":
                    return web.json_response({"headers": dict(request.headers), "body": body})
        except (asyncio.CancelledError, ConnectionError):
            self.ended += 1
            raise
        return await self._pass(request)

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        return response

    async def _pieces(self, request: web.Request, pieces: Any, pause_s: float = 0) -> web.StreamResponse:
        response = await self._begin(request)
        self.wrote_at.clear()
        for piece in pieces:
            self.wrote_at.append(perf_counter())
            await response.write(piece)
            self.sent += len(piece)
            await asyncio.sleep(pause_s)
        await response.write_eof()
        return response
