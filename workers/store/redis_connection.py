"""One connection to Redis that a group commit has to itself.

redis-py's pool looks at a connection each time it hands one out, which costs as much as a small pipeline.
Commands that go out one batch after the other need no pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

Command = tuple[Any, ...]

PAUSES_S = (0.05, 0.2, 0.8)
"""Seconds between tries of a batch whose connection was lost."""


class RedisConnection:
    """Sends batches of commands over one connection, which is made again when it is lost."""

    def __init__(self, redis: Redis) -> None:
        self._pool = redis.connection_pool
        self._connection: AbstractConnection | None = None

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """The raw reply to each command, an exception where Redis refused it.

        A batch whose connection was lost is sent again, so commands must bear being run twice. Raises
        redis-py's ConnectionError or TimeoutError, or OSError, when Redis stays away.
        """
        for pause in PAUSES_S:
            try:
                return await self._exchange(commands)
            except (RedisConnectionError, RedisTimeoutError, OSError):
                await asyncio.sleep(pause)
        return await self._exchange(commands)

    async def close(self) -> None:
        """Give the connection up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect()
            await self._pool.release(connection)

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        try:
            if self._connection is None:
                self._connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
            connection = self._connection
            await connection.send_packed_command(connection.pack_commands(commands))
            return [await _reply(connection) for _ in commands]
        except BaseException:
            # Replies that were not read would be taken for those of the next batch.
            await self.close()
            raise


async def _reply(connection: AbstractConnection) -> Any:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error
