"""System One's front door: `POST /v1/systemone` (API.md, section 1)."""

from __future__ import annotations

import json
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from api.doors.door import Door
from api.doors.raw_route import RawRoute
from api.openapi import decision_route
from api.refusals import Entry, Refusal, headers_of, told_entries
from api.systemone_schemas import ERRORS, SystemOneError, SystemOneInvalid, SystemOneResponse
from planner.dialects.systemone_request import SchemaRequest, SystemOneRequest

REQUEST_ID = "x-typesafe-request-id"
OVERLOADED = 529

USAGE_KINDS = frozenset({"union_tag_invalid", "unsupported_question_type"})
"""Wrong fields that are 400 `api_usage_error`: a question type that is not served."""

_TYPES = {
    401: "authentication_error",
    403: "authentication_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "overloaded_error",
    500: "api_error",
    502: "api_error",
}
"""Error types by the status of native routes; any other is an `api_usage_error`."""

MODELS = (SystemOneRequest, SchemaRequest, SystemOneResponse, SystemOneError, SystemOneInvalid)
"""What its route names in the OpenAPI document."""

router = APIRouter(route_class=RawRoute)


@router.post(
    "/v1/systemone",
    summary="Answer typed questions about a state",
    openapi_extra=decision_route(
        SystemOneRequest, SystemOneResponse, ERRORS, REQUEST_ID, also=(SchemaRequest,), form=True
    ),
)
async def decide(request: Request) -> Response:
    """One decision, waited for unless the client prefers a job. Over the sync limit it answers 529, and the
    decision runs on.
    """
    return await DOOR.answer(request)


def _refuse(refusal: Refusal) -> Response:
    usage = next((entry for entry in refusal.entries if entry.kind in USAGE_KINDS), None)
    if usage is not None:
        return _error(400, "api_usage_error", f"{'.'.join(map(str, usage.loc))}: {usage.message}", refusal)
    if refusal.entries:
        return _json(
            422, {"detail": [_entry(entry) for entry in told_entries(refusal)]}, dict(refusal.headers)
        )
    if refusal.code == "max_tokens_exceeded":
        return _error(refusal.status, "max_tokens_exceeded", refusal.message, refusal)
    status = OVERLOADED if refusal.status in (503, 504) else refusal.status
    return _error(status, _TYPES.get(refusal.status, "api_usage_error"), refusal.message, refusal)


def _entry(entry: Entry) -> dict[str, Any]:
    return {"loc": ["body", *entry.loc], "msg": entry.message, "type": entry.kind, "input": entry.given}


def _error(status: int, error_type: str, message: str, refusal: Refusal) -> Response:
    return _json(status, {"detail": {"error_type": error_type, "message": message}}, headers_of(refusal))


def _json(status: int, body: Any, headers: dict[str, str]) -> Response:
    try:
        content = orjson.dumps(body, default=str, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        # A value that was refused may hold whole numbers of any size.
        content = json.dumps(body, default=str).encode()
    return Response(content, status_code=status, media_type="application/json", headers=headers)


DOOR = Door("systemone", REQUEST_ID, _refuse)
