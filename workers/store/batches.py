"""Batches in the store: many states, each a decision of its own, and one line of results for each.

One hash per batch, and under its key, all with its expiry:

    in:K     the K-th piece of its states, compressed: the index of the first, then a line for each
    out:K    a hash of the lines of results from index 1000 K on, by index
    open     the set of indexes that are decisions now

The fields of the hash:

    request     what all states share: a body of its door without a state     status    open, or terminal
    fed, piece  how many states were fed, and the piece the last came from    total, pieces   of how many
    succeeded, failed, canceled, expired   how the states ended so far        limit_s   a decision's deadline
    cancel      when it was asked to be canceled       fault   the error that stopped it, as JSON
    owner, salt, metadata, webhook, hooks              its terms
    created, started, finished, deadline, expires      seconds since 1970
    retention   seconds it is kept once it ended       object  always `batch`

Beside the hashes stand two kinds of sorted sets: `batches` (those that are open, with the time by which their
feeder must have renewed its lease) and per owner `batches:OWNER` (all that are kept).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import time
from typing import Any

import orjson
import zstandard

from planner.decision import Decision
from planner.json_numbers import exact, exact_json
from planner.reads import Wave
from workers.celery_app import INTERACTIVE
from workers.settings import Settings
from workers.store import batch_scripts as scripts
from workers.store.decisions import id_of_item, opened
from workers.store.store import Store
from workers.terms import Terms

OUT_LINES = 1000
"""Lines of results in one piece; the scripts count on it too."""

BESIDE_S = 1.0
"""Seconds after an interactive wave that has begun in which others are taken to come in."""

SCAN = 1000
"""Most results that one look fetches."""

VIEW_FIELDS = (
    "status",
    "total",
    "fed",
    "succeeded",
    "failed",
    "canceled",
    "expired",
    "created",
    "started",
    "finished",
    "deadline",
    "expires",
    "cancel",
    "fault",
    "piece",
    "pieces",
    "metadata",
    "owner",
    "webhook",
)
"""What a batch object shows (workers/batch_view.py): all but what is asked."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some states in a row: the index of the first, and a line for each (workers/batch_lines.py)."""

    first: int
    lines: tuple[bytes, ...]

    def to_bytes(self) -> bytes:
        """The piece for the store."""
        plain = b"%d\n" % self.first + b"\n".join(self.lines)
        return zstandard.ZstdCompressor(level=1).compress(plain)

    @staticmethod
    def from_bytes(data: bytes) -> Piece:
        """The piece that `to_bytes` wrote."""
        first, *lines = zstandard.ZstdDecompressor().decompress(data).split(b"\n")
        return Piece(int(first), tuple(lines))


@dataclass(frozen=True, slots=True)
class Fed:
    """A state on its way into the line: its index, the piece it came from, its custom id.

    It is either a decision with its first wave and the number of its stages, or `error`, the failure's
    code and message.
    """

    index: int
    piece: int
    custom_id: str | None
    asked: tuple[Decision, Wave, int] | None
    error: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Feeding:
    """An open batch as its feeder sees it: how far it is fed, and how many of its decisions are open.

    `stopped` is set when it was canceled or failed; `beside` while interactive decisions come in;
    `deadline` is in seconds since 1970.
    """

    fed: int
    piece: int
    total: int
    open: int
    stopped: bool
    beside: bool
    deadline: float


@dataclass(frozen=True, slots=True)
class Shared:
    """What all states of a batch share: the body of their door without a state, and their terms."""

    request: Mapping[str, Any]
    salt: str
    terms: Terms


class Batches:
    """Reads and writes batches. Every method raises StoreError when Redis cannot be reached."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._leases = store.key("batches")

    def _key(self, id: str, *parts: str) -> str:
        return self._store.key("batch", id, *parts)

    @property
    def _keep_s(self) -> int:
        return self._settings.batch_deadline_s + self._settings.batch_retention_s

    async def put_piece(self, id: str, number: int, piece: Piece) -> None:
        """Keep a piece of the states of a batch that is still coming in."""
        key = self._key(id, "in", str(number))
        await self._store.run(("SET", key, piece.to_bytes(), "EX", self._keep_s))

    async def drop_pieces(self, id: str, count: int) -> None:
        """Forget the pieces of a batch that was not accepted after all."""
        if count:
            await self._store.run(("UNLINK", *(self._key(id, "in", str(number)) for number in range(count))))

    async def save(
        self, id: str, request: Mapping[str, Any], salt: str, terms: Terms, total: int, pieces: int
    ) -> None:
        """Accept a batch whose `total` states are in `pieces` pieces: from here on it cannot be lost."""
        settings, now = self._settings, time()
        fields: dict[str, Any] = {
            "object": "batch",
            "status": "open",
            "request": exact_json(request),
            "salt": salt,
            "total": total,
            "pieces": pieces,
            "fed": 0,
            "piece": 0,
            **dict.fromkeys(("succeeded", "failed", "canceled", "expired"), 0),
            "created": now,
            "deadline": now + settings.batch_deadline_s,
            "expires": now + self._keep_s,
            "retention": settings.batch_retention_s,
            **terms.to_fields(),
        }
        if terms.deadline_s is not None:
            fields["limit_s"] = terms.deadline_s
        keys = self._key(id), self._leases, self._store.key("batches", terms.owner)
        pairs = (part for field in fields.items() for part in field)
        await self._store.run(("EVAL", scripts.SAVE_BATCH, 3, *keys, id, now, self._keep_s, *pairs))

    async def fields(self, ids: Sequence[str]) -> list[Mapping[str, bytes] | None]:
        """The fields of some batches (workers/batch_view.py shows them), None for one that is gone."""
        if not ids:
            return []
        replies = await self._store.run(*(("HMGET", self._key(id), *VIEW_FIELDS) for id in ids))
        found = [
            {name: value for name, value in zip(VIEW_FIELDS, values, strict=True) if value is not None}
            for values in replies
        ]
        return [fields or None for fields in found]

    async def listed(self, owner: str, before: str, most: int) -> list[tuple[str, str]]:
        """Ids of an owner's batches, newest first, each with its score; `before` bounds the score."""
        return await self._store.newest(self._store.key("batches", owner), before, most)

    async def overdue(self, most: int) -> list[str]:
        """Up to `most` open batches that nobody feeds, the one that waits longest first."""
        query = ("ZRANGE", self._leases, "-inf", time(), "BYSCORE", "LIMIT", 0, most)
        (ids,) = await self._store.run(query)
        return [id.decode() for id in ids]

    async def take_over(self, id: str) -> Shared | None:
        """Take over the feeding of a batch whose lease ran out; None when there is nothing to feed."""
        now = time()
        command = ("EVAL", scripts.TAKE_BATCH, 2, self._key(id), self._leases, id, now)
        taken, values = await self._store.run(
            (*command, now + self._settings.lease_s),
            ("HMGET", self._key(id), "request", "salt", "owner", "limit_s", "lane"),
        )
        request, salt, owner, limit_s, lane = values
        if not taken or request is None:
            return None
        terms = Terms(
            owner=(owner or b"").decode(),
            deadline_s=float(limit_s) if limit_s else None,
            lane=lane.decode(),
            patient=True,
        )
        return Shared(exact(orjson.loads(request), request), salt.decode(), terms)

    async def renew(self, ids: Iterable[str]) -> None:
        """Say that these batches are still fed here. One that ended meanwhile stays ended."""
        until = time() + self._settings.lease_s
        pairs = [part for id in ids for part in (until, id)]
        if pairs:
            await self._store.run(("ZADD", self._leases, "XX", "GT", *pairs))

    async def feeding(self, id: str) -> Feeding | None:
        """How far an open batch is fed; None when it is over or gone."""
        values, open, begun = await self._store.run(
            ("HMGET", self._key(id), "status", "fed", "piece", "total", "deadline", "cancel", "fault"),
            ("SCARD", self._key(id, "open")),
            ("GET", self._store.key("begun", INTERACTIVE)),
        )
        status, fed, piece, total, deadline, cancel, fault = values
        if status != b"open":
            return None
        stopped = cancel is not None or fault is not None
        beside = begun is not None and time() - float(begun) < BESIDE_S
        return Feeding(int(fed), int(piece), int(total), int(open), stopped, beside, float(deadline))

    async def piece(self, id: str, number: int) -> Piece | None:
        """A piece of a batch's states, None when it is gone: fed, or no longer kept."""
        (data,) = await self._store.run(("GET", self._key(id, "in", str(number))))
        return None if data is None else Piece.from_bytes(data)

    async def feed(self, id: str, batch: Feeding, terms: Terms, states: Sequence[Fed]) -> list[bool]:
        """Feed the next states of a batch, in order; whether each is fed now, by whomever."""
        now = time()
        return [
            bool(fed)
            for fed in await self._store.run(
                *(self._feed_command(id, batch, terms, state, now) for state in states)
            )
        ]

    def _feed_command(self, id: str, batch: Feeding, terms: Terms, state: Fed, now: float) -> tuple[Any, ...]:
        settings, item = self._settings, id_of_item(id, state.index)
        deadline = min(now + (terms.deadline_s or settings.deadline_s), batch.deadline)
        line, fields = b"", {}
        if state.asked is None:
            line = failed_line(state.index, state.custom_id, "failed", *state.error)
        else:
            decision, wave, stages = state.asked
            fields = opened(decision, wave, stages, terms, now, deadline, settings)
            fields |= {"batch": f"{id} {state.index}", "custom_id": orjson.dumps(state.custom_id)}
        return (
            "EVAL",
            scripts.FEED,
            5,
            self._key(id),
            self._key(id, "open"),
            self._key(id, "out", str(state.index // OUT_LINES)),
            self._store.key("decision", item),
            self._store.key("leases"),
            id,
            item,
            state.index,
            state.piece,
            now,
            line,
            min(now + settings.queued_lease_s, deadline),
            self._store.prefix,
            settings.webhook_retention_s,
            *(part for field in fields.items() for part in field),
        )

    async def stop(self, id: str, field: str = "", value: str | float = "") -> list[str]:
        """Stop the feeding of an open batch and end it when nothing of it is open; ids of what is open.

        `field` says why: `cancel` with the time it was asked for, `fault` with an error as JSON, or
        nothing for a deadline that passed.
        """
        keep = self._settings.webhook_retention_s
        key = self._key(id)
        (open,) = await self._store.run(
            ("EVAL", scripts.STOP_BATCH, 1, key, id, time(), field, value, self._store.prefix, keep)
        )
        return [id_of_item(id, int(index)) for index in open]

    async def lines(self, id: str, first: int, most: int = SCAN) -> list[bytes]:
        """The lines of results from an index on, up to the first that is not there yet."""
        number = first // OUT_LINES
        last = min(first + most, (number + 1) * OUT_LINES)
        (found,) = await self._store.run(("HMGET", self._key(id, "out", str(number)), *range(first, last)))
        there = next((place for place, line in enumerate(found) if line is None), len(found))
        lines: list[bytes] = found[:there]
        return lines


def failed_line(index: int, custom_id: str | None, status: str, code: str, message: str) -> bytes:
    """The line of a state that has no result."""
    error = {"code": code, "message": message}
    return orjson.dumps({"index": index, "custom_id": custom_id, "status": status, "error": error})
