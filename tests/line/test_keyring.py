"""The keyring of one process, on a real Redis: when it is open, and what it says of that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
from fastapi import Request
from structlog.testing import capture_logs

from api.callers import ANYONE, Caller
from api.keyring import Keyring
from api.refusals import Refusal, Unavailable
from api.settings import ApiSettings
from client.ports import free_port
from client.stack import Stack
from workers.store.keys import Keys
from workers.store.rates import Rates
from workers.store.store import Store, StoreError, connect


def request(**headers: str) -> Request:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": raw})


def on_keyring(
    redis_url: str, work: Callable[[Keyring, Store], Awaitable[Any]], host: str = "127.0.0.1"
) -> Any:
    """What some work returns, done with a keyring whose keys nobody else sees."""
    settings = ApiSettings(redis_url=redis_url, host=host, key_prefix=f"test-{uuid4().hex}")

    async def doing() -> Any:
        redis = connect(settings)
        store = Store(redis, settings)
        try:
            return await work(Keyring(Keys(store), Rates(store, redis), settings), store)
        finally:
            await store.close()
            await redis.aclose()

    return asyncio.run(doing())


def warnings_of(logs: Any) -> list[str]:
    return [entry["event"] for entry in logs if entry["log_level"] == "warning"]


def test_an_open_server_beyond_loopback_says_so_once(stack: Stack) -> None:
    async def look_twice(keyring: Keyring, store: Store) -> None:
        await keyring.look()
        await keyring.look()
        assert await keyring.admit(request()) is ANYONE

    for host, times in (("0.0.0.0", 1), ("::", 1), ("example.org", 1), ("127.0.0.2", 0), ("::1", 0)):
        with capture_logs() as logs:
            on_keyring(stack.redis_url, look_twice, host)
        assert len(warnings_of(logs)) == times, host


def test_a_closed_server_beyond_loopback_does_not(stack: Stack) -> None:
    async def look(keyring: Keyring, store: Store) -> None:
        await keyring.keys.create("a key")
        await keyring.look()

    with capture_logs() as logs:
        on_keyring(stack.redis_url, look, "0.0.0.0")
    assert logs == []


def test_a_server_that_has_not_seen_redis_is_not_open() -> None:
    async def admit(keyring: Keyring, store: Store) -> None:
        for headers in ({}, {"authorization": "Bearer cvs_x"}):
            for ask in (keyring.admit, keyring.caller):
                start = time.monotonic()
                with pytest.raises((StoreError, Unavailable)):
                    await ask(request(**headers))
                assert time.monotonic() - start < 6

    on_keyring(f"redis://127.0.0.1:{free_port()}/0", admit)


def test_a_redis_that_lost_its_keys_does_not_open_a_server_that_was_closed(stack: Stack) -> None:
    async def lose(keyring: Keyring, store: Store) -> None:
        await keyring.keys.create("a key")
        await keyring.look()
        await store.run(("DEL", store.key("keys")))
        await keyring.look()
        await keyring.look()
        with pytest.raises(Refusal, match="wants an API key"):
            await keyring.admit(request())

    with capture_logs() as logs:
        on_keyring(stack.redis_url, lose)
    assert [entry["log_level"] for entry in logs] == ["error"]


def test_an_open_server_knows_a_key_before_its_next_look(stack: Stack) -> None:
    async def meet(keyring: Keyring, store: Store) -> None:
        await keyring.look()
        record, key = await keyring.keys.create("a key")
        assert await keyring.caller(request()) is ANYONE, "not seen yet"
        assert await keyring.caller(request(**{"x-api-key": key})) == Caller(record.id, 0, record.salt)
        with pytest.raises(Refusal):
            await keyring.caller(request())

    on_keyring(stack.redis_url, meet)


def test_a_record_comes_back_as_it_was_kept(stack: Stack) -> None:
    async def keep(keyring: Keyring, store: Store) -> None:
        record, _ = await keyring.keys.create('a ké"y', rate_per_minute=5, most_open=2)
        assert await keyring.keys.by_id(record.id) == record
        assert await keyring.keys.by_id("key_none") is None
        assert list((await keyring.keys.all()).values()) == [record]
        assert await keyring.keys.revoke("key_none") is None

    on_keyring(stack.redis_url, keep)
