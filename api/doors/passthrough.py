"""The pass-through: what no door claims under `/v1/` goes to an engine as it is (API.md, section 2)."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.routing import Match
from starlette.types import Scope

from api.body import Body, decoded, read_content
from api.callers import ANYONE, Caller
from api.doors.openai_errors import openai_error
from api.doors.raw_route import RawRoute
from api.refusals import REFUSED, Refusal, refusal_of
from api.relay import Relayed, Relays, Target, request_headers, target_of
from api.service import Service
from api.tool_calls import forces_call, with_opening
from workers.presence import engines_of

OURS = frozenset({"batches", "decisions", "engines", "jobs", "keys", "models", "systemone"})
"""First parts of paths under `/v1/` that are never passed through, whatever the method."""

CHAT = "/v1/chat/completions"


class UnclaimedRoute(RawRoute):
    """Matches what is not ours, so that a wrong method on a path of ours is still told as one."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """None for a path of ours, and for one that climbs out of `/v1/`."""
        parts = scope["path"].split("/")
        if (parts[2:3] and parts[2] in OURS) or {".", ".."} & set(parts):
            return Match.NONE, {}
        return super().matches(scope)


router = APIRouter(route_class=UnclaimedRoute)


@router.post("/v1/raw/chat/completions", include_in_schema=False)
async def relay_chat(request: Request) -> Response:
    """Ordinary chat, also where its first message looks like a decision's schema."""
    return await relay(request, CHAT)


@router.post("/v1/{path:path}", include_in_schema=False)
@router.get("/v1/{path:path}", include_in_schema=False)
async def relay_any(request: Request) -> Response:
    """Completions, embeddings, and whatever else an engine serves."""
    return await relay(request)


async def relay(request: Request, path: str | None = None) -> Response:
    """The answer of an engine that serves the body's model, at this path or at the request's own."""
    service: Service = request.app.state.service
    caller = ANYONE
    try:
        caller = await service.keyring.admit(request)
        content = await read_content(request, service.settings.max_body_bytes)
        body = await _model_named(request, content, service.settings.max_json_depth)
        return await relayed(request, caller, body, path)
    except REFUSED as error:
        response = openai_error(refusal_of(error))
        response.headers.update(caller.headers)
        return response


async def relayed(request: Request, caller: Caller, body: Body, path: str | None = None) -> Response:
    """The answer of an engine to a body that was read. Raises Refusal or StoreError."""
    service: Service = request.app.state.service
    relays: Relays = request.app.state.relays
    model = body.value.get("model") if isinstance(body.value, dict) else None
    if not (model is None or isinstance(model, str)):
        raise Refusal(400, "invalid_model", "`model` is the name of a model")
    target = await _target(service, model)
    urls, content = await _sent(request, caller, body, target, path or request.url.path)
    raw = request.scope.get("raw_path") or request.url.path.encode()
    query = request.scope["query_string"]
    where = (path or raw.decode("latin-1")) + (f"?{query.decode('latin-1')}" if query else "")
    return Relayed(
        relays,
        urls,
        request.method,
        where,
        request_headers(request.headers),
        content,
        extra=caller.headers,
        refuse=openai_error,
    )


async def _sent(
    request: Request, caller: Caller, body: Body, target: Target, path: str
) -> tuple[tuple[str, ...], bytes]:
    """Who is asked, and with what: the body as it came, but for an alias and for a call that it forces.

    Raises what a forced call may be refused with (api/tool_calls.py).
    """
    if not (_is_json(request) and isinstance(body.value, dict)):
        return target.urls, body.content
    if path == CHAT and forces_call(body.value):
        if target.causal:
            return target.causal, _by_served_name(body, target)
        opened = await with_opening(request.app.state.service, caller, body.value, target.model)
        return target.urls, orjson.dumps(opened)
    return target.urls, _by_served_name(body, target)


def _by_served_name(body: Body, target: Target) -> bytes:
    """A body whose model is an alias, which an engine does not know, by the served name."""
    if body.value.get("model") in (None, target.model):
        return body.content
    return orjson.dumps({**body.value, "model": target.model})


async def _target(service: Service, model: str | None) -> Target:
    aliases = service.settings.aliases
    try:
        return target_of(model, engines_of(service.engines), aliases)
    except Refusal:
        await service.look_at_pool()
        return target_of(model, engines_of(service.engines), aliases)


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


async def _model_named(request: Request, content: bytes, depth: int) -> Body:
    """The content, with as much of its value as names the model. Raises a BodyError or Refusal."""
    if not content:
        return Body(None, content)
    if _is_json(request):
        return await decoded(content, depth)
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        return Body({"model": await _field(request.headers, content, "model")}, content)
    return Body(None, content)


async def _field(headers: Headers, content: bytes, name: str) -> str | None:
    """A field of a form. Raises Refusal."""

    async def pieces() -> Any:
        yield content

    try:
        form = await MultiPartParser(headers, pieces()).parse()
        value = form.get(name)
        await form.close()
        # A charset may make half of a surrogate pair, which nothing can be told in.
        return value.encode().decode() if isinstance(value, str) else None
    except (MultiPartException, KeyError, UnicodeError) as error:
        raise Refusal(400, "bad_form", f"the body is no form: {error}") from error
