"""Rates in the store: how many decisions a key has asked lately.

The algorithm is the sliding window counter of the library `limits`: what was counted in the last minute, plus
the part of the minute before that still lies within 60 s. It takes two small keys per API key, whatever the
rate, and takes the minute before to have been even. The library's own scripts run over the
store's connection, so that a hit and the look after it share one round trip.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import time
from typing import Any

from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from redis.asyncio import Redis

from workers.store.store import Store

WINDOW_S = 60


@dataclass(frozen=True, slots=True)
class Rate:
    """What became of one request: whether it was within the rate, how many more are now, and the seconds
    until there is one more.
    """

    within: bool
    left: int
    reset_s: float


class Rates:
    """Counts requests. What cannot be counted is not let by."""

    def __init__(self, store: Store, redis: Redis) -> None:
        self._limiter = SlidingWindowCounterRateLimiter(_Counters(store, redis))

    async def hit(self, id: str, per_minute: int) -> Rate:
        """Count a request of a key, if it is within `per_minute`. One that is not costs nothing.

        Raises StoreError when Redis cannot be reached.
        """
        item = RateLimitItemPerMinute(per_minute)
        # Submitted together, they stand in this order in one pipeline.
        within, window = await asyncio.gather(
            self._limiter.hit(item, id), self._limiter.get_window_stats(item, id)
        )
        return Rate(within, window.remaining, max(0.0, window.reset_time - time()))


class _Counters(RedisStorage):
    """The library's storage in Redis, but for the two calls of the strategy, which go through our store."""

    def __init__(self, store: Store, redis: Redis) -> None:
        pool: Any = redis.connection_pool
        # The pool knows where Redis is; the address only says which client the library is to use.
        super().__init__(
            "redis://", implementation="redispy", key_prefix=store.key("rate"), connection_pool=pool
        )
        self._store = store

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count `amount` if the limit allows it. Sent twice, it counts twice: an error on the safe side."""
        script = self.bridge.SCRIPT_ACQUIRE_SLIDING_WINDOW
        (acquired,) = await self._store.run(("EVAL", script, 2, *self._keys(key), limit, expiry, amount))
        return bool(acquired)

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Count and seconds to live of the window before, then of the current one."""
        script = self.bridge.SCRIPT_SLIDING_WINDOW
        (reply,) = await self._store.run(("EVAL", script, 2, *self._keys(key), expiry))
        before, before_ms, current, current_ms = (max(0, int(value or 0)) for value in reply)
        # A window that began this very millisecond lives for two of them, which the library takes for none.
        return before, before_ms / 1000, current, min(current_ms, 2000 * expiry - 1) / 1000

    def _keys(self, key: str) -> tuple[str, str]:
        prefixed = self.bridge.prefixed_key
        return prefixed(self._previous_window_key(key)), prefixed(self._current_window_key(key))
