"""Chat: a decision when its first message is a schema, and ordinary chat of an engine otherwise
(API.md, section 2).
"""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from api.body import read_json
from api.callers import ANYONE
from api.doors.door import VARY, Door
from api.doors.openai_errors import REQUEST_ID, openai_error
from api.doors.passthrough import CHAT, relayed
from api.doors.raw_route import RawRoute
from api.openai_schemas import ERRORS, ChatCompletion, OpenAIError
from api.openapi import decision_route
from api.refusals import REFUSED, refusal_of
from api.service import Service
from planner.dialects.chat_request import ChatRequest, ChatSchema, schema_of

MODELS = (ChatRequest, ChatSchema, ChatCompletion, OpenAIError)
"""What its route names in the OpenAPI document, and the schema that a first message spells."""

EVENTS = "text/event-stream"

DOOR = Door("chat", REQUEST_ID, openai_error)

_ROUTE = decision_route(ChatRequest, ChatCompletion, ERRORS, REQUEST_ID)
# Each event is a chunk as JSON, and the last one `[DONE]`.
_ROUTE["responses"]["200"]["content"][EVENTS] = {}
for _told in _ROUTE["responses"].values():
    # An engine's answer hangs on no preference.
    _told["headers"] = {**_told["headers"], "Vary": {"schema": {"type": "string"}}}

router = APIRouter(route_class=RawRoute)


@router.post(CHAT, summary="Ordinary chat, or typed questions about a state", openapi_extra=_ROUTE)
async def complete(request: Request) -> Response:
    """A decision when the first message's text is a JSON object with `questions` (`ChatSchema`); the answers
    are the JSON in the reply. Anything else goes to an engine unchanged.
    """
    service: Service = request.app.state.service
    caller = ANYONE
    try:
        caller = await service.keyring.admit(request)
        body = await read_json(request, service.settings.max_body_bytes, service.settings.max_json_depth)
        if schema_of(body.value) is None:
            return await relayed(request, caller, body)
        service.require_room()
    except REFUSED as error:
        response = openai_error(refusal_of(error))
        response.headers.update({**VARY, REQUEST_ID: service.new_id(), **caller.headers})
        return response
    answer = await DOOR.answer_body(request, caller, body)
    return _streamed(answer, body.value) if body.value.get("stream") and answer.status_code == 200 else answer


def _streamed(answer: Response, body: dict[str, Any]) -> Response:
    """A whole completion as the events that a client which asked for a stream reads: one chunk, and the
    usage when it asked for that.
    """
    whole = orjson.loads(answer.body)
    (choice,), usage = whole.pop("choices"), whole.pop("usage")
    frame = {**whole, "object": "chat.completion.chunk"}
    told = {
        "index": 0,
        "delta": choice["message"],
        "logprobs": None,
        "finish_reason": choice["finish_reason"],
    }
    chunks: list[dict[str, Any]] = [{**frame, "choices": [told]}]
    options = body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        chunks.append({**frame, "choices": [], "usage": usage})
    events = b"".join(b"data: %b\n\n" % orjson.dumps(chunk) for chunk in chunks)
    headers = {name: value for name, value in answer.headers.items() if not name.startswith("content-")}
    return Response(events + b"data: [DONE]\n\n", 200, headers, EVENTS)
