"""Routes for whoever runs the service: is the process alive, and can it decide?"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from api.service import Service

router = APIRouter()


@router.get("/health", summary="Whether this process is alive")
async def health() -> dict[str, str]:
    """Always 200: a process that answers is alive."""
    return {"status": "ok"}


@router.get("/ready", summary="Whether a decision can be served")
async def ready(request: Request, response: Response) -> dict[str, Any]:
    """200 when the store answers and at least one engine is in, 503 otherwise."""
    service: Service = request.app.state.service
    parts = await service.ready()
    response.status_code = 200 if all(parts.values()) else 503
    return {"ready": all(parts.values()), **parts}
