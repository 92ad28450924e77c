"""Nothing of a job stays in Redis for ever, however many there are."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import aiohttp
import redis

from client.stack import Stack
from tests.line.job_support import ASYNC, URGENT, ours

JOBS = 10_000
AT_ONCE = 64
DEADLINE_S, RETENTION_S = 4, 2

ENV = {"CANVASS_DEADLINE_S": str(DEADLINE_S), "CANVASS_RETENTION_S": str(RETENTION_S)}

OF_THE_WORKERS = (b"canvass:worker",)
"""How the workers see the pool, told anew every second."""


async def submit_all(url: str) -> Counter[int]:
    """Submit the jobs, some at once; how many responses had each status."""
    statuses: Counter[int] = Counter()
    numbers = iter(range(JOBS))

    async def submit_some(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            body = {"model": "jev-latest", "state": f"Ticket {number}.", "questions": {"q": URGENT}}
            async with session.post("/v1/systemone", json=body, headers=ASYNC) as response:
                statuses[response.status] += 1

    async with aiohttp.ClientSession(url) as session:
        await asyncio.gather(*(submit_some(session) for _ in range(AT_ONCE)))
    return statuses


def test_of_ten_thousand_jobs_every_key_expires_and_none_is_left(script: str) -> None:
    with (
        Stack(engines=script, env=ENV) as stack,
        redis.Redis.from_url(stack.redis_url) as connection,
    ):
        assert asyncio.run(submit_all(stack.url)) == {202: JOBS}
        kept = ours(connection)
        kinds = Counter(name.split(b":")[1] for name in kept)
        assert kinds[b"decision"] > AT_ONCE
        assert kinds[b"name"] > AT_ONCE
        assert [name for name, ttl in kept.items() if ttl < 0] == []
        assert max(kept.values()) <= DEADLINE_S + RETENTION_S
        time.sleep(DEADLINE_S + RETENTION_S + 1)
        left = [name for name in ours(connection) if not name.startswith(OF_THE_WORKERS)]
        assert left == []
