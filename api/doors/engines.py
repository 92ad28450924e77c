"""Engines: the pool as the workers see it, and how it is changed while it runs (API.md, section 5)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field, field_validator

from api.doors.keys import admin
from api.doors.native import TheCaller, TheService
from api.problems import PROBLEM
from api.refusals import Refusal
from api.service import Service
from workers.presence import engines_of
from workers.settings import engine_url
from workers.store.engines import Engines, Said

router = APIRouter(prefix="/v1/engines", tags=["engines"], responses=PROBLEM)


class Seen(BaseModel):
    """An engine as one worker sees it."""

    worker: str
    state: Literal["in", "out", "draining"]
    reason: str = Field(description="Why it takes no reads; empty while it does.")
    in_flight: int = Field(description="This worker's reads at it, and those that wait for room.")


class EngineView(BaseModel):
    """An engine: in when any worker has it in."""

    object: Literal["engine"] = "engine"
    url: str
    state: Literal["in", "out", "draining"]
    reason: str
    model: str
    context: int | None = Field(description="Tokens of its model's context, where it says so.")
    capabilities: dict[str, Any]
    in_flight: int
    reads: int = Field(description="Reads it gave since the workers started.")
    errors: int = Field(description="Requests that failed since the workers started.")
    workers: list[Seen]


class EngineList(BaseModel):
    """Every engine that a worker knows."""

    object: Literal["list"] = "list"
    data: list[EngineView]


class NewEngine(BaseModel):
    """An engine to be taken into the pool, or taken in again."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(max_length=2048)
    capabilities: dict[str, bool | int] = Field(
        {}, description="What it can do, where canaries shall not find out."
    )

    _url = field_validator("url")(engine_url)


TheUrl = Annotated[str, Query(max_length=2048, description="The engine's URL.")]
Admin = Annotated[None, Depends(admin)]


def said_of(request: Request) -> Engines:
    """What was said about engines."""
    engines: Engines = request.app.state.engines
    return engines


TheEngines = Annotated[Engines, Depends(said_of)]


@router.get("", summary="The pool as the workers see it")
async def list_engines(service: TheService, caller: TheCaller) -> EngineList:
    """Every engine, whether it takes reads, and if not, why not."""
    await service.look_at_pool()
    return EngineList(data=[EngineView(**engine) for engine in engines_of(service.engines)])


@router.post("", summary="Take an engine into the pool", status_code=202)
async def add_engine(engine: NewEngine, engines: TheEngines, _: Admin) -> Said:
    """It takes reads once a canary came back; every worker knows of it within two seconds."""
    said = Said("active", engine.capabilities)
    await engines.say(engine.url, said)
    return said


@router.post("/drain", summary="Give an engine no new reads", status_code=202)
async def drain_engine(url: TheUrl, service: TheService, engines: TheEngines, _: Admin) -> Said:
    """Those that it has are waited for. Taken in again by adding it."""
    return await _known(url, service, engines, Said("draining"))


@router.delete("", summary="Take an engine out of the pool", status_code=202)
async def remove_engine(url: TheUrl, service: TheService, engines: TheEngines, _: Admin) -> Said:
    """It is forgotten once its last read is back. Also one that the settings name."""
    return await _known(url, service, engines, Said("removed"))


async def _known(url: str, service: Service, engines: Engines, said: Said) -> Said:
    await service.look_at_pool()
    name = url.strip().rstrip("/")
    if name not in {engine["url"] for engine in service.engines}:
        raise Refusal(404, "not_found", f"there is no engine {name!r} in the pool")
    await engines.say(name, said)
    return said
