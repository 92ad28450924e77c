"""Faults of an engine, by name and rate: what a client sees when a server or its network is ill.

| name | what happens |
| --- | --- |
| refuse | the connection is closed before any answer |
| reset | the connection is reset (RST) before any answer |
| hang | no answer, until the client gives up |
| slow | the answer comes `SLOW_SECONDS` late |
| 500, 503 | that status with an error object |
| garbage | 200 with a body that is no JSON |
| truncated | the headers promise the whole body, half of it comes, the connection closes |
| wrong-rows | one log-probability row too few |
| dies | the process ends at the request after the first N (`dies:N`) |
"""

import asyncio
import os
import random
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from engine.errors import ApiError, EngineError, QueueFull

SLOW_SECONDS = 1.0
_RATED = ("refuse", "reset", "hang", "slow", "500", "503", "garbage", "truncated", "wrong-rows")
NAMES = (*_RATED, "dies")
# These need the answer first.
_AFTER = ("truncated", "wrong-rows")
_GARBAGE = b"<html><body>502 Bad Gateway</body></html>"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and its rate, 0 to 1; of `dies` the number of requests that are still served."""

    name: str
    rate: float


class FaultRaised(Exception):
    """A script asks for this fault."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def parse_fault(text: str) -> Fault:
    """`NAME:RATE`, or `dies:N`. Raises `ValueError`."""
    name, _, rate = text.partition(":")
    if name not in NAMES:
        raise ValueError(f"{name!r} is no fault: there are {', '.join(NAMES)}")
    value = float(rate or 1)
    if name != "dies" and not 0 <= value <= 1:
        raise ValueError(f"the rate of {name} must be between 0 and 1, not {rate}")
    return Fault(name, value)


class Faults:
    """Draws faults; deterministic for a seed and an order of requests."""

    def __init__(self, faults: Sequence[Fault], seed: int) -> None:
        self._faults = [fault for fault in faults if fault.name != "dies"]
        self._lives = next((int(fault.rate) for fault in faults if fault.name == "dies"), None)
        self._random = random.Random(seed)

    def draw(self) -> str | None:
        """The fault of the next request, or None. Ends the process when its time has come."""
        if self._lives is not None:
            if self._lives <= 0:
                os._exit(1)
            self._lives -= 1
        return next((fault.name for fault in self._faults if self._random.random() < fault.rate), None)


def after_answer(name: str | None) -> bool:
    """Whether a fault spoils an answer, so that there must be one."""
    return name in _AFTER


async def instead_of_answer(name: str, request: web.Request) -> web.Response | None:
    """Act out a fault that comes before the answer; None when the answer follows after all (slow)."""
    if name == "slow":
        await asyncio.sleep(SLOW_SECONDS)
        return None
    if name == "hang":
        await asyncio.Event().wait()
    if name in ("refuse", "reset"):
        _drop(request, reset=name == "reset")
    if name == "garbage":
        return web.Response(body=_GARBAGE, content_type="text/html")
    error: ApiError = QueueFull("fault 503") if name == "503" else EngineError("fault 500")
    return web.json_response(error.body(), status=error.status)


async def truncate(body: bytes, request: web.Request) -> web.StreamResponse:
    """Promise the whole body, send half of it, close."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    _drop(request, reset=False)
    return response


def _drop(request: web.Request, reset: bool) -> None:
    transport = request.transport
    if transport is None:
        return
    if reset:
        # Lingering for zero seconds makes the kernel send RST instead of FIN.
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()
