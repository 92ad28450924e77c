"""The keyring: who may ask this server, looked up in memory.

    request > its key > SHA-256 > the record as this process saw it last > Caller

The records are seen again every second, so that a revoked key is out within two; a key that is not among
them is asked for in the store, so that a new one is in at once. A server without any key is open.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import math
from collections.abc import Awaitable, Mapping
from typing import TypeVar

import structlog
from fastapi import Request

from api.callers import ANYONE, Caller
from api.refusals import Refusal, Unavailable
from api.settings import ApiSettings
from workers.store.keys import KEY_PREFIX, KeyRecord, Keys, digest_of
from workers.store.rates import WINDOW_S, Rate, Rates

LOOK_EVERY_S = 1.0

REDIS_WITHIN_S = 2.0
"""Seconds that a request waits for Redis to be let in: a Redis that is away must be told early."""

T = TypeVar("T")

log = structlog.get_logger()


class Keyring:
    """Admits requests. Belongs to one event loop."""

    def __init__(self, keys: Keys, rates: Rates, settings: ApiSettings) -> None:
        self.keys = keys
        self._rates = rates
        self._host = settings.host
        secret = settings.admin_key
        self._admin_key = secret.get_secret_value().encode() if secret else b""
        self._records: Mapping[str, KeyRecord] = {}
        self._looked = False
        self._closed = False

    async def look(self) -> None:
        """See the keys as they are now. Raises StoreError.

        A server that was closed once stays closed until it is started again: a Redis that lost its data
        has no keys, and must not open it.
        """
        records = await self.keys.all()
        if not (records or self._looked or _is_loopback(self._host)):
            log.warning(
                "the server is open: anyone who reaches it may ask; make a key with `canvass keys create`",
                host=self._host,
            )
        if self._records and not records:
            log.error("Redis lost its keys; every request is refused until one is made")
        self._records, self._looked = records, True
        self._closed = self._closed or bool(records)

    async def admit(self, request: Request) -> Caller:
        """Who sends a request that counts against their rate. Raises Refusal or StoreError."""
        record = await self._record(request)
        if record is None:
            return ANYONE
        if not record.rate_per_minute:
            return _caller(record)
        rate = await _soon(self._rates.hit(record.id, record.rate_per_minute))
        headers = _rate_headers(record.rate_per_minute, rate)
        if not rate.within:
            raise Refusal(
                429,
                "rate_limited",
                f"this key may ask {record.rate_per_minute} times a minute, and has",
                retry_after_s=max(1.0, rate.reset_s),
                headers=headers,
            )
        return _caller(record, headers)

    async def caller(self, request: Request) -> Caller:
        """Who sends a request that is free. Raises Refusal or StoreError."""
        record = await self._record(request)
        return ANYONE if record is None else _caller(record)

    def check_admin(self, request: Request) -> None:
        """Let whoever manages keys by. Raises Refusal."""
        if not self._admin_key:
            raise Refusal(
                403,
                "no_admin_key",
                "keys are managed with the server's admin key, and it has none: set CANVASS_ADMIN_KEY",
            )
        given = _credentials(request)
        if given is None:
            raise Refusal(403, "no_key", "keys are managed with `Authorization: Bearer ADMIN_KEY`")
        if not hmac.compare_digest(given.encode(), self._admin_key):
            raise _wrong("this is not the server's admin key (CANVASS_ADMIN_KEY)")

    async def _record(self, request: Request) -> KeyRecord | None:
        """The record of the key that a request came with, None for an open server."""
        if not self._looked:
            # A server must not be open just because nobody has looked yet, or Redis is away.
            await _soon(self.look())
        given = _credentials(request)
        if not self._closed and (given is None or not given.startswith(KEY_PREFIX)):
            return None
        if given is None:
            raise Refusal(403, "no_key", "this server wants an API key: `Authorization: Bearer KEY`")
        digest = digest_of(given)
        record = self._records.get(digest)
        if record is None and given.startswith(KEY_PREFIX):
            record = await _soon(self.keys.by_digest(digest))
            self._closed = self._closed or record is not None
        if not self._closed:
            return None
        if record is None:
            raise _wrong("this API key is not one of this server's")
        if record.revoked is not None:
            raise _wrong(f"this API key ({record.prefix}...) was revoked")
        return record


async def _soon(work: Awaitable[T]) -> T:
    """What the store says. Raises StoreError, or Unavailable when it takes its time."""
    try:
        async with asyncio.timeout(REDIS_WITHIN_S):
            return await work
    except TimeoutError as error:
        raise Unavailable(f"Redis does not answer within {REDIS_WITHIN_S:g} s") from error


def _credentials(request: Request) -> str | None:
    """The key that a request came with; None when it came with none."""
    # The raw headers, whose names ASGI gives in lower case: Starlette's take some microseconds a look.
    headers: dict[bytes, bytes] = dict(request.scope["headers"])
    authorization = headers.get(b"authorization")
    if authorization is None:
        given = headers.get(b"x-api-key")
        return None if given is None else given.decode("latin-1")
    scheme, _, token = authorization.decode("latin-1").partition(" ")
    # Of another scheme is wrong rather than missing.
    return token.strip() if scheme.lower() == "bearer" else scheme


def _wrong(message: str) -> Refusal:
    return Refusal(401, "wrong_key", message, headers={"WWW-Authenticate": "Bearer"})


def _caller(record: KeyRecord, headers: Mapping[str, str] | None = None) -> Caller:
    return Caller(record.id, record.most_open, record.salt, headers or {})


def _rate_headers(per_minute: int, rate: Rate) -> dict[str, str]:
    """How much of a rate is left (draft-ietf-httpapi-ratelimit-headers-10)."""
    return {
        "RateLimit-Policy": f'"default";q={per_minute};w={WINDOW_S}',
        "RateLimit": f'"default";r={rate.left};t={math.ceil(rate.reset_s)}',
    }


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
