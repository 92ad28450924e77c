"""API keys over HTTP, for whoever runs the service: every route wants the admin key."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from api.doors.native import TheService, service_of
from api.problems import PROBLEM
from api.refusals import Refusal
from workers.jobs import rfc3339
from workers.store.keys import KeyRecord

MOST = 1_000_000
"""Largest limit that a key may have; 0 is no limit."""

Limit = Annotated[int, Field(ge=0, le=MOST, strict=True)]


class NewKey(BaseModel):
    """A key to be made."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=100, description="What it is for; names may repeat.")
    rate_per_minute: Limit = Field(0, description="Decisions that may be asked in any minute; 0: no limit.")
    most_open: Limit = Field(0, description="Decisions that may be open at once; 0: no limit.")


class Key(BaseModel):
    """A key as it is listed: without its secrets."""

    id: str
    object: Literal["key"] = "key"
    name: str
    prefix: str = Field(description="How the key begins, for recognising it.")
    created_at: str
    revoked_at: str | None
    rate_per_minute: int
    most_open: int


class MadeKey(Key):
    """A key with its secrets, which are shown this once."""

    key: str = Field(description="The key itself.")
    webhook_secret: str = Field(description="What webhooks of its decisions are signed with.")


class KeyList(BaseModel):
    """Every key there ever was, newest first."""

    object: Literal["list"] = "list"
    data: list[Key]


def admin(request: Request) -> None:
    """Let whoever has the admin key by. Raises Refusal."""
    service_of(request).keyring.check_admin(request)


def uncached(response: Response) -> None:
    """Have nobody keep what may hold a secret."""
    response.headers["Cache-Control"] = "no-store"


router = APIRouter(
    prefix="/v1/keys",
    tags=["keys"],
    responses=PROBLEM,
    dependencies=[Depends(admin), Depends(uncached)],
)


@router.post("", summary="Make an API key; it is shown this once", status_code=201)
async def make_key(new: NewKey, service: TheService) -> MadeKey:
    """A new key. The first one closes an open server: within a second, every process wants a key."""
    record, key = await service.keyring.keys.create(
        new.name, rate_per_minute=new.rate_per_minute, most_open=new.most_open
    )
    await service.keyring.look()
    return MadeKey(**_listed(record).model_dump(), key=key, webhook_secret=record.webhook_secret)


@router.get("", summary="API keys, newest first")
async def list_keys(service: TheService) -> KeyList:
    """Every key, revoked ones among them."""
    records = (await service.keyring.keys.all()).values()
    return KeyList(data=[_listed(one) for one in sorted(records, key=lambda one: one.created, reverse=True)])


@router.delete("/{id}", summary="Revoke an API key")
async def revoke_key(id: Annotated[str, Path(description="`key_...`")], service: TheService) -> Key:
    """The key is refused from here on, by every process within two seconds. Its jobs run on."""
    record = await service.keyring.keys.revoke(id)
    if record is None:
        raise Refusal(404, "not_found", f"there is no key {id!r}")
    await service.keyring.look()
    return _listed(record)


def _listed(record: KeyRecord) -> Key:
    return Key(
        id=record.id,
        name=record.name,
        prefix=record.prefix,
        created_at=rfc3339(record.created) or "",
        revoked_at=rfc3339(record.revoked),
        rate_per_minute=record.rate_per_minute,
        most_open=record.most_open,
    )
