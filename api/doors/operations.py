"""Routes for whoever runs the service: is the process alive, and can it decide?"""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from api.service import Service

router = APIRouter(tags=["operations"])


class Health(BaseModel):
    """A sign of life."""

    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """Whether a decision can be served, and what of it is there."""

    ready: bool
    store: bool
    engine: bool


@router.get("/health", summary="Whether this process is alive")
async def health() -> Health:
    """Always 200: a process that answers is alive."""
    return Health()


@router.get(
    "/ready",
    summary="Whether a decision can be served",
    responses={503: {"model": Ready, "description": "Something is missing"}},
)
async def ready(request: Request, response: Response) -> Ready:
    """200 when the store answers and at least one engine is in, 503 otherwise."""
    service: Service = request.app.state.service
    parts = await service.ready()
    response.status_code = 200 if all(parts.values()) else 503
    return Ready(ready=all(parts.values()), **parts)
