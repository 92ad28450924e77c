"""One connection to Redis that a group commit has to itself.

redis-py's pool looks at a connection each time it hands one out, which costs as much as a small pipeline.
Commands that go out one batch after the other need no pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha1
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

Command = tuple[Any, ...]

PAUSES_S = (0.05, 0.2, 0.8)
"""Seconds between tries of a batch whose connection was lost."""


class RedisConnection:
    """Sends batches of commands over one connection, which is made again when it is lost.

    A script goes whole the first time that this connection sends it, and by its SHA-1 after that.
    """

    def __init__(self, redis: Redis) -> None:
        self._pool = redis.connection_pool
        self._connection: AbstractConnection | None = None
        self._known: set[str] = set()

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """The raw reply to each command, an exception where Redis refused it.

        A batch whose connection was lost is sent again, so commands must bear being run twice. Raises
        redis-py's ConnectionError or TimeoutError, or OSError, when Redis stays away.
        """
        for pause in PAUSES_S:
            try:
                return await self._exchanged(commands)
            except (RedisConnectionError, RedisTimeoutError, OSError):
                await asyncio.sleep(pause)
        return await self._exchanged(commands)

    async def close(self) -> None:
        """Give the connection up."""
        connection, self._connection = self._connection, None
        self._known.clear()
        if connection is not None:
            await connection.disconnect()
            await self._pool.release(connection)

    async def _exchanged(self, commands: Sequence[Command]) -> list[Any]:
        replies = await self._exchange(commands)
        if any(isinstance(reply, NoScriptError) for reply in replies):
            # Redis forgot its scripts, or was told to.
            self._known.clear()
            replies = await self._exchange(commands)
        return replies

    def _by_name(self, command: Command) -> Command:
        """A command as it is sent: the name of a script that Redis knows in place of the script."""
        if command[0] != "EVAL":
            return command
        name = _name_of(command[1])
        if name in self._known:
            return ("EVALSHA", name, *command[2:])
        self._known.add(name)
        return command

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        try:
            if self._connection is None:
                self._connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
            connection = self._connection
            packed = connection.pack_commands([self._by_name(command) for command in commands])
            await connection.send_packed_command(packed)
            return [await _reply(connection) for _ in commands]
        except BaseException:
            # Replies that were not read would be taken for those of the next batch.
            await self.close()
            raise


@lru_cache(maxsize=256)
def _name_of(script: str | bytes) -> str:
    """What Redis knows a script by."""
    raw = script.encode() if isinstance(script, str) else script
    return sha1(raw, usedforsecurity=False).hexdigest()


async def _reply(connection: AbstractConnection) -> Any:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error
