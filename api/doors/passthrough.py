"""The pass-through: what no door claims under `/v1/` goes to an engine as it is (API.md, section 2)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Scope

from api.body import LONG_BYTES, BadForm, BadJson, Body, FormField, decoded, is_form, read_content, read_form
from api.callers import ANYONE, Caller
from api.doors.openai_errors import openai_error
from api.doors.raw_route import RawRoute
from api.refusals import REFUSED, Refusal, refusal_of
from api.relay import Relayed, Relays, Target, request_headers, target_of
from api.renaming import Rename, in_fields, in_form, in_json
from api.service import Service
from api.settings import ApiSettings
from api.tool_calls import forces_call, with_opening
from planner.json_numbers import exact_json
from workers.presence import engines_of

OURS = frozenset({"batches", "decisions", "engines", "jobs", "keys", "models", "systemone"})
"""First parts of paths under `/v1/` that are never passed through, whatever the method."""

CHAT = "/v1/chat/completions"

JSON = "application/json"
FIELDS = "application/x-www-form-urlencoded"

MOST_FIELDS = 1000
"""Fields of a form that is passed on."""


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
        body, rename = await _read(request.headers, content, service.settings)
        return await relayed(request, caller, body, path, rename)
    except REFUSED as error:
        response = openai_error(refusal_of(error))
        response.headers.update(caller.headers)
        return response


async def relayed(
    request: Request, caller: Caller, body: Body, path: str | None = None, rename: Rename | None = in_json
) -> Response:
    """The answer of an engine to a body that was read. `rename` puts a served name in place of an alias, and
    is `in_json` for JSON. Raises Refusal or StoreError.
    """
    service: Service = request.app.state.service
    relays: Relays = request.app.state.relays
    model = body.value.get("model") if isinstance(body.value, dict) else None
    if not (model is None or isinstance(model, str)):
        raise Refusal(400, "invalid_model", "`model` is the name of a model")
    target = await _target(service, model)
    is_object = rename is in_json and isinstance(body.value, dict)
    headers = request_headers(request.headers)
    if is_object and not _says_json(request.headers):
        # As curl sends it. An engine that goes by the type would not take it.
        headers["content-type"] = JSON
    if is_object and (path or request.url.path) == CHAT and forces_call(body.value):
        urls, content = await _opened(service, caller, body, target)
    else:
        urls, content = target.urls, await _by_served_name(body, model, target, rename)
    raw = request.scope.get("raw_path") or request.url.path.encode()
    query = request.scope["query_string"]
    where = (path or raw.decode("latin-1")) + (f"?{query.decode('latin-1')}" if query else "")
    return Relayed(
        relays, urls, request.method, where, headers, content, extra=caller.headers, refuse=openai_error
    )


async def _opened(
    service: Service, caller: Caller, body: Body, target: Target
) -> tuple[tuple[str, ...], bytes]:
    """Who is asked for a call that is forced, and with what: opened, where no engine would force it.

    Raises what a forced call may be refused with (api/tool_calls.py).
    """
    if target.causal:
        return target.causal, await _by_served_name(body, body.value.get("model"), target, in_json)
    return target.urls, exact_json(await with_opening(service, caller, body.value, target.model))


async def _by_served_name(body: Body, model: str | None, target: Target, rename: Rename | None) -> bytes:
    """A body as it came; one whose model is an alias, which an engine does not know, by the served name."""
    if rename is None or model in (None, target.model):
        return body.content
    if len(body.content) < LONG_BYTES:
        return rename(body.content, model, target.model)
    return await asyncio.to_thread(rename, body.content, model, target.model)


async def _target(service: Service, model: str | None) -> Target:
    aliases = service.settings.aliases
    try:
        return target_of(model, engines_of(service.engines), aliases)
    except Refusal:
        await service.look_at_pool()
        return target_of(model, engines_of(service.engines), aliases)


def _kind(headers: Headers) -> str:
    return headers.get("content-type", JSON).partition(";")[0].strip().lower()


def _says_json(headers: Headers) -> bool:
    kind = _kind(headers)
    return kind == JSON or kind.endswith("+json")


async def _read(headers: Headers, content: bytes, settings: ApiSettings) -> tuple[Body, Rename | None]:
    """The content with as much of its value as names the model, and how that is renamed. A JSON object is one
    whatever its content type says. Raises a BodyError or Refusal.
    """
    if content and _says_json(headers):
        return await decoded(content, settings.max_json_depth), in_json
    if content and is_form(headers):
        rename = partial(in_form, content_type=headers["content-type"])
        return Body({"model": await _field(headers, content, settings.max_body_bytes)}, content), rename
    if content.lstrip(b" \t\r\n").startswith(b"{"):
        with suppress(BadJson):
            return await decoded(content, settings.max_json_depth), in_json
    if _kind(headers) == FIELDS:
        return Body({"model": _line_field(content)}, content), in_fields
    return Body(None, content), None


def _line_field(content: bytes) -> str | None:
    """The model that a line of fields names. Raises Refusal."""
    try:
        return dict(parse_qsl(content.decode("latin-1"), max_num_fields=MOST_FIELDS)).get("model")
    except ValueError as error:
        raise Refusal(400, "bad_form", f"the body is no form: {error}") from error


async def _field(headers: Headers, content: bytes, limit: int) -> str | None:
    """The model that a form names. Raises Refusal."""
    try:
        form = dict(await read_form(headers, content, limit, MOST_FIELDS))
    except BadForm as error:
        raise Refusal(400, "bad_form", str(error)) from error
    return form["model"].decode() if isinstance(form.get("model"), FormField) else None
