"""`GET /v1/models`: one object for both worlds, TypeSafe's clients and OpenAI's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request

from api.doors.systemone import DOOR
from api.refusals import REFUSED, refusal_of
from api.service import Service
from api.systemone_schemas import NO_KEY, ModelList

router = APIRouter()


@router.get(
    "/v1/models",
    summary="List the served models and their aliases",
    response_model=ModelList,
    responses=NO_KEY,
)
async def list_models(request: Request) -> Any:
    """The served names, then the aliases. A model's date is the one that its engine gives for it."""
    service: Service = request.app.state.service
    try:
        await service.keyring.caller(request)
    except REFUSED as error:
        return DOOR.refuse(refusal_of(error))
    return _listed(service)


def _listed(service: Service) -> dict[str, Any]:
    served = service.served_models()
    newest = max(served.values(), default=0)
    names = {
        **{name: (created, "Served by the pool's engines.") for name, created in served.items()},
        **dict.fromkeys(service.settings.aliases, (newest, "Alias of the served model.")),
    }
    return {
        "models": [
            {
                "name": name,
                "description": description,
                "release_date": datetime.fromtimestamp(created, UTC).date().isoformat(),
            }
            for name, (created, description) in names.items()
        ],
        "object": "list",
        "data": [
            {"id": name, "object": "model", "created": created, "owned_by": "canvass"}
            for name, (created, _) in names.items()
        ],
    }
