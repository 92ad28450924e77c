"""The native door to plans: what a schema, or questions, would be asked as. Nothing runs."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from api.body import read_json
from api.doors.native import TheAskingCaller, TheService, told
from api.problems import PROBLEM
from api.refusals import REFUSED, Refusal, refusal_of
from planner.dialects import systemone
from planner.dialects.question_bodies import question_body
from planner.dialects.systemone_request import Text
from planner.schemas.forms import outline
from planner.schemas.kept import form_of

router = APIRouter(prefix="/v1/compile", tags=["plans"], responses=PROBLEM)

PLACEHOLDER = "..."
"""The state that a plan is made for where none is given."""


class CompileRequest(BaseModel):
    """The body of `POST /v1/systemone`, of which `model` and `state` may be left out."""

    value_schema: dict[str, Any] | bool | None = Field(
        None, alias="schema", description="A JSON Schema (2020-12)."
    )
    questions: dict[str, dict[str, Any]] | None = Field(None, description="Or questions, as System One's.")
    state: Text | None = Field(None, description="What the reads of span questions are counted for.")
    model: str | None = None


class Reads(BaseModel):
    """Reads, when nothing is repeated: of the questions asked in any case, of all, and of each."""

    least: int
    all: int
    by_question: dict[str, int]


class CompiledPlan(BaseModel):
    """A plan that was not run."""

    object: Literal["plan"]
    questions: dict[str, dict[str, Any]] = Field(description="As `POST /v1/systemone` takes them.")
    fields: dict[str, dict[str, Any]] | None = Field(
        description="Of a schema: by JSON pointer, how a field is answered, and by which questions."
    )
    stages: list[list[str]] = Field(description="Questions that can be asked together, stage after stage.")
    reads: Reads


@router.post(
    "",
    summary="What a schema or questions would be asked as",
    response_model=CompiledPlan,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": CompileRequest.model_json_schema()}},
        }
    },
)
async def compile_plan(request: Request, service: TheService, caller: TheAskingCaller) -> Response:
    """The questions that a schema compiles to, their stages, and how many reads they would take."""
    settings = service.settings
    try:
        body = await read_json(request, settings.max_body_bytes, settings.max_json_depth)
        if not isinstance(body.value, dict):
            raise Refusal(422, "invalid_request", "the body is no JSON object")
        given = {name: value for name, value in body.value.items() if value is not None}
        asked = {"model": "", "state": PLACEHOLDER, **given}
        decision = await asyncio.to_thread(systemone.parse, asked)
        found = await service.explain(decision, body.size)
    except REFUSED as error:
        raise refusal_of(error) from error
    schema = decision.schema
    fields = None if schema is None else await asyncio.to_thread(lambda: outline(form_of(schema)))
    return told(
        {
            "object": "plan",
            "questions": {question.id: question_body(question) for question in decision.questions},
            "fields": fields,
            "stages": found.stages,
            "reads": {"least": found.least, "all": found.all, "by_question": found.reads},
        }
    )
