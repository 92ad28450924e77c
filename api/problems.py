"""Refusals as native routes tell them: RFC 9457 problem details with a stable `code`."""

from __future__ import annotations

import math
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from api.refusals import Refusal, entry_of, refusal_of, told_entries

MEDIA_TYPE = "application/problem+json"


class NothingMore(Exception):
    """There is nothing to tell, and will not be."""


class ProblemField(BaseModel):
    """One wrong field of a request."""

    pointer: str = Field(description="Where it stands, as a JSON Pointer.")
    detail: str
    code: str = Field(description="Stable name of the rule it breaks.")


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable name of what went wrong.")
    errors: list[ProblemField] = []


PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "What went wrong",
        "model": Problem,
        "content": {
            MEDIA_TYPE: {"schema": Problem.model_json_schema(ref_template="#/components/schemas/{model}")}
        },
    }
}
"""For a route's `responses`."""


def problem(refusal: Refusal) -> Response:
    """The response that tells a refusal."""
    body = {
        "type": "about:blank",
        "title": refusal.code.replace("_", " ").capitalize(),
        "status": refusal.status,
        "detail": refusal.message,
        "code": refusal.code,
        "errors": [
            {"pointer": _pointer(entry.loc), "detail": entry.message, "code": entry.kind}
            for entry in told_entries(refusal)
        ],
    }
    headers = dict(refusal.headers)
    if refusal.retry_after_s is not None:
        headers["Retry-After"] = str(math.ceil(refusal.retry_after_s))
    return Response(orjson.dumps(body), refusal.status, headers, MEDIA_TYPE)


async def tell(_: Request, error: Exception) -> Response:
    """The handler of every refusal that a route lets through."""
    return problem(refusal_of(error))


async def tell_invalid(_: Request, error: Exception) -> Response:
    """The handler of parameters that a native route does not take."""
    assert isinstance(error, RequestValidationError)
    entries = tuple(replace(entry_of(one), given=None) for one in error.errors())
    message = f"{'.'.join(map(str, entries[0].loc))}: {entries[0].message}"
    return problem(Refusal(422, "invalid_request", message, entries=entries))


async def tell_http_error(_: Request, error: Exception) -> Response:
    """The handler of what no route serves."""
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_").replace("-", "_")
    return problem(Refusal(error.status_code, code, str(error.detail), headers=error.headers))


async def tell_fault(_: Request, error: Exception) -> Response:
    """The handler of a fault of ours; the server has logged it."""
    return problem(Refusal(500, "internal", "Canvass failed; the log of the server says more"))


async def tell_nothing(_: Request, error: Exception) -> Response:
    """The handler of a stream in which nothing comes any more: 204 has a browser not ask again."""
    return Response(status_code=204)


async def tell_nobody(_: Request, error: Exception) -> Response:
    """The handler of a client that went away before its request was whole: it hears nothing of this."""
    return Response(status_code=400)


def _pointer(loc: tuple[int | str, ...]) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in loc)
