from __future__ import annotations

import asyncio

from redis.asyncio import Redis

from client.stack import Stack
from workers.settings import Settings
from workers.store.store import Store

SCRIPT = "return redis.call('INCRBY', KEYS[1], ARGV[1])"


def test_a_script_goes_whole_once_and_again_when_redis_forgot_it(stack: Stack) -> None:
    async def story() -> tuple[list[int], int, int]:
        async with Redis.from_url(stack.redis_url) as redis:
            store = Store(redis, Settings())
            key = store.key("test", "scripts")
            command = ("EVAL", SCRIPT, 1, key, 1)
            before = await calls(redis)
            counted = [(await store.run(command))[0] for _ in range(3)]
            counted += await store.run(command, command)
            whole, named = (now - then for now, then in zip(await calls(redis), before, strict=True))
            await redis.script_flush()
            counted += await store.run(command)
            await redis.delete(key)
            await store.close()
            return counted, whole, named

    counted, whole, named = asyncio.run(story())
    assert counted == [1, 2, 3, 4, 5, 6]
    # The stack's own processes send scripts too, by name as a rule: ours are among the counts.
    assert whole >= 1
    assert named >= 4


async def calls(redis: Redis) -> tuple[int, int]:
    """How often Redis was sent a whole script, and the name of one."""
    stats = await redis.info("commandstats")
    return tuple(int(stats.get(f"cmdstat_{name}", {}).get("calls", 0)) for name in ("eval", "evalsha"))  # type: ignore[return-value]
