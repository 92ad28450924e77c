"""Background work: what a process does again and again, and never stops doing silently."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger()


async def keep_doing(work: Callable[[], Awaitable[None]], every_s: float) -> None:
    """Do some work for ever, `every_s` seconds apart. A failure is logged, and the work goes on."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("background work failed", work=work.__qualname__)
        await asyncio.sleep(every_s)
