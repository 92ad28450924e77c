"""The native door: jobs (API.md, section 4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Annotated

import orjson
import structlog
from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from api.doors.native import TheCaller, TheService, own_job, told
from api.pages import page_of_jobs
from api.preferences import MOST_WAIT_S
from api.problems import PROBLEM, NothingMore
from api.refusals import Refusal
from api.schemas import Job, JobList, Status
from workers.jobs import TERMINAL, Fields, events_of, status_of
from workers.store.store import StoreError

LOOK_EVERY_S = 1.0
"""Seconds after which a stream of events looks at the store, whatever it heard."""

log = structlog.get_logger()

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=PROBLEM)


@router.get("/{id}", summary="A job; with `wait`, once it is done or the wait is over", response_model=Job)
async def get_job(
    id: str,
    service: TheService,
    caller: TheCaller,
    wait: Annotated[float, Query(ge=0, le=MOST_WAIT_S, description="Seconds to wait for its end.")] = 0,
) -> Response:
    """The job. A wait that ends before it does is no failure: it shows the job as it stands."""
    job = await service.job(id, caller.id)
    until = asyncio.get_running_loop().time() + wait
    while not job["done"] and not service.leaving:
        rest = until - asyncio.get_running_loop().time()
        if rest <= 0:
            break
        await service.join(id, min(rest, LOOK_EVERY_S))
        job = await service.job(id, caller.id)
    return told(job)


@router.get("", summary="Jobs, newest first", response_model=JobList)
async def list_jobs(
    service: TheService,
    caller: TheCaller,
    status: Status | None = None,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Response:
    """The caller's own jobs. A page that a status thins out may hold fewer than `limit`, and still have
    a `next`.
    """
    return told(await page_of_jobs(service.decisions, caller.id, status, after, limit))


@router.post("/{id}/cancel", summary="Cancel a job", status_code=202, response_model=Job)
async def cancel_job(
    id: str, service: TheService, caller: TheCaller, _: Annotated[Fields, Depends(own_job)]
) -> Response:
    """Ask for its reads to stop. The job is `canceled` once they have; one that is done stays as it is."""
    await service.decisions.cancel(id)
    return told(await service.job(id, caller.id), status=202)


LastEvent = Annotated[int, Header(ge=0, description="The last event seen: the stream goes on after it.")]


async def require_more(
    id: str, fields: Annotated[Fields, Depends(own_job)], last_event_id: LastEvent = 0
) -> None:
    """Raise NothingMore for who has seen the last event."""
    if status_of(fields) in TERMINAL and last_event_id >= len(events_of(id, fields)):
        raise NothingMore


@router.get(
    "/{id}/events",
    summary="A job's events as they happen",
    response_class=EventSourceResponse,
    responses={204: {"description": "There is nothing after the last event seen"}},
)
async def job_events(
    id: str,
    service: TheService,
    caller: TheCaller,
    _: Annotated[None, Depends(require_more)],
    last_event_id: LastEvent = 0,
) -> AsyncIterator[ServerSentEvent]:
    """`queued`, `started`, `stage`, `progress`, `done`, numbered from 1. `done` carries the job, and is the
    last. A stream that ends without it is to be asked for again.
    """
    seen = last_event_id
    with service.waiting.watching(id) as step:
        listening = False
        while True:
            fields: Fields | None = None
            try:
                listening = listening or await service.decisions.listen(
                    id, service.waiting.channel, events=True
                )
                fields = await service.job_fields(id, caller.id)
            except StoreError as error:
                # A stream that has begun cannot tell a refusal: it goes on once the store is back.
                log.warning("events wait for the store", decision=id, reason=str(error))
            except Refusal:
                return
            for event in events_of(id, fields) if fields else ():
                if event.number > seen:
                    seen = event.number
                    yield ServerSentEvent(
                        raw_data=orjson.dumps(event.data).decode(), event=event.name, id=str(event.number)
                    )
            if (fields and status_of(fields) in TERMINAL) or service.leaving:
                return
            await _within(step.wait(), LOOK_EVERY_S)
            step.clear()


async def _within(waiting: Awaitable[object], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        return
