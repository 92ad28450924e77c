"""The port on which a worker tells its metrics: `GET /metrics`, served by its event loop.

So a worker whose loop hangs tells none, and is seen to be down.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

TRY_AGAIN_S = 2.0
"""Seconds until a port that was taken is tried again: in a rolling restart, the worker before may have it."""

log = structlog.get_logger()


async def tell_metrics(registry: CollectorRegistry, host: str, port: int) -> None:
    """Serve the registry until cancelled; returns, having said why, when the port cannot be had."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None)
    async with AsyncExitStack() as stack:
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            log.warning("metrics are not told", host=host, port=port, reason=str(error))
            return
        await asyncio.Event().wait()
