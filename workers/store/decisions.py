"""Decisions in the store: each while it runs, and its outcome while it is kept.

One hash per decision, one key, one expiry:

    decision    what was asked (planner.Decision)           status    open, or a terminal status
    wave        number of the current wave                  body      the outcome, once there is one
    wave:N      the reads of wave N                         shards    how many tasks share the current wave
    result:ID   the result of read ID                       holder    who runs the current wave
    stage, stages, done, planned   how far it got           mover     who made it current
    log         its events between begin and end            channel   where those who wait listen
    cancel      when it was asked to be canceled            watched   set when someone wants its events
    door        the dialect its answer is written in
    owner, lane, metadata, webhook, hooks, patient          its terms (workers/terms.py)
    batch, custom_id                                        where its line goes (workers/store/batches.py)
    created, started, finished, deadline, expires           seconds since 1970
    sent        when its current wave was to be published, last of all

Beside the hashes stand four kinds of sorted sets: `leases` (a decision that is open is in it, with the
time by which someone must have renewed it; one that ran out is taken over by whoever sees it,
workers/watchdog.py), `queued` (those that no worker has begun), and per owner `jobs:OWNER` (all that are
kept) and `open:OWNER` (those that count against a limit of open ones).
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import time
from typing import Any

import structlog

from planner.decision import Decision
from planner.reads import Result, Wave, result_from_bytes, result_to_bytes
from workers.celery_app import BATCH, INTERACTIVE
from workers.dispatch import shard_count
from workers.metrics import DecisionMetrics
from workers.settings import Settings
from workers.store import scripts
from workers.store.batch_scripts import FINISH_ITEM
from workers.store.outcome import CANCELED, EXPIRED, GONE, Outcome
from workers.store.store import Store, fields_of, pairs_of
from workers.terms import Terms

BATCH_PREFIX = "bat_"
"""How the id of a batch begins, and so those of its decisions."""

TWIN_KEPT_S = 120
"""Seconds in which a request that comes again finds its decision, if that is kept as long."""

LATE_S = 1.0
"""Seconds past its deadline after which an open decision is ended by whoever looks at it: there may be no
worker to do it.
"""

PUT_CHUNK = 1000
"""Most results one script call carries: Lua's `unpack` holds some thousands of values."""

_RUN_FIELDS = (
    "decision",
    "wave",
    "status",
    "created",
    "started",
    "deadline",
    "lane",
    "cancel",
    "patient",
    "wave:0",
)

JOB_FIELDS = (
    "status",
    "body",
    "created",
    "started",
    "finished",
    "deadline",
    "expires",
    "cancel",
    "stage",
    "stages",
    "done",
    "planned",
    "log",
    "metadata",
    "owner",
    "webhook",
    "hooks",
)
"""What a job shows of its decision (workers/jobs.py): all but the state and the reads."""


log = structlog.get_logger()


class TooManyOpen(Exception):
    """The owner has as many open decisions as its key allows."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The decisions that no worker has begun: how many, and the seconds that the oldest has waited."""

    length: int
    age_s: float


class QueueFull(Exception):
    """As many decisions wait as the server lets."""

    def __init__(self, queue: Queue) -> None:
        super().__init__(f"{queue.length} decisions wait already, as many as this server lets")
        self.queue = queue


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An open decision as a worker finds it: its current wave, and the results so far.

    `created`, `started` and `deadline` are in seconds since 1970, `size` is that of the decision and its
    wave in bytes, `lane` the queue its tasks go through.
    """

    id: str
    decision: Decision
    number: int
    wave: Wave
    results: Mapping[str, Result]
    created: float
    started: float | None
    deadline: float
    lane: str
    canceling: bool
    patient: bool
    size: int

    @property
    def queued_ms(self) -> float | None:
        """Milliseconds until a worker began; None when that is not known."""
        return None if self.started is None else 1000 * (self.started - self.created)


class Decisions:
    """Reads and writes decisions. Every method raises StoreError when Redis cannot be reached.

    `metrics` counts those that are ended through it.
    """

    def __init__(self, store: Store, settings: Settings, metrics: DecisionMetrics | None = None) -> None:
        self._store = store
        self._settings = settings
        self._metrics = metrics
        self._leases = store.key("leases")
        self._queued = store.key("queued")
        self._holder = f"{socket.gethostname()}-{os.getpid()}"
        self.cancels = store.key("cancels")
        """The channel on which workers hear what is to be canceled."""

    def _key(self, id: str) -> str:
        return self._store.key("decision", id)

    def _keys(self, id: str) -> tuple[str, str, str]:
        return self._key(id), self._leases, self._queued

    async def save(
        self, id: str, decision: Decision, wave: Wave, stages: int, terms: Terms, channel: str
    ) -> None:
        """Accept a decision: from here on it cannot be lost. Raises TooManyOpen or QueueFull.

        `stages` counts the stages of its plan; `channel` is where its outcome is told, or empty.
        """
        settings, now = self._settings, time()
        deadline = now + (terms.deadline_s or settings.deadline_s)
        keep = settings.deadline_s + settings.retention_s
        fields = opened(decision, wave, stages, terms, now, deadline, settings)
        if channel:
            fields["channel"] = channel
        (reply,) = await self._store.run(
            (
                "EVAL",
                scripts.SAVE,
                6,
                *self._keys(id),
                self._store.key("jobs", terms.owner),
                self._store.key("open", terms.owner),
                self._store.key("name", terms.twin),
                id,
                now,
                keep,
                min(now + settings.queued_lease_s, deadline),
                deadline,
                terms.most_open,
                settings.most_queued,
                min(TWIN_KEPT_S, keep) if terms.twin else 0,
                *(part for field in fields.items() for part in field),
            ),
        )
        if reply == b"too many":
            raise TooManyOpen(f"{terms.most_open} decisions of this key are open, as many as it may have")
        if reply == b"full":
            raise QueueFull(await self.queue())

    async def claim(self, id: str, number: int) -> Snapshot | None:
        """Take an open decision to run its current wave, or None when it is not to be run here.

        That is when it is over or gone, or when another worker runs it and says so by renewing its
        lease. `number` is the wave the caller expects; when another is current, that one is loaded.
        """
        names = _RUN_FIELDS if number == 0 else ()
        now = time()
        (values,) = await self._store.run(
            (
                "EVAL",
                scripts.CLAIM,
                3,
                *self._keys(id),
                id,
                now,
                now + self._settings.lease_s,
                f"{self._holder}:{secrets.token_hex(8)}",
                self._store.prefix,
                self._settings.webhook_retention_s,
                *(names or ("wave",)),
            )
        )
        if values is None:
            return None
        fields = {name.encode(): value for name, value in zip(names, values, strict=False)}
        if fields.get(b"wave") == b"0" and fields.get(b"started") == repr(now).encode():
            return _snapshot(id, fields)
        # Someone began it before and may have kept results.
        return await self.load(id)

    async def start(self, id: str) -> None:
        """Say that a decision whose first wave is a chord has begun."""
        keep = self._settings.webhook_retention_s
        await self._store.run(
            ("EVAL", scripts.START, 3, *self._keys(id), id, time(), self._store.prefix, keep)
        )

    async def load(self, id: str) -> Snapshot | None:
        """An open decision with its current wave and all results so far, or None when it is over or gone."""
        (reply,) = await self._store.run(("HGETALL", self._key(id)))
        return _snapshot(id, fields_of(reply))

    async def put_results(self, id: str, results: Mapping[str, Result]) -> bool:
        """Keep some results of an open decision; False when it is over, and nothing more of it counts."""
        pairs = _result_pairs(results)
        kept = await self._store.run(
            *(
                (
                    "EVAL",
                    scripts.PUT_RESULTS,
                    1,
                    self._key(id),
                    id,
                    time(),
                    *pairs[start : start + 2 * PUT_CHUNK],
                )
                for start in range(0, len(pairs), 2 * PUT_CHUNK)
            )
        )
        return all(kept)

    async def advance(self, snapshot: Snapshot, wave: Wave, results: Mapping[str, Result]) -> bool:
        """Move a decision from the wave it was seen in to the next; True for the one caller that moved it.

        `results` are those of its wave that are not in the store yet.
        """
        now, number = time(), snapshot.number
        done = len(snapshot.results.keys() | results.keys())
        progress = {"stage": wave.stage, "done": done, "planned": done + len(wave.all)}
        counts = " ".join(map(str, progress.values()))
        log = f"progress {now} {counts}\n"
        if wave.stage != snapshot.wave.stage:
            log += f"stage {now} {counts}\n"
        fields = {**progress, "sent": now, "shards": shard_count(len(wave.all), self._settings)}
        (moved,) = await self._store.run(
            (
                "EVAL",
                scripts.ADVANCE,
                2,
                self._key(snapshot.id),
                self._leases,
                number,
                number + 1,
                wave.to_bytes(),
                secrets.token_hex(8),
                min(now + self._settings.queued_lease_s, snapshot.deadline),
                snapshot.id,
                log,
                *(part for field in fields.items() for part in field),
                *_result_pairs(results),
            )
        )
        return bool(moved)

    async def finish(self, id: str, outcome: Outcome) -> bool:
        """End a decision and tell those who wait; True for the one caller that ended it."""
        settings, now = self._settings, time()
        (ended,) = await self._store.run(
            (
                "EVAL",
                FINISH_ITEM if id.startswith(BATCH_PREFIX) else scripts.FINISH,
                3,
                *self._keys(id),
                id,
                outcome.status,
                outcome.body,
                now,
                settings.retention_s,
                self._store.prefix,
                settings.webhook_retention_s,
            )
        )
        if not ended:
            return False
        lane = BATCH if id.startswith(BATCH_PREFIX) else INTERACTIVE
        door, created, started = ended[0].decode(), float(ended[1]), float(ended[2])
        if self._metrics is not None:
            self._metrics.end(outcome.status, door, lane, created, started, now)
        if failure := outcome.failure():
            say = log.debug if outcome.status == CANCELED.status else log.warning
            said = {"decision": id, "door": door, "code": failure.code, "reason": failure.message}
            say(f"decision {outcome.status}", **said)
        else:
            log.debug("decision succeeded", decision=id, door=door, ms=round(1000 * (now - created), 1))
        return True

    async def cancel(self, id: str) -> None:
        """Have an open decision canceled: now when nobody runs it, else once its reads have stopped."""
        (reply,) = await self._store.run(
            ("EVAL", scripts.CANCEL, 2, self._key(id), self._leases, id, time(), self.cancels)
        )
        if reply == b"free":
            await self.finish(id, CANCELED)

    async def canceled(self, ids: Sequence[str]) -> list[str]:
        """Those of some decisions that are to be canceled."""
        asked = await self._store.run(*(("HEXISTS", self._key(id), "cancel") for id in ids)) if ids else []
        return [id for id, wanted in zip(ids, asked, strict=True) if wanted]

    async def listen(self, id: str, channel: str, *, events: bool = False) -> bool:
        """Have an outcome, and with `events` every step, told on a channel; False when it is over or gone."""
        (open,) = await self._store.run(("EVAL", scripts.LISTEN, 1, self._key(id), channel, int(events)))
        return bool(open)

    async def queue(self) -> Queue:
        """The decisions that no worker has begun."""
        length, oldest = await self._store.run(
            ("ZCARD", self._queued), ("ZRANGE", self._queued, 0, 0, "WITHSCORES")
        )
        waited = [time() - float(score) for _, score in pairs_of(oldest)]
        return Queue(length, max(waited, default=0.0))

    async def outcomes(self, ids: Sequence[str]) -> dict[str, Outcome | None]:
        """The outcome of each decision, None while it is open. One that is gone has failed: `gone`."""
        found = await self._fields(ids, ("status", "body", "deadline"))
        return {id: _outcome(fields) for id, fields in zip(ids, found, strict=True)}

    async def jobs(self, ids: Sequence[str], *, bodies: bool = True) -> list[Mapping[str, bytes] | None]:
        """What a job shows of each decision (JOB_FIELDS, those that it has), None for one that is gone.

        Without `bodies`, those of the decisions that succeeded are left out: they may be large.
        """
        if bodies:
            return [fields or None for fields in await self._fields(ids, JOB_FIELDS)]
        found = await self._fields(ids, [name for name in JOB_FIELDS if name != "body"])
        failed = [id for id, fields in zip(ids, found, strict=True) if _has_error(fields)]
        errors = dict(zip(failed, await self._fields(failed, ("status", "body")), strict=True))
        return [{**fields, **errors.get(id, {})} or None for id, fields in zip(ids, found, strict=True)]

    async def _fields(self, ids: Sequence[str], names: Sequence[str]) -> list[dict[str, bytes]]:
        """Some fields of each decision, those that it has. One that is late is ended first."""
        if not ids:
            return []
        replies = await self._store.run(*(("HMGET", self._key(id), *names) for id in ids))
        found = [
            {name: value for name, value in zip(names, values, strict=True) if value is not None}
            for values in replies
        ]
        late = [place for place, fields in enumerate(found) if _is_late(fields)]
        for place in late:
            await self.finish(ids[place], EXPIRED)
        if late:
            ended = await self._fields([ids[place] for place in late], names)
            for place, fields in zip(late, ended, strict=True):
                found[place] = fields
        return found

    async def listed(self, owner: str, before: str, most: int) -> list[tuple[str, str]]:
        """Ids of an owner's decisions, newest first, each with its score; `before` bounds the score."""
        return await self._store.newest(self._store.key("jobs", owner), before, most)

    async def queue_position(self, id: str) -> int | None:
        """How many decisions wait before this one, plus one; None when it waits no longer."""
        (rank,) = await self._store.run(("ZRANK", self._queued, id))
        return None if rank is None else int(rank) + 1


def opened(
    decision: Decision,
    wave: Wave,
    stages: int,
    terms: Terms,
    now: float,
    deadline: float,
    settings: Settings,
) -> dict[str, Any]:
    """The fields of a decision that begins: its first wave, the number of its stages, its times."""
    return {
        "decision": decision.to_json(),
        "status": "open",
        "door": decision.door,
        "wave": 0,
        "wave:0": wave.to_bytes(),
        "shards": shard_count(len(wave.all), settings),
        "stage": wave.stage,
        "stages": stages,
        "planned": len(wave.all),
        "created": now,
        "sent": now,
        "deadline": deadline,
        **terms.to_fields(),
    }


def id_of_item(batch: str, index: int) -> str:
    """The id of a batch's decision: the same whenever that state is fed."""
    return f"{batch}.{index}"


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
        lane=fields[b"lane"].decode(),
        canceling=fields.get(b"cancel") is not None,
        patient=fields.get(b"patient") is not None,
        size=len(fields[b"decision"]) + len(fields[b"wave:%d" % number]),
    )


def _outcome(fields: Mapping[str, bytes]) -> Outcome | None:
    if "status" not in fields:
        return GONE
    return Outcome(fields["status"].decode(), fields["body"]) if "body" in fields else None


def _is_late(fields: Mapping[str, bytes]) -> bool:
    return fields.get("status") == b"open" and float(fields.get("deadline", "inf")) + LATE_S < time()


def _has_error(fields: Mapping[str, bytes]) -> bool:
    return fields.get("status", b"open") not in (b"open", b"succeeded")


def _result_pairs(results: Mapping[str, Result]) -> list[str | bytes]:
    return [part for id, result in results.items() for part in (f"result:{id}", result_to_bytes(result))]
