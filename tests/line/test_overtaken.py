"""A queue that is never empty hides no lost message: whoever was sent later and has begun gives it away."""

from __future__ import annotations

import asyncio
from time import time

from redis.asyncio import Redis

from client.stack import Stack
from planner.decision import Alternative, Decision, Question
from planner.reads import Wave
from workers.settings import Settings
from workers.store.decisions import Decisions
from workers.store.leases import Leases
from workers.store.store import Store
from workers.terms import Terms

SETTINGS = Settings(key_prefix="overtaken")
DECISION = Decision(
    "jev-latest", "A state.", (Question("a", "noul", "Is it?", (Alternative("yes"), Alternative("no"))),)
)


async def lost(redis: Redis, sent_before_s: float, *, later_has_begun: bool) -> list[str]:
    """What is taken over of one decision whose lease ran out, while a message waits in its queue."""
    store = Store(redis, SETTINGS)
    decisions, leases = Decisions(store, SETTINGS), Leases(store, SETTINGS)
    for id in ("dec_lost", "dec_later"):
        await decisions.save(id, DECISION, Wave(0, ()), 1, Terms(), "")
    await redis.hset("overtaken:decision:dec_lost", "sent", str(time() - sent_before_s))
    await redis.lpush("overtaken:celery:interactive", "a message")
    await redis.zadd("overtaken:leases", {"dec_lost": time() - 1})
    if later_has_begun:
        assert await decisions.claim("dec_later", 0) is not None
    return await leases.take_over(["dec_lost"])


def found(stack: Stack, sent_before_s: float, *, later_has_begun: bool) -> list[str]:
    async def look() -> list[str]:
        async with Redis.from_url(stack.redis_url) as redis:
            try:
                return await lost(redis, sent_before_s, later_has_begun=later_has_begun)
            finally:
                await redis.delete(*[name async for name in redis.scan_iter("overtaken:*")])

    return asyncio.run(look())


def test_a_decision_that_a_later_one_overtook_lost_its_message(stack: Stack) -> None:
    assert found(stack, 10, later_has_begun=True) == ["dec_lost"]


def test_one_that_nobody_overtook_waits_in_its_queue(stack: Stack) -> None:
    assert found(stack, 10, later_has_begun=False) == []


def test_one_that_was_overtaken_by_a_little_waits_as_well(stack: Stack) -> None:
    assert found(stack, 0.5, later_has_begun=True) == []
