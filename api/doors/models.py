"""The served models: in one object for both worlds (TypeSafe's clients, OpenAI's), and one for the latter."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request

from api.doors.openai_errors import openai_error
from api.doors.systemone import DOOR
from api.openai_schemas import ERRORS, OpenAIError
from api.refusals import REFUSED, Refusal, refusal_of
from api.service import Service
from api.systemone_schemas import NO_KEY, ListedModel, ModelList

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


@router.get(
    "/v1/models/{id:path}",
    summary="One served model, or an alias",
    response_model=ListedModel,
    responses={
        status: {"description": ERRORS[status][0], "model": OpenAIError} for status in (401, 404, 503)
    },
)
async def retrieve_model(id: str, request: Request) -> Any:
    """As OpenAI's clients retrieve one. Names may hold slashes."""
    service: Service = request.app.state.service
    try:
        await service.keyring.caller(request)
        if (found := _named(service, id)) is None:
            await service.look_at_pool()
            found = _named(service, id)
        if found is None:
            known = ", ".join(map(repr, _names(service)))
            raise Refusal(404, "unknown_model", f"there is no model {id!r}; there are {known}")
    except REFUSED as error:
        return openai_error(refusal_of(error))
    return found


def _named(service: Service, id: str) -> dict[str, Any] | None:
    found = _names(service).get(id)
    return None if found is None else _openai(id, found[0])


def _openai(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "canvass"}


def _names(service: Service) -> dict[str, tuple[int, str]]:
    """The served names and the aliases, each with its date and what it is."""
    served = service.served_models()
    newest = max(served.values(), default=0)
    return {
        **{name: (created, "Served by the pool's engines.") for name, created in served.items()},
        **dict.fromkeys(service.settings.aliases, (newest, "Alias of the served model.")),
    }


def _listed(service: Service) -> dict[str, Any]:
    names = _names(service)
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
        "data": [_openai(name, created) for name, (created, _) in names.items()],
    }
