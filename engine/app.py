"""The routes. aiohttp's server: measured leaner than Starlette on uvicorn, and it shows the connection."""

from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from engine.errors import ApiError, ModelUnknown
from engine.faults import FaultRaised, Faults, after_answer, instead_of_answer, truncate
from engine.requests import Call, Dialect, chat_prompt, parse_body, parse_call, text_prompt
from engine.service import Service

_BODY_BYTES = 64 * 2**20  # room for a prompt with images


@dataclass(frozen=True, slots=True)
class Engine:
    """What the routes need. `lenient` serves any model name (liars do)."""

    service: Service
    dialect: Dialect
    faults: Faults
    lenient: bool
    metrics: bool

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/completions"""
        return await self._call(request, chat=False)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/chat/completions"""
        return await self._call(request, chat=True)

    async def health(self, request: web.Request) -> web.Response:
        """GET /health: 200 while the process lives."""
        return web.Response()

    async def models(self, request: web.Request) -> web.Response:
        """GET /v1/models: the one model, with its context length in tokens."""
        name = self.dialect.model
        model = {"id": name, "object": "model", "created": 0, "owned_by": "canvass", "root": name,
                 "max_model_len": self.dialect.limits.context}  # fmt: skip
        return _json({"object": "list", "data": [model]})

    async def prometheus(self, request: web.Request) -> web.Response:
        """GET /metrics"""
        if not self.metrics:
            raise web.HTTPNotFound
        return web.Response(text=self.service.metrics.text(self.dialect.model))

    async def tokenize(self, request: web.Request) -> web.Response:
        """POST /tokenize: a prompt's or a chat's token ids."""
        try:
            body = parse_body(await request.read())
            prompt = (
                chat_prompt(body, self.dialect) if "messages" in body else text_prompt(body, self.dialect)
            )
        except ApiError as error:
            return _json(error.body(), error.status)
        tokens = list(prompt.ids)
        return _json({"count": len(tokens), "max_model_len": self.dialect.limits.context, "tokens": tokens})

    async def _call(self, request: web.Request, chat: bool) -> web.StreamResponse:
        fault = self.faults.draw()
        if fault is not None and not after_answer(fault):
            spoiled = await instead_of_answer(fault, request)
            if spoiled is not None:
                return spoiled
        try:
            call = parse_call(parse_body(await request.read()), chat, self.dialect)
            if call.model != self.dialect.model and not self.lenient:
                raise ModelUnknown(f"The model `{call.model}` does not exist.", "model")
            if call.stream:
                return await self._stream(request, call)
            body = await self.service.answer(call, fault)
        except ApiError as error:
            return _json(error.body(), error.status)
        except FaultRaised as scripted:
            return await instead_of_answer(scripted.name, request) or web.Response(status=500)
        if fault == "truncated":
            return await truncate(orjson.dumps(body), request)
        return _json(body)

    async def _stream(self, request: web.Request, call: Call) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        async with aclosing(self.service.stream(call)) as chunks:
            # The first chunk comes before the headers, so that a refusal still gets its status.
            chunk = await anext(chunks, None)
            await response.prepare(request)
            while chunk is not None:
                await response.write(_event(chunk))
                try:
                    chunk = await anext(chunks, None)
                except ApiError as error:
                    chunk = None
                    await response.write(_event(error.body()))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


def build_app(engine: Engine) -> web.Application:
    """The aiohttp application."""
    app = web.Application(client_max_size=_BODY_BYTES)
    app.add_routes(
        [
            web.get("/health", engine.health),
            web.get("/metrics", engine.prometheus),
            web.get("/v1/models", engine.models),
            web.post("/tokenize", engine.tokenize),
            web.post("/v1/completions", engine.completions),
            web.post("/v1/chat/completions", engine.chat),
        ]
    )
    return app


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


def _json(body: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")
