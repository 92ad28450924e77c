"""System One's front door: `POST /v1/systemone` (API.md, section 1)."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from api.body import BadJson, BodyError, read_json
from api.doors.raw_route import RawRoute
from api.service import Service, Unavailable, UnknownModel
from planner.dialects.systemone import parse
from planner.dialects.systemone_request import SystemOneRequest
from planner.errors import Invalid, TooLong
from planner.reads import Failure

REQUEST_ID = "x-typesafe-request-id"
RETRY_AFTER_S = 1
OVERLOADED = 529

USAGE_KINDS = frozenset({"union_tag_invalid", "unsupported_question_type"})
"""Validation errors that are 400 `api_usage_error`: a question type that is not served."""

FAILURES = {
    "no_engine": (OVERLOADED, "overloaded_error"),
    "expired": (OVERLOADED, "overloaded_error"),
    "gone": (OVERLOADED, "overloaded_error"),
    "max_tokens_exceeded": (400, "max_tokens_exceeded"),
    "refused": (502, "api_error"),
    "value_error": (400, "api_usage_error"),
}
"""How the failure of a decision is told: its code to a status and an error type."""

router = APIRouter(route_class=RawRoute)


@router.post(
    "/v1/systemone",
    summary="Answer typed questions about a state",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": SystemOneRequest.model_json_schema()}},
        }
    },
)
async def decide(request: Request) -> Response:
    """One decision, waited for. Over the sync limit it answers 529, and the decision runs on."""
    service: Service = request.app.state.service
    try:
        body, size = await read_json(request, service.settings.max_body_bytes)
        accepted = await service.decide(parse(body), size, service.settings.sync_limit_s)
    except BadJson as error:
        return _validation([_entry((), str(error), "json_invalid", None)])
    except BodyError as error:
        return _error(error.status, "api_usage_error", str(error))
    except ValidationError as error:
        return _invalid_fields(error)
    except TooLong as error:
        return _error(400, "max_tokens_exceeded", error.message)
    except Invalid as error:
        return _invalid_field(error)
    except UnknownModel as error:
        return _error(400, "api_usage_error", str(error))
    except Unavailable as error:
        return _error(OVERLOADED, "overloaded_error", str(error))
    if accepted.outcome is None:
        limit = service.settings.sync_limit_s
        return _error(
            OVERLOADED,
            "overloaded_error",
            f"no answer within {limit:g} s; it is still worked on",
            accepted.id,
        )
    failure = accepted.outcome.failure()
    if failure is not None:
        return _failure(failure, accepted.id)
    return Response(accepted.outcome.body, media_type="application/json", headers={REQUEST_ID: accepted.id})


def _invalid_fields(error: ValidationError) -> Response:
    entries = error.errors(include_url=False, include_context=False)
    for entry in entries:
        if entry["type"] in USAGE_KINDS:
            return _error(400, "api_usage_error", f"{_path(entry['loc'])}: {entry['msg']}")
    return _validation(
        [_entry(entry["loc"], entry["msg"], entry["type"], entry["input"]) for entry in entries]
    )


def _invalid_field(error: Invalid) -> Response:
    if error.kind in USAGE_KINDS:
        return _error(400, "api_usage_error", f"{_path(error.loc)}: {error.message}")
    return _validation([_entry(error.loc, error.message, error.kind, error.given)])


def _failure(failure: Failure, id: str) -> Response:
    status, error_type = FAILURES.get(failure.code, (500, "api_error"))
    return _error(status, error_type, failure.message, id)


def _path(loc: tuple[int | str, ...]) -> str:
    return ".".join(map(str, loc))


def _entry(loc: tuple[int | str, ...], message: str, kind: str, given: Any) -> dict[str, Any]:
    return {"loc": ["body", *loc], "msg": message, "type": kind, "input": given}


def _validation(entries: list[dict[str, Any]]) -> Response:
    return _json(422, {"detail": entries}, {})


def _error(status: int, error_type: str, message: str, id: str | None = None) -> Response:
    headers = {} if id is None else {REQUEST_ID: id}
    if status == OVERLOADED:
        headers |= {"retry-after": str(RETRY_AFTER_S), "retry-after-ms": str(1000 * RETRY_AFTER_S)}
    return _json(status, {"detail": {"error_type": error_type, "message": message}}, headers)


def _json(status: int, body: Any, headers: dict[str, str]) -> Response:
    content = orjson.dumps(body, default=str, option=orjson.OPT_NON_STR_KEYS)
    return Response(content, status_code=status, media_type="application/json", headers=headers)
