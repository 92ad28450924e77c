"""The store: every decision while it runs, and its outcome while it is kept, in Redis.

One hash per decision, one key, one expiry:

    decision    what was asked (planner.Decision)           status    open | succeeded | failed
    wave        number of the current wave                  body      the outcome, once there is one
    wave:N      the reads of wave N                         channel   where the one who waits listens
    result:ID   the result of read ID                       created, started, deadline   seconds since 1970
    holder      who runs the current wave                   mover     who made it current

One sorted set of leases: a decision that is open is in it, with the time by which someone must have
renewed it. A lease that ran out is taken over by whoever sees it (workers/watchdog.py).
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import time
from typing import Any

import orjson
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from planner.decision import Decision
from planner.reads import Failure, Result, Wave, result_from_bytes, result_to_bytes
from workers import scripts
from workers.group_commit import GroupCommit
from workers.redis_connection import Command, RedisConnection
from workers.settings import Settings

PUT_CHUNK = 1000
"""Most results one script call carries: Lua's `unpack` holds some thousands of values."""

PIPELINE_LIMIT = 256

_FIRST_WAVE_FIELDS = ("decision", "wave", "status", "created", "started", "deadline", "wave:0")


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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An open decision as a worker finds it: its current wave, and the results so far.

    `created`, `started` and `deadline` are in seconds since 1970, `size` is that of the decision and its
    wave in bytes.
    """

    id: str
    decision: Decision
    number: int
    wave: Wave
    results: Mapping[str, Result]
    created: float
    started: float | None
    deadline: float
    size: int

    @property
    def queued_ms(self) -> float | None:
        """Milliseconds until a worker claimed the decision; None when its first wave was a chord."""
        return None if self.started is None else 1000 * (self.started - self.created)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished decision: its terminal status, and the body its door answers with.

    The body of a failed one is `{"code", "message"}`.
    """

    status: str
    body: bytes

    def failure(self) -> Failure | None:
        """What went wrong, or None for a success."""
        return None if self.status == "succeeded" else Failure(**orjson.loads(self.body))


class Store:
    """Reads and writes decisions. Commands of concurrent callers share one pipeline."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        self._connection = RedisConnection(redis)
        self._prefix = settings.key_prefix
        self._settings = settings
        self._commands: GroupCommit[Sequence[Command], list[Any]] = GroupCommit(self._execute, PIPELINE_LIMIT)

    async def close(self) -> None:
        """Close the connection of the commands."""
        await self._connection.close()

    async def run(self, *commands: Command) -> list[Any]:
        """The replies of some commands, one after the other but not as a transaction.

        Raises StoreError when Redis cannot be reached or refuses one of them.
        """
        return await self._commands.submit(commands)

    async def _execute(self, groups: list[Sequence[Command]]) -> list[list[Any] | Exception]:
        try:
            replies = iter(await self._connection.execute([command for group in groups for command in group]))
        except (RedisError, OSError) as error:
            raise StoreError(f"Redis does not answer: {error}") from error
        return [_checked([next(replies) for _ in group]) for group in groups]

    def key(self, *parts: str) -> str:
        """A key of ours: the prefix, then the parts."""
        return ":".join((self._prefix, *parts))

    def _decision(self, id: str) -> str:
        return self.key("decision", id)

    @property
    def _leases(self) -> str:
        return self.key("leases")

    def _keys(self, id: str) -> tuple[str, str]:
        return self._decision(id), self._leases

    async def save(self, id: str, decision: Decision, wave: Wave, channel: str) -> None:
        """Accept a decision: from here on it cannot be lost."""
        settings, now = self._settings, time()
        fields: dict[str, Any] = {
            "decision": decision.to_json(),
            "status": "open",
            "wave": 0,
            "wave:0": wave.to_bytes(),
            "channel": channel,
            "created": now,
            "deadline": now + settings.deadline_s,
        }
        pairs = [part for field in fields.items() for part in field]
        keep = settings.deadline_s + settings.retention_s
        await self.run(
            ("EVAL", scripts.SAVE, 2, *self._keys(id), keep, now + settings.queued_lease_s, id, *pairs)
        )

    async def claim(self, id: str, number: int) -> Snapshot | None:
        """Take an open decision to run its current wave, or None when it is not to be run here.

        That is when it is over or gone, or when another worker runs it and says so by renewing its
        lease. `number` is the wave the caller expects; when another is current, that one is loaded.
        """
        names = _FIRST_WAVE_FIELDS if number == 0 else ()
        now = time()
        (values,) = await self.run(
            (
                "EVAL",
                scripts.CLAIM,
                2,
                *self._keys(id),
                id,
                now,
                now + self._settings.lease_s,
                secrets.token_hex(8),
                *(names or ("wave",)),
            )
        )
        if values is None:
            return None
        fields = {name.encode(): value for name, value in zip(names, values, strict=False)}
        if fields.get(b"wave") == b"0":
            return _snapshot(id, fields)
        return await self.load(id)

    async def load(self, id: str) -> Snapshot | None:
        """An open decision with its current wave and all results so far, or None when it is over or gone."""
        (reply,) = await self.run(("HGETALL", self._decision(id)))
        pairs = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
        return _snapshot(id, pairs)

    async def put_results(self, id: str, results: Mapping[str, Result]) -> bool:
        """Keep some results of an open decision; False when it is over, and nothing more of it counts."""
        pairs = list(_result_pairs(results, prefix="result:"))
        kept = await self.run(
            *(
                ("EVAL", scripts.PUT_RESULTS, 1, self._decision(id), *pairs[start : start + 2 * PUT_CHUNK])
                for start in range(0, len(pairs), 2 * PUT_CHUNK)
            )
        )
        return all(kept)

    async def advance(self, id: str, number: int, wave: Wave, results: Mapping[str, Result]) -> bool:
        """Move a decision from wave `number` to the next; True for the one caller that moved it."""
        (moved,) = await self.run(
            (
                "EVAL",
                scripts.ADVANCE,
                2,
                *self._keys(id),
                number,
                number + 1,
                wave.to_bytes(),
                secrets.token_hex(8),
                time() + self._settings.queued_lease_s,
                id,
                *_result_pairs(results),
            )
        )
        return bool(moved)

    async def finish(self, id: str, outcome: Outcome) -> bool:
        """End a decision and tell the one who waits; True for the one caller that ended it."""
        message = b"%s %s\n%s" % (id.encode(), outcome.status.encode(), outcome.body)
        (ended,) = await self.run(
            (
                "EVAL",
                scripts.FINISH,
                2,
                *self._keys(id),
                outcome.status,
                outcome.body,
                self._settings.retention_s,
                message,
                id,
            )
        )
        return bool(ended)

    async def renew(self, ids: Iterable[str]) -> None:
        """Say that these decisions are still being run here. One that ended meanwhile stays ended."""
        until = time() + self._settings.lease_s
        pairs = [part for id in ids for part in (until, id)]
        if pairs:
            await self.run(("ZADD", self._leases, "XX", "GT", *pairs))

    async def overdue(self, most: int) -> list[str]:
        """Up to `most` decisions whose lease ran out."""
        query = ("ZRANGE", self._leases, "-inf", time(), "BYSCORE", "LIMIT", 0, most)
        (ids,) = await self.run(query)
        return [id.decode() for id in ids]

    async def take_over(self, id: str) -> bool:
        """Take over a decision whose lease ran out; True for the one caller who must see to it."""
        now = time()
        until = now + self._settings.queued_lease_s
        (taken,) = await self.run(("EVAL", scripts.TAKE_OVER, 2, *self._keys(id), id, now, until))
        return bool(taken)

    async def drop_lease(self, id: str) -> None:
        """Forget the lease of a decision that is over or gone."""
        await self.run(("ZREM", self._leases, id))

    async def outcomes(self, ids: Sequence[str]) -> dict[str, Outcome | None]:
        """The outcome of each decision, None while it is open. One that is gone has failed: `gone`."""
        replies = await self.run(*(("HMGET", self._decision(id), "status", "body") for id in ids))
        return {id: _outcome(status, body) for id, (status, body) in zip(ids, replies, strict=True)}


def _snapshot(id: str, fields: Mapping[bytes, bytes]) -> Snapshot | None:
    if fields.get(b"status") != b"open":
        return None
    number = int(fields[b"wave"])
    results = {
        name.removeprefix(b"result:").decode(): result_from_bytes(value)
        for name, value in fields.items()
        if name.startswith(b"result:")
    }
    return Snapshot(
        id=id,
        decision=Decision.from_json(fields[b"decision"]),
        number=number,
        wave=Wave.from_bytes(fields[b"wave:%d" % number]),
        results=results,
        created=float(fields[b"created"]),
        started=float(started) if (started := fields.get(b"started")) else None,
        deadline=float(fields[b"deadline"]),
        size=len(fields[b"decision"]) + len(fields[b"wave:%d" % number]),
    )


def read_message(message: bytes) -> tuple[str, Outcome]:
    """The decision id and outcome of what `finish` published."""
    head, _, body = message.partition(b"\n")
    id, status = head.decode().split(" ")
    return id, Outcome(status, body)


def failed(failure: Failure) -> Outcome:
    """The outcome of a decision that could not be answered."""
    return Outcome("failed", orjson.dumps({"code": failure.code, "message": failure.message}))


def _outcome(status: bytes | None, body: bytes | None) -> Outcome | None:
    if status is None:
        return failed(Failure("gone", "the decision is no longer kept"))
    return None if status == b"open" or body is None else Outcome(status.decode(), body)


def _result_pairs(results: Mapping[str, Result], prefix: str = "") -> list[str | bytes]:
    return [part for id, result in results.items() for part in (prefix + id, result_to_bytes(result))]


def _checked(replies: list[Any]) -> list[Any] | Exception:
    for reply in replies:
        if isinstance(reply, Exception):
            return StoreError(f"Redis refused a command: {reply}")
    return replies
