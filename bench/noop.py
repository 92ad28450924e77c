"""A FastAPI server that does nothing: the part of a decision's price that any web service pays."""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI, Request, Response


def make_app() -> FastAPI:
    """One route that reads its body and answers with nothing in particular."""
    app = FastAPI()

    @app.post("/")
    async def noop(request: Request) -> Response:
        await request.body()
        return Response(b"{}", media_type="application/json")

    return app


if __name__ == "__main__":
    uvicorn.run(
        make_app(),
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
