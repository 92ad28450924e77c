"""Webhook deliveries in the store: what is to be sent, when next, and what came of each attempt.

One hash per delivery, `delivery:NAME`, where NAME is `ID:EVENT`. FINISH, START and CLAIM (scripts.py) make
it as a copy of the decision's hash at that moment, so that it outlives the decision:

    event, state        `start` or `completed`; pending, or how it ended: delivered, failed, gone
    next                when the next attempt is due (absent until the first: it is due at once)
    first, place        when the first attempt was, and the place of the next in the schedule
    attempts            how many attempts were made
    attempt:N           attempt N as JSON, from 1 (see Attempt)
    holder              who makes an attempt now
    status, body, owner, webhook, ...   the decision's own (JOB_FIELDS in decisions.py)

Beside them the sorted set `deliveries`: each pending delivery, with the time at which someone must look at
it. That is when its next attempt is due; while it waits in the queue or is attempted, when its lease runs
out. So a lost message or a killed worker costs a delay, and no delivery. All keys expire together,
CANVASS_WEBHOOK_RETENTION_S after the event or the last resend.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import time
from typing import Any

import orjson

from workers.settings import Settings
from workers.store.store import Store, fields_of
from workers.webhooks.schedule import Next

EVENTS = ("start", "completed")

QUEUED_LEASE_S = 5.0
"""Seconds until a delivery whose message nobody took, or that found no room, is published again."""

LEASE_MARGIN_S = 5.0
"""Seconds that an attempt's lease is longer than the attempt may take."""

MOST_ATTEMPTS_KEPT = 50
"""Attempts that a delivery shows. A schedule has ten; each resend begins another."""

DUE = """
local now, until_, most, prefix = unpack(ARGV)
local found = {}
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, most)) do
  local key = prefix .. ':delivery:' .. name
  if redis.call('HGET', key, 'state') == 'pending' then
    redis.call('HDEL', key, 'holder')
    redis.call('ZADD', KEYS[1], until_, name)
    found[#found + 1] = name
  else
    redis.call('ZREM', KEYS[1], name)
  end
end
return found
"""
"""Take the deliveries that someone must see to, so that one caller alone publishes them.

KEYS[1] is the sorted set. ARGV: the time now, when the lease of a published one runs out, the most to
take, the prefix of our keys. Returns their names; one whose hash is gone, or that has ended, is dropped.
A reply that was lost costs the length of that lease.
"""

CLAIM = """
local name, now, until_, token, keep = unpack(ARGV)
local state, holder, next_ = unpack(redis.call('HMGET', KEYS[2], 'state', 'holder', 'next'))
if state ~= 'pending' then return false end
if holder ~= token then
  if next_ and tonumber(next_) > tonumber(now) then return false end
  local lease = redis.call('ZSCORE', KEYS[1], name)
  if holder and lease and tonumber(lease) > tonumber(now) then return false end
  redis.call('HSET', KEYS[2], 'holder', token)
  redis.call('ZADD', KEYS[1], until_, name)
  if redis.call('TTL', KEYS[1]) < 0 then redis.call('EXPIRE', KEYS[1], keep) end
end
return redis.call('HGETALL', KEYS[2])
"""
"""Take a pending delivery to attempt it now.

KEYS: the sorted set, the hash. ARGV: its name, the time now, when the attempt's lease runs out, a token
of the caller's, the seconds to keep a set that was gone. Returns the hash, or nil when it has ended,
is not due, or is being attempted.
"""

RECORD = """
local name, token, number, attempt, state, next_, place, first, most, keep = unpack(ARGV)
if redis.call('HGET', KEYS[2], 'holder') ~= token then return 0 end
redis.call('HDEL', KEYS[2], 'holder', 'next', 'attempt:' .. (number - most))
redis.call('HSET', KEYS[2], 'attempt:' .. number, attempt, 'attempts', number, 'state', state,
  'place', place, 'first', first)
if state == 'pending' then
  redis.call('HSET', KEYS[2], 'next', next_)
  redis.call('ZADD', KEYS[1], next_, name)
  if redis.call('TTL', KEYS[1]) < 0 then redis.call('EXPIRE', KEYS[1], keep) end
else
  redis.call('ZREM', KEYS[1], name)
end
return 1
"""
"""Keep an attempt and what follows it, if the caller still holds the delivery.

KEYS: the sorted set, the hash. ARGV: the delivery's name, the caller's token, the attempt's number and
JSON, the state, when the next attempt is due and its place in the schedule, when the first one was, the
most attempts to keep, the seconds to keep a set that was gone. Returns 1 when it was kept.
"""

DEFER = """
local name, token, until_ = unpack(ARGV)
if redis.call('HGET', KEYS[2], 'holder') ~= token then return 0 end
redis.call('HDEL', KEYS[2], 'holder')
return redis.call('ZADD', KEYS[1], 'XX', until_, name)
"""
"""Give a claimed delivery back without an attempt. KEYS: the sorted set, the hash. ARGV: its name, the
caller's token, when someone must look at it again.
"""

RESEND = """
local name, now, keep = unpack(ARGV)
if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call('EXPIRE', KEYS[2], keep)
local lease = redis.call('ZSCORE', KEYS[1], name)
if redis.call('HEXISTS', KEYS[2], 'holder') == 0 or not lease or tonumber(lease) <= tonumber(now) then
  redis.call('HDEL', KEYS[2], 'holder', 'place', 'first')
  redis.call('HSET', KEYS[2], 'state', 'pending', 'next', now)
  redis.call('ZADD', KEYS[1], now, name)
end
redis.call('EXPIRE', KEYS[1], keep)
return 1
"""
"""Begin a delivery's schedule anew, now. One that is being attempted at this moment is left to that.

KEYS: the sorted set, the hash. ARGV: its name, the time now, the seconds to keep it. Returns 0 when it is
gone.
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of one attempt.

    `at` is when it began (seconds since 1970), `ms` how long it took; `status` the receiver's HTTP status,
    None when there was none; `error` why it failed; `excerpt` the beginning of the receiver's response.
    """

    at: float
    ms: float
    status: int | None = None
    error: str | None = None
    excerpt: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery as the store keeps it; `fields` are those of its hash, `token` proves who claimed it."""

    name: str
    fields: Mapping[str, bytes]
    token: str = ""

    @property
    def id(self) -> str:
        """The decision's id."""
        return self.name.rpartition(":")[0]

    @property
    def owner(self) -> str:
        """The id of the API key that it belongs to, empty on an open server."""
        return self.fields.get("owner", b"").decode()

    @property
    def url(self) -> str:
        """Where it goes."""
        return self.fields["webhook"].decode()

    @property
    def state(self) -> str:
        """`pending`, `delivered`, `failed` or `gone`."""
        return self.fields["state"].decode()

    @property
    def event(self) -> str:
        """What it reports: one of EVENTS."""
        return self.fields["event"].decode()

    @property
    def number(self) -> int:
        """Its place among the events that its decision reports, from 1."""
        hooks = self.fields["hooks"].decode().split(" ")
        asked = [event for event in EVENTS if event in hooks]
        return asked.index(self.event) + 1

    @property
    def next(self) -> float | None:
        """When its next attempt is due, in seconds since 1970; None when there is none to come."""
        if self.state != "pending":
            return None
        moment = "finished" if self.event == "completed" else "started"
        return float(self.fields.get("next", self.fields[moment]))

    @property
    def place(self) -> int:
        """The place of its next attempt in the schedule."""
        return int(self.fields.get("place", 0))

    @property
    def first(self) -> float | None:
        """When its first attempt was, None before that."""
        return float(self.fields["first"]) if "first" in self.fields else None

    @property
    def attempts(self) -> list[tuple[int, Attempt]]:
        """The attempts that are kept, each with its number, in order."""
        numbers = sorted(int(name[8:]) for name in self.fields if name.startswith("attempt:"))
        return [(n, Attempt(**orjson.loads(self.fields[f"attempt:{n}"]))) for n in numbers]


class Deliveries:
    """Reads and writes deliveries. Every method raises StoreError when Redis cannot be reached."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._due = store.key("deliveries")

    def _keys(self, name: str) -> tuple[str, str]:
        return self._due, self._store.key("delivery", name)

    async def due(self, most: int) -> list[str]:
        """Take up to `most` deliveries that someone must see to now; nobody else gets them meanwhile."""
        now = time()
        (names,) = await self._store.run(
            ("EVAL", DUE, 1, self._due, now, now + QUEUED_LEASE_S, most, self._store.prefix)
        )
        return [name.decode() for name in names]

    async def claim(self, names: Sequence[str]) -> list[Delivery]:
        """Take deliveries to attempt them now: those that are pending, due, and attempted by nobody else.

        The claim holds as long as an attempt may take; then another may make it again.
        """
        now, token, keep = time(), secrets.token_hex(8), self._settings.webhook_retention_s
        until = now + self._settings.webhook_timeout_s + LEASE_MARGIN_S
        replies = await self._store.run(
            *(("EVAL", CLAIM, 2, *self._keys(name), name, now, until, token, keep) for name in names)
        )
        return [
            _delivery(name, reply, token)
            for name, reply in zip(names, replies, strict=True)
            if reply is not None
        ]

    async def record(self, delivery: Delivery, attempt: Attempt, then: Next) -> bool:
        """Keep an attempt and what follows it; False when its claim had run out and went to another."""
        first = attempt.at if delivery.first is None else delivery.first
        number = int(delivery.fields.get("attempts", 0)) + 1
        (kept,) = await self._store.run(
            (
                "EVAL",
                RECORD,
                2,
                *self._keys(delivery.name),
                delivery.name,
                delivery.token,
                number,
                orjson.dumps(attempt),
                then.state,
                then.at or 0,
                then.place or 0,
                first,
                MOST_ATTEMPTS_KEPT,
                self._settings.webhook_retention_s,
            )
        )
        return bool(kept)

    async def defer(self, deliveries: Sequence[Delivery]) -> None:
        """Give claimed deliveries back without an attempt; they are looked at again a few seconds later."""
        until = time() + QUEUED_LEASE_S
        await self._store.run(
            *(
                ("EVAL", DEFER, 2, *self._keys(delivery.name), delivery.name, delivery.token, until)
                for delivery in deliveries
            )
        )

    async def of(self, id: str) -> list[Delivery]:
        """The deliveries of a decision that are kept, in the order of its events."""
        names = [f"{id}:{event}" for event in EVENTS]
        replies = await self._store.run(*(("HGETALL", self._keys(name)[1]) for name in names))
        return [_delivery(name, reply) for name, reply in zip(names, replies, strict=True) if reply]

    async def resend(self, name: str) -> bool:
        """Begin a delivery's schedule anew, now; False when it is gone."""
        keep = self._settings.webhook_retention_s
        (found,) = await self._store.run(("EVAL", RESEND, 2, *self._keys(name), name, time(), keep))
        return bool(found)


def _delivery(name: str, reply: Any, token: str = "") -> Delivery:
    fields = {field.decode(): value for field, value in fields_of(reply).items()}
    return Delivery(name, fields, token)
