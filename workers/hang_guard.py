"""The hang guard: a worker whose event loop hangs ends itself.

Its decisions are taken over long before, because nobody renews their leases; but its threads would go on
taking messages that nothing answers. Whoever started it (a container runtime, systemd) starts it again.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import NoReturn

import structlog

EVERY_S = 5.0
GRACE_S = 5.0
"""Seconds that a process which was stopped and goes on gets to show a sign of life."""

HUNG = 70
"""The exit status of one that hung (EX_SOFTWARE)."""

log = structlog.get_logger()


def guard(loop: asyncio.AbstractEventLoop, limit_s: float) -> None:
    """Watch a running loop from a thread of its own, until the process ends."""
    threading.Thread(target=_watch, args=(loop, limit_s, _end), name="hang-guard", daemon=True).start()


def _watch(loop: asyncio.AbstractEventLoop, limit_s: float, end: Callable[[], None]) -> None:
    pause = threading.Event()
    while not loop.is_closed():
        alive = threading.Event()
        try:
            loop.call_soon_threadsafe(alive.set)
        except RuntimeError:
            return  # the loop was closed meanwhile
        if not alive.wait(limit_s) and not alive.wait(GRACE_S) and loop.is_running():
            log.critical("the event loop hangs; this worker ends", seconds=limit_s)
            end()
            return
        pause.wait(EVERY_S)


def _end() -> NoReturn:
    os._exit(HUNG)
