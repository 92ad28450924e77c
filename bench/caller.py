"""A bare caller of an engine, in a process of its own so that its CPU can be told from the bench's.

It does what any caller must: sends a body that is ready, reads the answer, decodes its JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

import aiohttp
import orjson
import uvloop

from bench.load import Target


@dataclass(frozen=True, slots=True)
class Called:
    """How many requests were made, and the caller's CPU seconds for each."""

    requests: int
    cpu_s: float


def call(target: Target, clients: int, seconds: float) -> Called:
    """Call a target with `clients` requests at a time for some seconds."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(theirs, target, clients, seconds))
    process.start()
    theirs.close()
    try:
        called: Called = ours.recv()
    finally:
        process.join()
    return called


def _run(report: Connection, target: Target, clients: int, seconds: float) -> None:
    report.send(uvloop.run(_call(target, clients, seconds)))


async def _call(target: Target, clients: int, seconds: float) -> Called:
    numbers = itertools.count()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, trust_env=False) as session:
        end, cpu = time.monotonic() + seconds, time.process_time()

        async def client() -> None:
            while time.monotonic() < end:
                async with session.post(target.url, data=target.body(next(numbers))) as answer:
                    orjson.loads(await answer.read())
                    answer.raise_for_status()

        await asyncio.gather(*(client() for _ in range(clients)))
        count = next(numbers)
        return Called(count, (time.process_time() - cpu) / count)
