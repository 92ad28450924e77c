"""Jobs: a decision as it is seen from outside. Pure functions of what the store keeps of it.

They lie on this floor because a webhook carries the job, and workers deliver webhooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

Status = Literal["queued", "running", "succeeded", "failed", "canceled", "expired"]

TERMINAL: frozenset[str] = frozenset({"succeeded", "failed", "canceled", "expired"})

Fields = Mapping[str, bytes]
"""The fields of a decision's hash that JOB_FIELDS names, those that it has."""


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a job. `number` counts from 1 and is the same for everyone who asks."""

    number: int
    name: Literal["queued", "started", "stage", "progress", "done"]
    data: dict[str, Any]


def status_of(fields: Fields) -> Status:
    """The status a client sees: an open decision is queued until a worker has begun it."""
    status = fields["status"].decode()
    if status == "open":
        return "running" if "started" in fields else "queued"
    return status  # type: ignore[return-value]


def standing_of(id: str, kind: Literal["job", "batch"], fields: Fields) -> dict[str, Any]:
    """What a job and a batch both tell of themselves: status, times, the client's own metadata."""
    status = status_of(fields)
    return {
        "id": id,
        "object": kind,
        "status": status,
        "done": status in TERMINAL,
        "created_at": rfc3339(fields["created"]),
        "started_at": rfc3339(fields.get("started")),
        "finished_at": rfc3339(fields.get("finished")),
        "deadline_at": rfc3339(fields["deadline"]),
        "expires_at": rfc3339(fields.get("expires")),
        "cancel_requested_at": rfc3339(fields.get("cancel")),
        "metadata": orjson.Fragment(fields["metadata"]) if "metadata" in fields else None,
    }


def job_of(id: str, fields: Fields, *, position: int | None = None, whole: bool = True) -> dict[str, Any]:
    """The job object of API.md, section 4. `position` is its place in the queue.

    `whole` leaves the result in, which may be large; it is the door's own response body.
    """
    status = status_of(fields)
    job = {**standing_of(id, "job", fields), "progress": _progress(fields), "urls": urls_of(id)}
    if status == "queued":
        job["queue_position"] = position
    if status == "succeeded":
        if whole:
            job["result"] = orjson.Fragment(fields["body"])
    elif status in TERMINAL:
        job["error"] = orjson.Fragment(fields["body"])
    return job


def urls_of(id: str) -> dict[str, str]:
    """Where a job is found, below the server's base URL."""
    job = f"/v1/jobs/{id}"
    return {
        "get": job,
        "events": f"{job}/events",
        "cancel": f"{job}/cancel",
        "deliveries": f"{job}/deliveries",
        "audit": f"{job}/audit",
    }


def events_of(id: str, fields: Fields) -> list[Event]:
    """Every event of a job so far, in order. A later look begins with the same ones."""
    events: list[tuple[str, dict[str, Any]]] = [("queued", {"at": rfc3339(fields["created"])})]
    if "started" in fields:
        at = rfc3339(fields["started"])
        events += [
            ("started", {"at": at}),
            ("stage", {"at": at, "stage": 1, "stages": int(fields["stages"])}),
        ]
    for line in fields.get("log", b"").decode().splitlines():
        name, at, stage, done, planned = line.split(" ")
        progress = _counts(int(stage), int(fields["stages"]), int(done), int(planned))
        events.append((name, {"at": rfc3339(at), **progress}))
    if status_of(fields) in TERMINAL:
        events.append(("done", job_of(id, fields)))
    return [Event(number, name, data) for number, (name, data) in enumerate(events, start=1)]  # type: ignore[arg-type]


def _progress(fields: Fields) -> dict[str, int]:
    return _counts(
        int(fields["stage"]),
        int(fields["stages"]),
        int(fields.get("done", 0)),
        int(fields["planned"]),
    )


def _counts(stage: int, stages: int, done: int, planned: int) -> dict[str, int]:
    return {"stage": stage + 1, "stages": stages, "reads_done": done, "reads_planned": planned}


def rfc3339(seconds: bytes | str | float | None) -> str | None:
    """A time in seconds since 1970 as clients see it: RFC 3339, in UTC, to the millisecond."""
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(float(seconds), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
