"""The verdict: everything that is in Redis at the end, against the promise and what the clients saw."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from time import sleep, time
from typing import Any

import orjson
import redis

from bench.chaos.ledger import TERMINAL, Ledger
from bench.chaos.producers import RETRYABLE
from bench.chaos.recovery import members

GRACE_S = 15.0
"""Seconds past its deadline within which a decision must have ended."""

MOST_FAILED = 0.02
"""Share of decisions that may fail for want of an engine or of time: the troubles explain those."""

FOR_EVER = (b"canvass:celery:", b"canvass:keys", b"canvass:engines")
"""Kombu's own keys, and configuration: the keys that have no expiry."""

FIELDS = ("status", "body", "created", "started", "finished", "deadline", "metadata")
EMPTY = ("leases", "queued", "deliveries", "batches")
"""Sorted sets of what is open: nothing may be left in them."""


@dataclass(slots=True)
class Kept:
    """What Redis had at the end: decisions by status, failures by code, the median time of each kind in s."""

    statuses: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    took_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    latest_s: float = float("-inf")
    kinds: dict[str, str] = field(default_factory=dict)

    def usual_s(self, id: str) -> float:
        """The median time of decisions of one's kind, from the start of its reads to its end."""
        return median(self.took_s[self.kinds[id]]) if id in self.kinds else 0.0


def open_of(connection: redis.Redis) -> int:
    """How much is still open: decisions, batches, and webhooks to be sent."""
    with connection.pipeline(transaction=False) as pipeline:
        for name in EMPTY:
            pipeline.zcard(f"canvass:{name}")
        return int(sum(pipeline.execute()))


def judged(connection: redis.Redis, ledger: Ledger) -> Kept:
    """Look at every key, and note in the ledger what breaks the promise."""
    kept = Kept()
    numbers: defaultdict[int, list[tuple[float, str, str]]] = defaultdict(list)
    names: list[bytes] = list(connection.scan_iter("*", count=1000))
    for key, ttl in _ttls(connection, names):
        if ttl == -1 and not key.startswith(FOR_EVER):
            ledger.broken(key.decode(), "has no expiry")
    for id, fields in _decisions(connection, names):
        _judge_decision(ledger, kept, id, fields)
        if "metadata" in fields:
            told = orjson.loads(fields["metadata"])
            numbers[told["number"]].append((float(fields["created"]), id, fields["status"].decode()))
    for name in EMPTY:
        for left in members(connection, f"canvass:{name}"):
            ledger.broken(left, f"is left in {name}")
    for number, found in numbers.items():
        _judge_number(ledger, kept, number, sorted(found))
    _judge_failures(ledger, kept)
    ledger.judge_endings()
    ledger.judge_hooks(kept.kinds)
    return kept


def _judge_decision(ledger: Ledger, kept: Kept, id: str, fields: dict[str, bytes]) -> None:
    status = fields["status"].decode()
    kept.statuses[status] += 1
    if status not in TERMINAL:
        ledger.broken(id, f"is still {status}")
        return
    finished, late = float(fields["finished"]), float(fields["finished"]) - float(fields["deadline"])
    kept.latest_s = max(kept.latest_s, late)
    if late > GRACE_S:
        ledger.broken(id, f"ended {late:.1f} s after its deadline")
    if "metadata" not in fields:
        return  # a batch's, which its lines tell of
    told = orjson.loads(fields["metadata"])
    ledger.accepted(id, told["number"], told["kind"])
    kept.kinds[id] = told["kind"]
    body = orjson.loads(fields["body"])
    if status == "succeeded":
        ledger.answer(id, body)
        if "started" in fields:
            kept.took_s[told["kind"]].append(finished - float(fields["started"]))
        return
    ledger.endings[id].add((status, body["code"].encode()))
    kept.failures[body["code"]] += 1


def _judge_number(ledger: Ledger, kept: Kept, number: int, found: list[tuple[float, str, str]]) -> None:
    """One request became one decision, and another only once that had failed."""
    *earlier, _ = found
    for _, id, status in earlier:
        code = next((ending[1].decode() for ending in ledger.endings[id] if ending[0] == status), "")
        if status == "succeeded" or code not in RETRYABLE:
            ledger.broken(id, f"{status} {code}: number {number} became {len(found)} decisions all the same")


def _judge_failures(ledger: Ledger, kept: Kept) -> None:
    for code, times in kept.failures.items():
        if code not in RETRYABLE:
            ledger.broken(f"{times} decisions", f"failed with {code}, which no trouble explains")
    most = max(3, MOST_FAILED * sum(kept.statuses.values()))
    if (failed := sum(kept.failures.values())) > most:
        ledger.broken(f"{failed} decisions", f"failed, more than {most:.0f}: {dict(kept.failures)}")


def _ttls(connection: redis.Redis, names: list[bytes]) -> list[tuple[bytes, int]]:
    with connection.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.ttl(name)
        return list(zip(names, pipeline.execute(), strict=True))


def _decisions(connection: redis.Redis, names: list[bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    prefix = b"canvass:decision:"
    ids = [name.removeprefix(prefix).decode() for name in names if name.startswith(prefix)]
    with connection.pipeline(transaction=False) as pipeline:
        for id in ids:
            pipeline.hmget(f"canvass:decision:{id}", FIELDS)
        found: list[list[Any]] = pipeline.execute()
    for id, values in zip(ids, found, strict=True):
        fields = {name: value for name, value in zip(FIELDS, values, strict=True) if value is not None}
        if "status" in fields:
            yield id, fields


def settled(connection: redis.Redis, within_s: float) -> float:
    """Wait until nothing is open any more; the seconds that it took, at most `within_s`."""
    start = time()
    while time() - start < within_s and open_of(connection):
        sleep(0.2)
    return time() - start
