"""Names in the store: what a request that comes again is found by.

A key per name, with the id of the decision it stands for: a client's own idempotency key, or the body of
a request that its SDK may send again. Names are hashes, so that they give nothing away.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import orjson

from workers.store.store import Store


def name_of(*parts: str | bytes) -> str:
    """A name for some parts, the same on every process."""
    digest = blake2b(digest_size=16)
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(raw) + raw)
    return digest.hexdigest()


TAKE = """
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] and held ~= ARGV[3] then return held end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return false
"""
"""Let a name stand for ARGV[1] for ARGV[2] seconds, if it is free, or stands for that or for ARGV[3]
already. Returns what it stands for otherwise.
"""


@dataclass(frozen=True, slots=True)
class Named:
    """What a name stands for: a decision, the digest of the body that asked for it, and the time (seconds
    since 1970) until which that request may still be waiting for its answer.
    """

    id: str
    body: str
    until: float


class Names:
    """Reads and writes names. Every method raises StoreError when Redis cannot be reached."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def key(self, name: str) -> str:
        """The key of a name."""
        return self._store.key("name", name)

    async def take(self, name: str, named: Named, keep_s: int, *, stale: Named | None = None) -> Named | None:
        """Take a name that is free, or stands for `stale`; what else it stands for, when it is not."""
        expected = orjson.dumps(stale) if stale else b""
        (held,) = await self._store.run(
            ("EVAL", TAKE, 1, self.key(name), orjson.dumps(named), keep_s, expected)
        )
        return None if held is None else Named(**orjson.loads(held))

    async def release(self, name: str) -> None:
        """Give a name up."""
        await self._store.run(("DEL", self.key(name)))

    async def decision(self, name: str) -> str | None:
        """The decision that a bare name stands for, which its terms gave (Terms.twin)."""
        (id,) = await self._store.run(("GET", self.key(name)))
        return None if id is None else id.decode()
