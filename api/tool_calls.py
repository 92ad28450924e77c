"""Calls that a chat must make, at an engine that cannot be forced to make one.

`tool_choice` "required", or a named function, is a grammar, which a diffusion engine refuses. So the opening
of the call is written into its canvas and pinned there; the engine writes what follows, and is told `auto`.

    the functions offered > one of them, by a choice read where there are several > a canvas with its opening
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
import structlog

from api.callers import Caller
from api.images import images_of
from api.refusals import Refusal, refusal_of_failure
from api.service import Service
from planner.canvas import Canvas
from planner.decision import as_text
from planner.dialects import DIALECTS
from planner.errors import Invalid, Location
from planner.formats import MAX_OPTIONS
from planner.vocabulary import Vocabulary
from workers.terms import Terms

CANVAS_FIELDS = "diffusion_"
DIALECT = "chat"
"""The dialect of the decision that chooses a function."""

_QUESTION = "function"
_INSTRUCTIONS = "Which function does the assistant call next?"
# What OpenAI lets a name be, and the dots that vLLM's parsers take too: it cannot spell any markup.
_NAME = re.compile(r"[A-Za-z0-9_.-]+")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Function:
    """A function that a chat offers."""

    name: str
    description: str | None


def forces_call(body: Mapping[str, Any]) -> bool:
    """Whether a chat's answer has to be a call."""
    choice = body.get("tool_choice")
    return choice == "required" or (isinstance(choice, dict) and choice.get("type") == "function")


async def with_opening(
    service: Service, caller: Caller, body: Mapping[str, Any], model: str
) -> dict[str, Any]:
    """A chat that forces a call, as a diffusion engine which serves it as `model` takes it.

    Raises Invalid or Refusal, and what a decision is refused with where it takes one to choose a function.
    """
    functions = _functions(body)
    extra = _extra(body)
    # Before anything is read: a call that cannot be opened costs no decision.
    opened = {name: opening(name, service.vocabulary) for name in functions}
    name = await _chosen(service, caller, body, model, functions)
    canvas = opened[name]
    return {
        **body,
        "model": model,
        "tool_choice": "auto",
        "vllm_xargs": {
            **extra,
            "diffusion_seed_canvas": canvas.seeded(secrets.randbits(32)),
            "diffusion_canvas_length": canvas.width,
            "diffusion_pinned": canvas.pinned,
        },
    }


def opening(name: str, vocabulary: Vocabulary) -> Canvas:
    """The served canvas with the opening of a call, free after it. Raises Invalid.

    An empty thought block stands ahead of it, as in every canvas whose prompt the engine's server makes.
    """
    calling = vocabulary.family.calling
    if calling is None:
        raise Invalid(
            ("tool_choice",),
            f"how models of the {vocabulary.family.name} family call a function is not known here, so that "
            'none can be forced; "auto" leaves it to the model',
            kind="not_served",
        )
    call = vocabulary.tokenizer.encode_markup(calling.before + name + calling.after)
    written = (*vocabulary.thought_empty, *call)
    length, room = len(written), vocabulary.canvas
    if length >= room:
        message = f"the opening of a call of {name!r} takes {length} tokens; the canvas has {room}"
        raise Invalid(("tools",), message, kind="too_long", given=name)
    free = tuple(range(length, room))
    return Canvas((*written, *(vocabulary.pad for _ in free)), free, vocabulary.size)


def _functions(body: Mapping[str, Any]) -> dict[str, Function]:
    """The functions of which one has to be called, by name. Raises Invalid."""
    tools = body.get("tools")
    if not isinstance(tools, list) or not tools:
        raise Invalid(("tools",), "`tool_choice` asks for a call, and no tools are offered", kind="missing")
    functions: dict[str, Function] = {}
    for place, tool in enumerate(tools):
        function = _function(tool, ("tools", place, "function"))
        functions.setdefault(function.name, function)
    choice = body["tool_choice"]
    if choice == "required":
        return functions
    named = choice.get("function")
    wanted = named.get("name") if isinstance(named, dict) else None
    if not isinstance(wanted, str) or wanted not in functions:
        known = ", ".join(map(repr, functions))
        message = f"there is no function {wanted!r} in `tools`; there are {known}"
        raise Invalid(("tool_choice", "function", "name"), message, kind="unknown_function", given=wanted)
    return {wanted: functions[wanted]}


def _function(tool: Any, loc: Location) -> Function:
    function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
    if not isinstance(function, dict):
        raise Invalid(loc, "a tool is {type: function, function: {name, ...}}", kind="tool_type", given=tool)
    name, description = function.get("name"), function.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        message = "a function's name is made of letters, digits, `_`, `-` and `.`"
        raise Invalid((*loc, "name"), message, kind="function_name", given=name)
    return Function(name, description if isinstance(description, str) else None)


def _extra(body: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's own fields that a body sends along. Raises Invalid where they are of a canvas."""
    extra = body.get("vllm_xargs")
    if extra is None:
        return {}
    if not isinstance(extra, dict) or any(name.startswith(CANVAS_FIELDS) for name in extra):
        message = "a call is forced by the canvas, which these fields set otherwise"
        raise Invalid(("vllm_xargs",), message, kind="not_served", given=extra)
    return extra


async def _chosen(
    service: Service,
    caller: Caller,
    body: Mapping[str, Any],
    model: str,
    functions: Mapping[str, Function],
) -> str:
    """The function to call: the only one, or what a decision about the conversation chooses."""
    if len(functions) == 1:
        return next(iter(functions))
    if len(functions) > MAX_OPTIONS:
        message = f"{len(functions)} functions; one of at most {MAX_OPTIONS} can be chosen"
        raise Invalid(("tools",), message, kind="too_long", given=len(functions))
    service.require_room()
    state = _conversation(body.get("messages"))
    asked = {
        "model": model,
        "messages": [
            {"role": "system", "content": json.dumps(_schema(functions.values()))},
            {"role": "user", "content": state},
        ],
    }
    dialect = DIALECTS[DIALECT]
    images = await images_of(dialect.images(asked), {}, service.settings)
    decision = dialect.parse(asked, images.shown)
    apart = body.get("cache_salt")
    salt = ":".join(part for part in (caller.salt, apart) if isinstance(part, str) and part)
    size = sum(len(part.get("text", "")) for part in state)
    accepted = await service.decide(
        service.new_id(),
        replace(decision, salt=salt),
        size,
        Terms(owner=caller.id, most_open=caller.most_open),
        service.settings.sync_limit_s,
        images.contents,
    )
    if accepted.outcome is None:
        limit = service.settings.sync_limit_s
        message = f"no function was chosen within {limit:g} s"
        raise Refusal(503, "no_answer_yet", message, retry_after_s=1)
    if (failure := accepted.outcome.failure()) is not None:
        raise refusal_of_failure(failure)
    completion = orjson.loads(accepted.outcome.body)
    answers = orjson.loads(completion["choices"][0]["message"]["content"])["answers"]
    name: str = answers[_QUESTION]["choice"]
    log.debug("function chosen", decision=accepted.id, function=name)
    return name


def _schema(functions: Iterable[Function]) -> dict[str, Any]:
    question = {
        "id": _QUESTION,
        "type": "choice",
        "instructions": _INSTRUCTIONS,
        "options": [{"name": one.name, "description": one.description} for one in functions],
    }
    return {"questions": [question], "joint": False, "diagnostics": False}


def _conversation(messages: Any) -> list[dict[str, Any]]:
    """The messages of a chat as the parts of a state: a text each, and the images where they are shown.

    Raises Invalid.
    """
    if not isinstance(messages, list) or not messages:
        raise Invalid(("messages",), "a chat has at least one message", kind="missing", given=messages)
    parts: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise Invalid(("messages", place), "a message is {role, content}", kind="message_type")
        content = message.get("content")
        told = content if isinstance(content, list) else [{"type": "text", "text": as_text(content or "")}]
        texts, images = _told(told)
        calls = message.get("tool_calls")
        texts += [as_text({"tool_calls": calls})] if calls else []
        parts.append({"type": "text", "text": f"{message['role']}: {' '.join(texts)}"})
        parts += images
    return parts


def _told(content: Sequence[Any]) -> tuple[list[str], list[dict[str, Any]]]:
    """The texts of a message's parts, and its images that came along; what is neither goes by its type."""
    texts: list[str] = []
    images: list[dict[str, Any]] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        url = part.get("image_url") if isinstance(part, dict) else None
        if kind == "text":
            texts.append(as_text(part.get("text") or ""))
        elif isinstance(url, dict) and str(url.get("url")).startswith("data:"):
            images.append({"type": "image_url", "image_url": url})
        else:
            texts.append(f"({kind})")
    return texts, images
