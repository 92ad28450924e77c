"""Pages of a long list: a cursor says where the page before ended."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from api.refusals import Refusal
from workers.jobs import job_of, status_of
from workers.store.decisions import Decisions

LOOKED_AT = 1000
"""Most jobs that one page looks at for those of a status."""


async def page_of_jobs(
    decisions: Decisions, owner: str, status: str | None, after: str | None, limit: int
) -> dict[str, Any]:
    """A page of an owner's jobs, newest first. Raises Refusal for an `after` that is no cursor of ours."""
    score, last = _read(after) if after else ("+inf", "")
    found: list[dict[str, Any]] = []
    looked = 0
    while True:
        listed = await decisions.listed(owner, score, limit + 1)
        fresh = [(id, at) for id, at in listed if not last or (float(at), id) < (float(score), last)]
        for (id, at), fields in zip(fresh, await decisions.jobs([id for id, _ in fresh]), strict=True):
            if len(found) == limit:
                return {"object": "list", "data": found, "next": _write(score, last)}
            score, last, looked = at, id, looked + 1
            if fields is not None and status in (None, status_of(fields)):
                found.append(job_of(id, fields, whole=False))
        if len(listed) <= limit or not fresh:
            return {"object": "list", "data": found, "next": None}
        if looked >= LOOKED_AT:
            return {"object": "list", "data": found, "next": _write(score, last)}


def _write(score: str, id: str) -> str:
    return urlsafe_b64encode(f"{score} {id}".encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[str, str]:
    try:
        score, id = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split(" ")
        return repr(float(score)), id
    except ValueError as error:
        raise Refusal(422, "bad_cursor", f"{cursor!r} is no `next` of a page of this server") from error
