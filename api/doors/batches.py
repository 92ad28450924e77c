"""Batches: the same questions about many states (API.md, section 4)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from time import time
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from api.batch_intake import Posted, read_posted, store_lines
from api.callers import Caller
from api.doors.native import TheAskingCaller, TheCaller, TheService, told
from api.pages import page_of_batches
from api.preferences import MOST_WAIT_S
from api.problems import PROBLEM
from api.refusals import REFUSED, RETRY_AFTER_S, Refusal, refusal_of
from api.repeats import Standing, earlier_of, key_of
from api.schemas import Batch, BatchList, BatchRequest, Status
from api.service import Service
from api.terms import terms_of
from planner.dialects import DIALECTS
from planner.dialects.job_fields import JobFields
from planner.errors import Invalid
from planner.json_numbers import exact_json
from workers.batch_lines import DIALECT, custom_id_of
from workers.batch_view import batch_of, batch_urls_of
from workers.celery_app import BATCH
from workers.feeder import cancel_all
from workers.jobs import TERMINAL, Fields, status_of
from workers.store.batches import Batches, failed_line
from workers.store.decisions import BATCH_PREFIX
from workers.store.names import Named, name_of
from workers.store.outcome import CANCELED, EXPIRED

LOOK_EVERY_S = 0.25
"""Seconds between looks for results that are not there yet."""

TAKEN_IN_S = 300
"""Seconds in which a batch that was posted is taken in, or its Idempotency-Key is free again."""

PLACEHOLDER = "a state"
"""What the questions of a batch are planned about before it is accepted, to see that they can be."""

NDJSON = "application/x-ndjson"

router = APIRouter(prefix="/v1/batches", tags=["batches"], responses=PROBLEM)


def batches_of(request: Request) -> Batches:
    """The batches of the store."""
    batches: Batches = request.app.state.batches
    return batches


TheBatches = Annotated[Batches, Depends(batches_of)]


async def own_batch(id: str, batches: TheBatches, caller: TheCaller) -> Fields:
    """The batch in the path, if it is the caller's. Raises Refusal (404)."""
    (fields,) = await batches.fields([id])
    if fields is None or fields.get("owner", b"").decode() != caller.id:
        raise Refusal(404, "not_found", f"there is no batch {id!r}, or it is no longer kept")
    return fields


TheBatch = Annotated[Fields, Depends(own_batch)]


@router.post(
    "",
    summary="Ask the same questions about many states",
    status_code=202,
    response_model=Batch,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": BatchRequest.model_json_schema()},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["request", "file"],
                        "properties": {
                            "request": {
                                "type": "string",
                                "description": "The JSON body, without `states`.",
                            },
                            "file": {
                                "type": "string",
                                "format": "binary",
                                "description": "JSON Lines (.jsonl) or CSV with a header (.csv).",
                            },
                        },
                    }
                },
            },
        }
    },
)
async def create_batch(
    request: Request, service: TheService, batches: TheBatches, caller: TheAskingCaller
) -> Response:
    """The batch, accepted. What is wrong with the questions refuses all of it; what is wrong with a state
    fails that state's line.
    """
    try:
        posted = await read_posted(request, service.settings)
        id, replayed = await _create(request, service, batches, caller, posted)
    except REFUSED as error:
        raise refusal_of(error) from error
    (fields,) = await batches.fields([id])
    if fields is None:
        raise Refusal(503, "gone", "the batch is no longer kept", retry_after_s=RETRY_AFTER_S)
    response = told(batch_of(id, fields), 202)
    response.headers["Location"] = batch_urls_of(id)["get"]
    response.headers.update(caller.headers)
    if replayed:
        response.headers["Idempotent-Replayed"] = "true"
    return response


@router.get(
    "/{id}", summary="A batch; with `wait`, once it is done or the wait is over", response_model=Batch
)
async def get_batch(
    id: str,
    batches: TheBatches,
    batch: TheBatch,
    service: TheService,
    wait: Annotated[float, Query(ge=0, le=MOST_WAIT_S, description="Seconds to wait for its end.")] = 0,
) -> Response:
    """The batch. A wait that ends before it does is no failure: it shows the batch as it stands."""
    fields: Fields | None = batch
    until = asyncio.get_running_loop().time() + wait
    while fields and status_of(fields) not in TERMINAL and not service.leaving:
        rest = until - asyncio.get_running_loop().time()
        if rest <= 0:
            break
        await asyncio.sleep(min(LOOK_EVERY_S, rest))
        (fields,) = await batches.fields([id])
    return told(batch_of(id, fields or batch))


@router.get("", summary="Batches, newest first", response_model=BatchList)
async def list_batches(
    batches: TheBatches,
    caller: TheCaller,
    status: Status | None = None,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Response:
    """The caller's own batches."""
    return told(await page_of_batches(batches, caller.id, status, after, limit))


@router.post("/{id}/cancel", summary="Cancel a batch", status_code=202, response_model=Batch)
async def cancel_batch(id: str, service: TheService, batches: TheBatches, batch: TheBatch) -> Response:
    """Feed no more states, and stop what is open. The batch is `canceled` once that has stopped; one that is
    done stays as it is.
    """
    await cancel_all(service.decisions, await batches.stop(id, "cancel", time()))
    (fields,) = await batches.fields([id])
    return told(batch_of(id, fields or batch), 202)


@router.get(
    "/{id}/results",
    summary="A line of JSON per state, in input order, as they come",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "`index`, `custom_id`, `status`, and `result` or `error` of each state",
            "content": {NDJSON: {"schema": {"type": "string"}}},
        }
    },
)
async def batch_results(
    id: str,
    batches: TheBatches,
    _: TheBatch,
    after: Annotated[
        int | None,
        Query(ge=0, le=2**53, description="Index of the last line seen: the stream goes on after it."),
    ] = None,
    wait: Annotated[bool, Query(description="Stay until the batch ends; else give what is there.")] = True,
) -> StreamingResponse:
    """Every line once, in order. The stream ends when all lines were sent, or, without `wait`, before the
    first that is not there yet.
    """
    lines = _lines(batches, id, 0 if after is None else after + 1, wait=wait)
    return StreamingResponse(
        lines, media_type=NDJSON, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


async def _create(
    request: Request, service: Service, batches: Batches, caller: Caller, posted: Posted
) -> tuple[str, bool]:
    """The id of the batch, and whether it was asked for before."""
    terms = replace(terms_of(posted.request, caller, service.settings, patient=True), lane=BATCH, most_open=0)
    asked = {name: value for name, value in posted.request.items() if name not in JobFields.model_fields}
    probe = DIALECTS[DIALECT].parse({**asked, "state": PLACEHOLDER})
    if probe.options.audit:
        raise Invalid(
            ("audit",), "the states of a batch are not audited: ask about them one by one", kind="not_served"
        )
    await service.check(probe, len(exact_json(asked)))
    id, key = f"{BATCH_PREFIX}{uuid.uuid4().hex}", key_of(request)
    name = ""
    if key is not None:
        name = name_of("key", caller.id, "batches", key)
        named = Named(id, posted.digest, time() + TAKEN_IN_S)
        keep_s = service.settings.batch_deadline_s + service.settings.batch_retention_s
        earlier = await earlier_of(service.names, name, named, keep_s, partial(_standing, batches))
        if earlier is not None:
            return earlier, True
    try:
        total, pieces = await store_lines(batches, id, posted.lines, service.settings.max_batch_states)
    except REFUSED:
        if name:
            await service.names.release(name)
        raise
    # Where the store does not answer it may be accepted all the same: who comes again with the key finds out.
    await batches.save(id, asked, caller.salt, terms, total, pieces)
    return id, False


async def _standing(batches: Batches, id: str) -> Standing:
    (fields,) = await batches.fields([id])
    return "unknown" if fields is None else "answered"


async def _lines(batches: Batches, id: str, next: int, *, wait: bool) -> AsyncIterator[bytes]:
    """The lines of a batch from index `next` on, several at a time.

    Raises LookupError, which breaks the response off, when the batch's time is over meanwhile.
    """
    while True:
        # The batch is looked at first: what it says is over then has all its lines.
        (fields,) = await batches.fields([id])
        lines = await batches.lines(id, next)
        if lines:
            next += len(lines)
            yield b"\n".join(lines) + b"\n"
        elif fields is None:
            raise LookupError(f"batch {id} is no longer kept")
        elif status_of(fields) in TERMINAL:
            async for unfed in _unfed_lines(batches, id, fields, next):
                yield unfed
            return
        elif not wait:
            return
        else:
            await asyncio.sleep(LOOK_EVERY_S)


async def _unfed_lines(batches: Batches, id: str, fields: Fields, next: int) -> AsyncIterator[bytes]:
    """The lines of the states that a batch never fed, from index `next` on."""
    if next < int(fields["fed"]):
        raise LookupError(f"line {next} of batch {id} is no longer kept")
    if next >= int(fields["total"]):
        return
    status = status_of(fields)
    known = {"canceled": CANCELED.body, "expired": EXPIRED.body}
    error = orjson.loads(fields["fault"] if status == "failed" else known[status])
    for number in range(int(fields["piece"]), int(fields["pieces"])):
        piece = await batches.piece(id, number)
        if piece is None:
            raise LookupError(f"the states of batch {id} are no longer kept")
        lines = [
            failed_line(index, custom_id_of(line), status, **error)
            for index, line in enumerate(piece.lines, start=piece.first)
            if index >= next
        ]
        if lines:
            yield b"\n".join(lines) + b"\n"
