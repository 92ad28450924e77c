"""What native routes depend on: the service, who calls, and that a job is theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import orjson
from fastapi import Depends, Request, Response

from api.callers import Caller
from api.service import Service
from workers.jobs import Fields


def service_of(request: Request) -> Service:
    """The decision service."""
    service: Service = request.app.state.service
    return service


async def caller_of(request: Request) -> Caller:
    """Who sends a request that counts against no rate. Raises Refusal (401, 403) or StoreError."""
    return await service_of(request).keyring.caller(request)


async def asking_caller_of(request: Request) -> Caller:
    """Who sends a request that asks for decisions, counted against their rate. Raises Refusal (401, 403,
    429) or StoreError.
    """
    return await service_of(request).keyring.admit(request)


TheService = Annotated[Service, Depends(service_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]
TheAskingCaller = Annotated[Caller, Depends(asking_caller_of)]


async def own_job(id: str, service: TheService, caller: TheCaller) -> Fields:
    """The job in the path, if it is the caller's. Raises Refusal (404)."""
    return await service.job_fields(id, caller.id)


def told(body: Mapping[str, Any], status: int = 200) -> Response:
    """The response that tells a native object as it stands; of one that is not done, when to look again."""
    headers = {"Cache-Control": "no-store"}
    if body.get("done") is False:
        headers["Retry-After"] = "1"
    return Response(orjson.dumps(body), status, headers, "application/json")
