"""A job's events as they happen: server-sent events, through lost connections."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from client.errors import ServerRefused, ServerUnreachable
from client.http import bearer, lines

RECONNECT_S = 0.5
PATIENCE_S = 60.0
"""Seconds without a word after which a server that was there counts as gone."""

DONE = "done"

PASSING = (502, 503, 504)
"""Statuses of a server that is there again soon."""


class Event(NamedTuple):
    """One step of a job; `number` counts from 1."""

    number: int
    name: str
    data: dict[str, Any]


def follow(url: str, path: str, key: str | None) -> Iterator[Event]:
    """Every event at a path, once and in order, up to `done`; a lost connection is made again.

    Raises `ServerRefused`, or `ServerUnreachable` where nothing answers at first, or not again in time.
    """
    seen, until = 0, 0.0
    while True:
        last = {"last-event-id": str(seen)} if seen else {}
        try:
            for event in parsed(map(bytes.decode, lines(url, path, {**bearer(key), **last}))):
                seen, until = event.number, time.monotonic() + PATIENCE_S
                yield event
                if event.name == DONE:
                    return
        except ServerUnreachable:
            if time.monotonic() > until:
                raise
        except ServerRefused as refused:
            if refused.status not in PASSING or time.monotonic() > until:
                raise
        time.sleep(RECONNECT_S)


def parsed(lines: Iterable[str]) -> Iterator[Event]:
    """The events in the lines of a stream; comments are left out, and an event that is cut short."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value
            continue
        if "data" in fields:
            yield Event(int(fields.get("id", 0)), fields.get("event", ""), orjson.loads(fields["data"]))
        fields = {}
