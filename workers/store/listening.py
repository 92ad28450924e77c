"""Listening on a channel of Redis."""

from __future__ import annotations

from collections.abc import Callable

from redis.asyncio import Redis

RECONNECT_PAUSE_S = 0.2


async def listen(redis: Redis, channel: str, heard: Callable[[bytes], None]) -> None:
    """Hand on every message until the connection is lost. Raises redis-py's errors then.

    What was published meanwhile is missed; whoever listens looks at the store now and then as well.
    """
    async with redis.pubsub(ignore_subscribe_messages=True) as subscriber:
        await subscriber.subscribe(channel)
        while True:
            message = await subscriber.get_message(timeout=5)
            if message is not None:
                heard(message["data"])
