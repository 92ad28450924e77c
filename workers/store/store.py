"""The way to Redis: commands of concurrent callers share one pipeline, over one connection."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from workers.group_commit import GroupCommit
from workers.settings import Settings
from workers.store.redis_connection import Command, RedisConnection

PIPELINE_LIMIT = 256


class StoreError(Exception):
    """The store cannot be reached, or refused a command."""


def connect(settings: Settings) -> Redis:
    """A connection pool to Redis. Commands may take 10 s; a lost connection is tried again."""
    return Redis.from_url(
        settings.redis_url,
        socket_timeout=10,
        socket_connect_timeout=5,
        socket_keepalive=True,
        health_check_interval=30,
        retry=Retry(ExponentialBackoff(cap=1, base=0.05), 3),
        retry_on_error=[RedisConnectionError, RedisTimeoutError],
        client_name=f"canvass-{socket.gethostname()}",
    )


class Store:
    """Runs commands. What stands in them is the business of the modules beside this one."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        self.prefix = settings.key_prefix
        self._connection = RedisConnection(redis)
        self._commands: GroupCommit[Sequence[Command], list[Any]] = GroupCommit(self._execute, PIPELINE_LIMIT)

    async def close(self) -> None:
        """Close the connection of the commands."""
        await self._connection.close()

    async def run(self, *commands: Command) -> list[Any]:
        """The replies of some commands, one after the other but not as a transaction.

        A batch whose connection was lost is sent again: commands must bear being run twice. Raises
        StoreError when Redis cannot be reached or refuses one of them.
        """
        return await self._commands.submit(commands)

    def key(self, *parts: str) -> str:
        """A key of ours: the prefix, then the parts."""
        return ":".join((self.prefix, *parts))

    async def newest(self, key: str, before: str, most: int) -> list[tuple[str, str]]:
        """Members of a sorted set, highest score first, each with its score; `before` bounds the score."""
        (reply,) = await self.run(("ZREVRANGEBYSCORE", key, before, "-inf", "WITHSCORES", "LIMIT", 0, most))
        return [(member.decode(), _score(score)) for member, score in pairs_of(reply)]

    async def _execute(self, groups: list[Sequence[Command]]) -> list[list[Any] | Exception]:
        try:
            replies = iter(await self._connection.execute([command for group in groups for command in group]))
        except (RedisError, OSError) as error:
            raise StoreError(f"Redis does not answer: {error}") from error
        return [_checked([next(replies) for _ in group]) for group in groups]


def fields_of(reply: Any) -> dict[bytes, bytes]:
    """The fields of a hash, as HGETALL replies them over either protocol."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def _checked(replies: list[Any]) -> list[Any] | Exception:
    for reply in replies:
        if isinstance(reply, Exception):
            return StoreError(f"Redis refused a command: {reply}")
    return replies


def pairs_of(reply: Any) -> list[tuple[bytes, Any]]:
    """Members and scores, as either protocol replies them."""
    if reply and isinstance(reply[0], list | tuple):
        return [(member, score) for member, score in reply]
    return list(zip(reply[::2], reply[1::2], strict=True))


def _score(score: Any) -> str:
    return score.decode() if isinstance(score, bytes) else repr(score)
