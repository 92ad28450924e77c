"""The native door to audits: what an audited decision read, and the checks that its caller made of it."""

from __future__ import annotations

from time import time
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from api.doors.native import own_job, told
from api.problems import PROBLEM
from api.refusals import Refusal
from workers.jobs import TERMINAL, Fields, rfc3339, status_of
from workers.store.audits import Audits, TooManyChecks

router = APIRouter(prefix="/v1/jobs/{id}/audit", tags=["audits"], responses=PROBLEM)

JSON_LINES = "application/x-ndjson"
MAX_CHECKS = 100


class Check(BaseModel):
    """A rule of the caller's own, by its name, and whether the answer keeps to it."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=200)
    passed: StrictBool
    message: str | None = Field(None, max_length=2000)


class Checks(BaseModel):
    """Checks that a caller made of a decision's answer."""

    model_config = ConfigDict(extra="forbid")

    checks: list[Check] = Field(min_length=1, max_length=MAX_CHECKS)


def audits_of(request: Request) -> Audits:
    """The audits in the store."""
    audits: Audits = request.app.state.audits
    return audits


TheAudits = Annotated[Audits, Depends(audits_of)]
OwnJob = Annotated[Fields, Depends(own_job)]


@router.get(
    "",
    summary="What an audited decision read, as JSON Lines",
    response_class=Response,
    responses={200: {"content": {JSON_LINES: {}}}},
)
async def get_audit(id: str, job: OwnJob, audits: TheAudits) -> Response:
    """First the decision, then a line per read or text as it came, then the caller's checks by name. It is
    kept as long as the job, and asked for with `"audit": true` in the decision.
    """
    lines = await audits.lines(id)
    if lines is None:
        raise _no_audit(id, job)
    return Response(lines, media_type=JSON_LINES, headers={"Cache-Control": "no-store"})


@router.post("", summary="Record checks in the audit", status_code=201, response_model=Checks)
async def add_checks(id: str, checks: Checks, job: OwnJob, audits: TheAudits) -> Response:
    """Put the caller's own checks beside what was read. One of a name that is there takes its place. An audit
    has 1,000 names at most: of those that go beyond it none is recorded.
    """
    at = rfc3339(time())
    lines = {
        check.name: orjson.dumps({"type": "check", "at": at, **check.model_dump()}) for check in checks.checks
    }
    try:
        kept = await audits.add_checks(id, lines)
    except TooManyChecks as error:
        raise Refusal(422, "too_many_checks", str(error)) from error
    if not kept:
        raise _no_audit(id, job)
    return told(checks.model_dump(), status=201)


def _no_audit(id: str, job: Fields) -> Refusal:
    """Why a job of the caller's has no audit: 409 while it runs, 404 where there is none."""
    if status_of(job) not in TERMINAL:
        return Refusal(409, "not_done", f"job {id!r} is not done; its audit is kept when it is")
    return Refusal(
        404,
        "not_audited",
        f'job {id!r} has no audit: it was asked for without `"audit": true`, or never read',
    )
