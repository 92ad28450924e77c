"""Refusals as OpenAI's clients read them: `{"error": {"message", "type", "param", "code"}}`.

Wrong fields are 400, an unknown model 404, a missing key 401 as a wrong one is; `param` is the path of the
first wrong field, `code` a stable name.
"""

from __future__ import annotations

import orjson
from fastapi import Response

from api.refusals import Refusal, headers_of
from planner.dialects.tags import untagged
from planner.errors import Location

REQUEST_ID = "x-request-id"
"""The header that their clients keep as an answer's `_request_id`."""

MOST_TOLD = 5
"""Wrong fields that one message tells of."""

_KNOWN = {
    "unknown_model": (404, "model_not_found"),
    "no_key": (401, "invalid_api_key"),
    "wrong_key": (401, "invalid_api_key"),
    "rate_limited": (429, "rate_limit_exceeded"),
    "max_tokens_exceeded": (400, "context_length_exceeded"),
}
"""Statuses and codes of OpenAI's own, by our code."""


def openai_error(refusal: Refusal) -> Response:
    """The response that tells a refusal."""
    status, code = _KNOWN.get(refusal.code, (refusal.status, refusal.code))
    message, param = refusal.message, None
    if refusal.entries:
        first = refusal.entries[0]
        status, code, param = 400, first.kind, path_of(first.loc) or None
        told = [f"{path}: {entry.message}" if (path := path_of(entry.loc)) else entry.message
                for entry in refusal.entries[:MOST_TOLD]]  # fmt: skip
        left = len(refusal.entries) + refusal.untold - len(told)
        message = "; ".join(told) + (f"; and {left} more" if left else "")
    body = {"error": {"message": message, "type": _type(status), "param": param, "code": code}}
    return Response(orjson.dumps(body), status, headers_of(refusal), "application/json")


def path_of(loc: Location) -> str:
    """The path of a field as OpenAI writes it: `questions[0].choices[1].value`."""
    path = ""
    for part in untagged(loc):
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _type(status: int) -> str:
    if status == 429:
        return "requests"
    return "server_error" if status >= 500 else "invalid_request_error"
