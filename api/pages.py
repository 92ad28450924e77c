"""Pages of a long list: a cursor says where the page before ended."""

from __future__ import annotations

import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from api.refusals import Refusal
from workers.batch_view import batch_of
from workers.jobs import Fields, job_of, status_of
from workers.store.batches import Batches
from workers.store.decisions import Decisions

LOOKED_AT = 1000
"""Most jobs that one page looks at for those of a status."""

LEAST_ASKED = 50
"""Least jobs asked for at once where a status thins them out."""


async def page_of_jobs(
    decisions: Decisions, owner: str, status: str | None, after: str | None, limit: int
) -> dict[str, Any]:
    """A page of an owner's jobs, newest first. Raises Refusal for an `after` that is no cursor of ours."""

    async def kept(ids: Sequence[str]) -> list[Fields | None]:
        return await decisions.jobs(ids, bodies=False)

    def show(id: str, fields: Fields) -> dict[str, Any]:
        return job_of(id, fields, whole=False)

    return await _page(partial(decisions.listed, owner), kept, show, status, after, limit)


async def page_of_batches(
    batches: Batches, owner: str, status: str | None, after: str | None, limit: int
) -> dict[str, Any]:
    """A page of an owner's batches, as that of jobs."""
    return await _page(partial(batches.listed, owner), batches.fields, batch_of, status, after, limit)


async def _page(
    list_before: Callable[[str, int], Awaitable[list[tuple[str, str]]]],
    look: Callable[[Sequence[str]], Awaitable[list[Fields | None]]],
    show: Callable[[str, Fields], dict[str, Any]],
    status: str | None,
    after: str | None,
    limit: int,
) -> dict[str, Any]:
    """A page of what `list_before` lists: ids with their scores, below a score, newest first."""
    score, last = _read(after) if after else ("+inf", "")
    found: list[dict[str, Any]] = []
    looked, most = 0, limit + 1 if status is None else max(limit + 1, LEAST_ASKED)
    while True:
        listed = await list_before(score, most)
        fresh = [(id, at) for id, at in listed if not last or (float(at), id) < (float(score), last)]
        kept = await look([id for id, _ in fresh])
        for (id, at), fields in zip(fresh, kept, strict=True):
            if len(found) == limit:
                return {"object": "list", "data": found, "next": _write(score, last)}
            score, last, looked = at, id, looked + 1
            if fields is not None and status in (None, status_of(fields)):
                found.append(show(id, fields))
        if len(listed) < most or not fresh:
            return {"object": "list", "data": found, "next": None}
        if looked >= LOOKED_AT:
            return {"object": "list", "data": found, "next": _write(score, last)}


def _write(score: str, id: str) -> str:
    return urlsafe_b64encode(f"{score} {id}".encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[str, str]:
    try:
        score, id = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split(" ")
        at = float(score)
        if not math.isfinite(at):
            raise ValueError(f"{score} is no time")
        return repr(at), id
    except ValueError as error:
        raise Refusal(422, "bad_cursor", f"{cursor!r} is no `next` of a page of this server") from error
