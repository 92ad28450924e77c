"""From a request's JSON to a `Call`: what to do, and how to write the answer."""

from dataclasses import dataclass, replace
from typing import Any

import orjson

from engine import checks
from engine.canvas_request import (
    Limits,
    check_context,
    has_canvas_fields,
    is_read,
    parse_asked,
    parse_canvas,
    parse_opening,
)
from engine.chat import read_messages
from engine.checks import Body
from engine.codec import Codec
from engine.errors import BadRequest
from engine.tool_calls import FORMATS, Format
from engine.tool_choice import forced, offers_tools
from engine.work import CanvasRead, Generation, Prompt

_COMPLETION_TOKENS = 16  # OpenAI's default for /v1/completions, which vLLM keeps

# Sampling fields of a generation, with their bounds. They go to the backend as they are.
_SAMPLING: dict[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "repetition_penalty": (0, 10),
}


@dataclass(frozen=True, slots=True)
class Call:
    """A validated request. `token_names`: tokens come back as `token_id:N`.

    `tools` is the format in which calls are looked for in the text, None for none.
    """

    model: str
    chat: bool
    work: CanvasRead | Generation
    stream: bool
    stream_usage: bool
    token_names: bool
    token_ids: bool
    tools: Format | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """What parsing a request takes. `honest` is False for the liar that does not know the canvas fields.

    `parser` is a name of `FORMATS`, None where tool calls are not looked for.
    """

    model: str
    codec: Codec
    limits: Limits
    honest: bool = True
    parser: str | None = None


def parse_body(raw: bytes) -> dict[str, Any]:
    """The JSON object of a request body. Raises `BadRequest`."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    return body


def parse_call(body: Body, chat: bool, dialect: Dialect) -> Call:
    """A completions or chat request, checked. Raises `BadRequest`."""
    _refuse_many(body)
    prompt = chat_prompt(body, dialect) if chat else text_prompt(body, dialect)
    top = _top(body, chat, dialect.limits)
    work: CanvasRead | Generation
    tools = chat and offers_tools(body, dialect.parser)
    # A forced call is found without being looked for.
    parser = dialect.parser or "hermes"
    seeded = dialect.honest and has_canvas_fields(body)
    if seeded and is_read(body):
        work = parse_canvas(body, prompt, top or 0, dialect.limits)
    else:
        opening = parse_opening(body, dialect.limits) if seeded else ()
        if tools and (name := forced(body, dialect.honest)) is not None:
            opening = tuple(dialect.codec.encode(FORMATS[parser].opened(name)))
        work = replace(_generation(body, chat, prompt, top, dialect), opening=opening)
    stream = checks.flag(body, "stream")
    if stream and isinstance(work, CanvasRead):
        raise BadRequest("a canvas read is not streamed: its rows come all at once", "stream")
    return Call(
        model=checks.string(body, "model") or dialect.model,
        chat=chat,
        work=work,
        stream=stream,
        stream_usage=checks.flag(checks.mapping(body, "stream_options"), "include_usage"),
        token_names=checks.flag(body, "return_tokens_as_token_ids"),
        token_ids=checks.flag(body, "return_token_ids"),
        tools=FORMATS[parser] if tools else None,
    )


def text_prompt(body: Body, dialect: Dialect) -> Prompt:
    """The `prompt` of a completion: a string, token ids, or a list holding one of these."""
    value = body.get("prompt")
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], (str, list)):
        value = value[0]
    if isinstance(value, str):
        ids = tuple(dialect.codec.encode(value, body.get("add_special_tokens") is not False))
    else:
        ids = checks.token_ids(value, "prompt", dialect.limits.vocabulary)
    if not ids:
        raise BadRequest("prompt must hold at least one token", "prompt")
    return Prompt(ids, salt=checks.string(body, "cache_salt") or "")


def chat_prompt(body: Body, dialect: Dialect) -> Prompt:
    """The prompt that the chat template makes of `messages`."""
    messages, images = read_messages(body)
    variables = checks.mapping(body, "chat_template_kwargs")
    if body.get("tools"):
        variables = {"tools": body["tools"], **variables}
    add = body.get("add_generation_prompt") is not False
    continued = checks.flag(body, "continue_final_message")
    text = dialect.codec.render(messages, add and not continued, **variables)
    if continued:
        final = messages[-1]["content"]
        text = text[: text.rindex(final) + len(final)]
    return Prompt(tuple(dialect.codec.encode(text)), images, checks.string(body, "cache_salt") or "")


def _refuse_many(body: Body) -> None:
    for name in ("n", "best_of"):
        if body.get(name) not in (None, 1):
            raise BadRequest(f"{name} must be 1 in this engine, not {body[name]!r}", name)
    for name in ("echo", "suffix"):
        if body.get(name):
            raise BadRequest(f"{name} is not supported by this engine", name)


def _top(body: Body, chat: bool, limits: Limits) -> int | None:
    if not chat:
        return _bounded(body, "logprobs", limits) if body.get("logprobs") is not None else None
    top = _bounded(body, "top_logprobs", limits)
    if not checks.flag(body, "logprobs"):
        if top:
            raise BadRequest("top_logprobs needs logprobs to be true", "top_logprobs")
        return None
    return top


def _bounded(body: Body, name: str, limits: Limits) -> int:
    value = body.get(name)
    if type(value) is int and value > limits.logprobs:
        raise BadRequest(
            f"Requested sample logprobs of {value}, which is greater than max allowed: {limits.logprobs}",
            name,
        )
    return checks.integer(body, name, 0, limits.logprobs)


def _generation(body: Body, chat: bool, prompt: Prompt, top: int | None, dialect: Dialect) -> Generation:
    limits = dialect.limits
    room = limits.context - prompt.length
    limit = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
    default = max(room, 1) if chat else _COMPLETION_TOKENS
    wanted = checks.integer(body, limit, 1, default=default)
    check_context(prompt.length, wanted, limits.context)
    asked = parse_asked(body, limits)
    if asked and wanted > 1 and dialect.honest:
        raise BadRequest(
            "logprob_token_ids in a generation needs max_tokens 1 in this engine", "logprob_token_ids"
        )
    return Generation(
        prompt=prompt,
        max_tokens=wanted,
        stop=checks.strings(body, "stop"),
        stop_ids=frozenset(
            checks.token_ids(body.get("stop_token_ids") or [], "stop_token_ids", limits.vocabulary)
        ),
        sampling=_sampling(body),
        schema=_schema(body),
        top=top,
        asked=asked if dialect.honest else (),
        keeps_special=body.get("skip_special_tokens") is False,
    )


def _sampling(body: Body) -> dict[str, Any]:
    numbers = {name: checks.number(body, name, low, high) for name, (low, high) in _SAMPLING.items()}
    whole = {name: body.get(name) and checks.integer(body, name, -1) for name in ("top_k", "seed")}
    chosen = {name: value for name, value in (numbers | whole).items() if value is not None}
    return chosen | {"ignore_eos": True} if checks.flag(body, "ignore_eos") else chosen


def _schema(body: Body) -> dict[str, Any] | None:
    structured = checks.mapping(body, "structured_outputs")
    if structured:
        schema = structured.get("json")
        schema = _decode(schema) if isinstance(schema, str) else schema
        return _object(schema, "structured_outputs.json")
    form = checks.mapping(body, "response_format")
    if form.get("type") == "json_schema":
        return _object(
            checks.mapping(form, "json_schema").get("schema"), "response_format.json_schema.schema"
        )
    if form.get("type") == "json_object":
        return {"type": "object"}
    if form.get("type") not in (None, "text"):
        raise BadRequest(
            "response_format.type must be text, json_object or json_schema", "response_format.type"
        )
    return None


def _decode(schema: str) -> Any:
    try:
        return orjson.loads(schema)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"structured_outputs.json is no JSON: {error}", "structured_outputs.json") from error


def _object(schema: Any, name: str) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise BadRequest(f"{name} must be a JSON schema (only json schemas are supported here)", name)
    return schema
