"""Warming: the first read of a long prompt goes to an engine alone, so that the others find it cached.

Sixty reads of one new state sent at once would each compute the whole prompt. So the first one goes ahead,
and those that come to the same engine with the same head meanwhile wait for it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from workers.routing.policy import Prefix

LONG_TOKENS = 512
"""Prompts shorter than this are computed faster than waited for."""

REMEMBERED = 4096
"""Prompts, by engine, that are known to have been read."""

Place = tuple[str, int]


class Warming:
    """Which prompts which engines have read. Belongs to one event loop."""

    def __init__(self) -> None:
        self._warm: OrderedDict[Place, None] = OrderedDict()
        self._leaders: dict[Place, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def turn(self, engine: str, prefix: Prefix) -> AsyncIterator[None]:
        """Wait until a read of this prompt may go to this engine, and hold the others while it goes first.

        When the one that went first fails, the next goes first.
        """
        place = (engine, prefix.key)
        while place not in self._warm and (leader := self._leaders.get(place)) is not None:
            await asyncio.wait({leader})
        if place in self._warm:
            self._warm.move_to_end(place)
            yield
            return
        first = self._leaders[place] = asyncio.get_running_loop().create_future()
        try:
            yield
            self._warm[place] = None
            if len(self._warm) > REMEMBERED:
                self._warm.popitem(last=False)
        finally:
            del self._leaders[place]
            first.set_result(None)

    def forget(self, engine: str) -> None:
        """An engine that was away comes back with an empty cache."""
        for place in [place for place in self._warm if place[0] == engine]:
            del self._warm[place]
