"""`GET /metrics`: this process's metrics for Prometheus, and what waits in the store."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from api.service import Service
from workers.store.store import StoreError

STORE_WITHIN_S = 2.0
"""Seconds that the store gets to answer; without it, the rest is told all the same."""

router = APIRouter(tags=["operations"])


@router.get(
    "/metrics",
    summary="Metrics, for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """In Prometheus's text format; docs/operations.md says what each means."""
    service: Service = request.app.state.service
    try:
        async with asyncio.timeout(STORE_WITHIN_S):
            service.metrics.see(await service.backlog())
    except (StoreError, TimeoutError):
        service.metrics.see(None)
    return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)
