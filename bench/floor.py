"""The floor: a FastAPI server whose every request is one raw engine call, and nothing else.

What it costs, with the engine that it calls, no service in front of an engine can do without.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import orjson
import uvicorn
from fastapi import FastAPI, Request, Response


def make_app(engine: str) -> FastAPI:
    """One route: the body goes to the engine as it came, its answer is decoded and dropped."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), trust_env=False) as session:
            app.state.session = session
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/")
    async def pass_on(request: Request) -> Response:
        async with app.state.session.post(engine, data=await request.body()) as answer:
            answer.raise_for_status()
            orjson.loads(await answer.read())
        return Response(b"{}", media_type="application/json")

    return app


if __name__ == "__main__":
    uvicorn.run(
        make_app(sys.argv[2]),
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
