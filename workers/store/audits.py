"""Audits in the store: of each audited decision what it read, and the checks that its caller made of it.

A hash per decision, kept as long as the job: `reads`, JSON Lines, and `check:NAME`, a line each, at most
`MOST_CHECKS` of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from workers.settings import Settings
from workers.store.store import Store, fields_of

CHECK = "check:"

MOST_CHECKS = 1000
"""Checks of one audit, by name."""

ADD = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local fields = redis.call('HLEN', KEYS[1])
for i = 2, #ARGV, 2 do fields = fields + 1 - redis.call('HEXISTS', KEYS[1], ARGV[i]) end
if fields > tonumber(ARGV[1]) then return -1 end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1
"""
"""Put fields into a hash that is there: one that is gone must not come back, it would be kept for ever.

KEYS: the hash. ARGV: how many fields it may have, then names and values, no name twice. Returns 1 when they
were kept, 0 when the hash is gone, -1 when they would be too many.
"""


class TooManyChecks(Exception):
    """An audit would have more checks than are kept."""


class Audits:
    """Reads and writes audits. Every method raises StoreError when Redis cannot be reached."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._keep_s = settings.retention_s

    def _key(self, id: str) -> str:
        return self._store.key("audit", id)

    async def keep(self, id: str, reads: bytes) -> None:
        """Keep what a decision read, as JSON Lines."""
        key = self._key(id)
        await self._store.run(("HSET", key, "reads", reads), ("EXPIRE", key, self._keep_s))

    async def add_checks(self, id: str, checks: Mapping[str, bytes]) -> bool:
        """Keep checks by their names, each a line of JSON; one of a name that is there takes its place.

        False when there is no such audit, or no longer. Raises `TooManyChecks`, and keeps none of them, when
        there would be more than `MOST_CHECKS`.
        """
        fields = [part for name, line in checks.items() for part in (CHECK + name, line)]
        # `reads` is a field, too.
        (kept,) = await self._store.run(("EVAL", ADD, 1, self._key(id), MOST_CHECKS + 1, *fields))
        if kept == -1:
            raise TooManyChecks(f"an audit has {MOST_CHECKS} checks at most, by name")
        return bool(kept)

    async def lines(self, id: str) -> bytes | None:
        """The audit as JSON Lines, checks last; None when there is none."""
        (found,) = await self._store.run(("HGETALL", self._key(id)))
        fields = {name.decode(): line for name, line in fields_of(found).items()}
        if "reads" not in fields:
            return None
        checks = [line for name, line in sorted(fields.items()) if name.startswith(CHECK)]
        return b"\n".join([fields["reads"], *checks]) + b"\n"
