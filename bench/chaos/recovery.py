"""Recovery: how long a decision waits for another worker when the one that holds it is killed.

Right after a worker died its name still stands as the holder of what it ran. Of each such decision two times
are taken, from just before the kill: until another worker holds it (`taken`), and until it ended (`ended`).
What a worker has in hand does not all bear its name, so that three kinds of others are followed too:

    chord    a wave of several shards, which nobody holds; it counts when a worker takes all of it over,
             which happens only when its lease ran out
    wave     a later wave that nobody has begun; it counts when that takes longer than LOST_S
    queued   a first wave, the same; told apart, because no worker ever held it

Redis is asked every 50 ms; while it is away itself nothing is measured.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep, time
from typing import Any

import redis
from redis.exceptions import RedisError

LOOK_EVERY_S = 0.05
GIVE_UP_S = 60.0

LOST_S = 1.0
"""Seconds after which a wave that nobody has begun was lost with its worker, and did not just wait."""

FIELDS = ("holder", "wave", "status", "shards", "started")


@dataclass(slots=True)
class Held:
    """A decision whose worker was killed at `at`: who held it, in which wave, and what came after (s)."""

    id: str
    kind: str
    at: float
    holder: bytes | None
    wave: bytes | None
    taken_s: float | None = None
    ended_s: float | None = None


def members(connection: redis.Redis, name: str) -> list[str]:
    """The members of a sorted set, the lowest first."""
    found: Any = connection.zrange(name, 0, -1)
    return [member.decode() for member in found]


class Recovery:
    """Follows the decisions of workers that were killed."""

    def __init__(self, redis_url: str) -> None:
        self._redis = redis.Redis.from_url(redis_url, socket_timeout=1, socket_connect_timeout=1)
        self._open: dict[tuple[str, float], Held] = {}
        self._lock = threading.Lock()
        self.held: list[Held] = []
        self.unmeasured = 0

    def killed(self, pid: int, at: float) -> None:
        """Note what a worker held that died by SIGKILL at `at` (seconds since 1970)."""
        try:
            found = self._found(pid, at)
        except RedisError:
            self.unmeasured += 1
            return
        with self._lock:
            self._open |= {(held.id, at): held for held in found}

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow them in a thread meanwhile."""
        ending = threading.Event()

        def follow() -> None:
            while not ending.is_set():
                try:
                    self._look()
                except RedisError:
                    sleep(LOOK_EVERY_S)
                sleep(LOOK_EVERY_S)

        thread = threading.Thread(target=follow)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()
            self._redis.close()

    def _found(self, pid: int, at: float) -> list[Held]:
        ids = members(self._redis, "canvass:leases")
        found: list[Held] = []
        for id, (holder, wave, status, shards, started) in zip(ids, self._fields(ids), strict=True):
            if status != b"open" or (holder is not None and f"-{pid}:".encode() not in holder):
                continue
            if holder is not None:
                kind = "held"
            elif started is None:
                kind = "queued"
            else:
                kind = "wave" if shards == b"1" else "chord"
            found.append(Held(id, kind, at, holder, wave))
        return found

    def _fields(self, ids: list[str]) -> list[list[bytes | None]]:
        with self._redis.pipeline(transaction=False) as pipeline:
            for id in ids:
                pipeline.hmget(f"canvass:decision:{id}", FIELDS)
            found: list[list[bytes | None]] = pipeline.execute()
        return found

    def _look(self) -> None:
        with self._lock:
            following = list(self._open.values())
        if not following:
            return
        states = self._fields([held.id for held in following])
        now = time()
        for held, (holder, wave, status, *_) in zip(following, states, strict=True):
            over = status != b"open"
            if held.taken_s is None:
                on = over or wave != held.wave
                taken = on or (holder is not None and holder != held.holder)
                # What shards elsewhere brought to its end was not lost, nor was what just waited.
                waited = held.kind in ("wave", "queued") and now - held.at < LOST_S
                if taken and ((held.kind == "chord" and on) or waited):
                    self._forget(held)
                    continue
                if taken:
                    held.taken_s = now - held.at
            if over or now - held.at > GIVE_UP_S:
                held.ended_s = now - held.at
                self.held.append(held)
                self._forget(held)

    def _forget(self, held: Held) -> None:
        with self._lock:
            self._open.pop((held.id, held.at), None)
