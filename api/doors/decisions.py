"""OpenAI's front door: `POST /v1/decisions` (API.md, section 3)."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api.doors.door import Door
from api.doors.openai_errors import REQUEST_ID, openai_error
from api.doors.raw_route import RawRoute
from api.openai_schemas import ERRORS, DecisionsResponse, OpenAIError
from api.openapi import decision_route
from planner.dialects.decisions_request import DecisionsRequest

MODELS = (DecisionsRequest, DecisionsResponse, OpenAIError)
"""What its route names in the OpenAPI document."""

DOOR = Door("decisions", REQUEST_ID, openai_error)

router = APIRouter(route_class=RawRoute)


@router.post(
    "/v1/decisions",
    summary="Answer a list of questions about an input, as OpenAI's Decisions does",
    openapi_extra=decision_route(DecisionsRequest, DecisionsResponse, ERRORS, REQUEST_ID),
)
async def decide(request: Request) -> Response:
    """One decision, waited for unless the client prefers a job. Over the sync limit it answers 503, and the
    decision runs on.
    """
    return await DOOR.answer(request)
