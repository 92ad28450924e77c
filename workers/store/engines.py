"""Engines in the store: what was said about them at run time, for every worker to follow.

One hash, `engines`: an engine's URL, and as JSON its state (`active`, `draining`, `removed`) and what it can
do where canaries shall not find out. It is configuration, as the settings are: it has no expiry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from workers.store.store import Store, fields_of

State = Literal["active", "draining", "removed"]


@dataclass(frozen=True, slots=True)
class Said:
    """What was said about an engine."""

    state: State
    capabilities: Mapping[str, Any] = field(default_factory=dict)


class Engines:
    """Reads and writes what was said. Every method raises StoreError when Redis cannot be reached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._key = store.key("engines")

    async def all(self) -> dict[str, Said]:
        """What was said about each engine, by URL."""
        (reply,) = await self._store.run(("HGETALL", self._key))
        return {url.decode(): Said(**orjson.loads(value)) for url, value in fields_of(reply).items()}

    async def say(self, url: str, said: Said) -> None:
        """Have every worker know."""
        await self._store.run(("HSET", self._key, url, orjson.dumps(said)))
