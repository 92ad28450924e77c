"""Refusals of the server, in whichever of its two shapes, as typed errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from client.http import Response, path_of, refusal
from client.sdk.errors import (
    ApiError,
    BadRequest,
    Conflict,
    NotFound,
    Overloaded,
    RateLimited,
    ServerFault,
    Unauthorized,
)

REQUEST_ID = "x-typesafe-request-id"
"""The header that names a request, and the job of one that was accepted."""

_TYPES: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: Conflict,
    413: BadRequest,
    415: BadRequest,
    422: BadRequest,
    429: RateLimited,
    503: Overloaded,
    529: Overloaded,
}

_GATEWAYS = (502, 504)
_PASSING = (429, 503, 529)


def accepted(response: Response) -> bool:
    """Whether there is a job, whatever came of the request: the server applied how long it was to wait."""
    return "preference-applied" in response.headers and REQUEST_ID in response.headers


def passing(response: Response) -> bool:
    """Whether a response says to come again: no room now, or a gateway whose server is away."""
    if response.status in _GATEWAYS:
        return _body(response) is None
    return response.status in _PASSING or (response.status == 409 and retry_after_s(response) is not None)


def retry_after_s(response: Response) -> float | None:
    """Seconds after which the server wants to be asked again, None where it does not say."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        said = response.headers.get(name, "")
        if said.isascii() and said.isdigit():
            return int(said) * unit_s
    return None


def api_error(response: Response) -> ApiError:
    """The typed error that a response stands for."""
    code, message, path = _told(response)
    error = _TYPES.get(response.status, ServerFault)
    return error(
        response.status,
        code,
        message,
        path,
        retry_after_s=retry_after_s(response),
        request_id=response.headers.get(REQUEST_ID, ""),
    )


def _told(response: Response) -> tuple[str, str, str]:
    """Code, message and path: of System One's `detail`, or of a problem document (RFC 9457)."""
    body = _body(response)
    if body is None:
        return "no_message", refusal(response.status, response.content), ""
    detail = body.get("detail")
    if isinstance(detail, dict):
        return str(detail.get("error_type", "error")), str(detail.get("message", "")), ""
    if isinstance(detail, list) and detail and isinstance(detail[0], dict):
        first = detail[0]
        message = f"{first.get('msg', 'is wrong')}{_more(detail)}"
        return str(first.get("type", "invalid")), message, path_of(first)
    code, errors = str(body.get("code", "error")), body.get("errors") or []
    if not errors:
        return code, str(detail), ""
    # The document's own detail has the path of the first in it.
    first = errors[0]
    return (
        str(first.get("code", code)),
        f"{first.get('detail', detail)}{_more(errors)}",
        _dotted(str(first.get("pointer", ""))),
    )


def _more(told: Sequence[Any]) -> str:
    return f" (and {len(told) - 1} more)" if len(told) > 1 else ""


def _dotted(pointer: str) -> str:
    """The path that a JSON pointer names, with dots between its parts, as System One's errors have it."""
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def _body(response: Response) -> dict[str, Any] | None:
    """The JSON object of a refusal that the server itself wrote."""
    try:
        body = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return None
    return body if isinstance(body, dict) and "detail" in body else None
