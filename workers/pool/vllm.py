"""The engine's wire: one read as vLLM's OpenAI server takes it, and what can come back.

EngineError
├── Unreachable   no answer: refused, reset, or a 5xx
│   └── TimedOut  no answer in the time given
├── Busy          503: elsewhere, now; no failure of the engine
├── Refused       4xx: the request's own fault, on every engine alike
└── Broken        a 200 that is not what was asked for: ids missing, not a number
    └── NoCanvas  no rows, or not one per position: what reads no canvases answers like that
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter, time
from typing import Any

import aiohttp
import orjson

from planner.reads import Generation, Message, Read, Rows, Served, Written

JSON_HEADERS = {"content-type": "application/json"}
CONNECT_TIMEOUT_S = 2.0

NO_IMAGES: Mapping[str, bytes] = {}

MOST_CREATED = 2**33
"""Seconds since 1970 beyond which a time of creation is none (the year 2242)."""


MOST_SAID = 500
"""Characters of an engine's own message that are told."""


class EngineError(Exception):
    """Base of what an engine can do wrong. The message says what, and where."""


class Unreachable(EngineError):
    """No answer: the connection failed or timed out, or the engine answered with a 5xx."""


class TimedOut(Unreachable):
    """No answer in the time that was given."""


class Failed(Unreachable):
    """The engine answered with a 5xx: it may be at fault, or only this request."""


class Busy(EngineError):
    """The engine has no room now (503)."""


class Refused(EngineError):
    """The engine says that the request is wrong (4xx); `too_long` when it is for its length.

    `told` is what a client may hear of it: what the engine says, and not where it is.
    """

    def __init__(self, message: str, told: str | None = None) -> None:
        super().__init__(message)
        self.told = message if told is None else told
        self.too_long = "maximum context length" in message or "max_model_len" in message


class Broken(EngineError):
    """The engine answered 200 with something that is no canvas read."""


class NoCanvas(Broken):
    """The engine answered 200 without a row per position of the canvas: it may be one that reads none."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """What an engine says of the model it serves.

    `context` is in tokens, `created` in seconds since 1970, each where the engine says so.
    """

    name: str
    context: int | None = None
    created: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """How a read is sent to one engine.

    `model` is the name it serves, `least_width` the narrowest canvas it takes (tokens), `timeout_s` the
    seconds it may take. `salt` keeps the prompt's cache apart from other clients'. `constrained` asks it to
    look at the label ids alone; `samples` for so many draws in one request (0: the one of the canvas's seed).
    `beyond` asks for so many tokens beyond the canvas, which nothing that reads canvases gives.
    """

    model: str
    least_width: int
    timeout_s: float
    salt: str = ""
    constrained: bool = False
    samples: int = 0
    beyond: int = 0


_WRITING: dict[str, dict[str, Any]] = {
    "thought": {"temperature": 1, "skip_special_tokens": False},
    "object": {"temperature": 0},
}
"""How a text of each kind is written: a value is the likeliest that the grammar allows."""


def read_body(read: Read, call: Call, pad: int) -> bytes:
    """The body of a read. A canvas narrower than the engine takes is padded with `pad`."""
    return orjson.dumps(_fields(read, call, pad))


def _fields(read: Read, call: Call, pad: int) -> dict[str, Any]:
    canvas = read.canvas.seeded(read.seed)
    padding = max(0, call.least_width - len(canvas))
    pinned = [*read.canvas.pinned, *range(len(canvas), len(canvas) + padding)]
    canvas += [pad] * padding
    fields: dict[str, Any] = {
        "diffusion_seed_canvas": canvas,
        "diffusion_canvas_length": len(canvas),
        "diffusion_pinned": pinned,
        "diffusion_max_steps": read.steps,
        "diffusion_read_only": True,
    }
    if call.constrained:
        fields["diffusion_constrained"] = True
    if call.samples:
        fields["diffusion_samples"] = call.samples
    body: dict[str, Any] = {
        "model": call.model,
        "prompt": [*read.head, *read.tail],
        "max_tokens": len(canvas) + call.beyond,
        "temperature": 1,
        "logprobs": 1,
        "logprob_token_ids": read.ids,
        "return_tokens_as_token_ids": True,
        "vllm_xargs": fields,
    }
    if call.salt:
        body["cache_salt"] = call.salt
    return body


def chat_body(read: Read, call: Call, pad: int, images: Mapping[str, bytes]) -> bytes:
    """The body of a read whose prompt the server makes of text and images."""
    assert read.message is not None, "a read with token ids goes as a completion"
    body = _fields(read, call, pad)
    del body["prompt"]
    body |= {"messages": _messages(read.message, images), "logprobs": True, "top_logprobs": 1}
    return orjson.dumps(body)


def _messages(message: Message, images: Mapping[str, bytes]) -> list[dict[str, Any]]:
    parts = [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "image_url", "image_url": {"url": _data_url(images[message.images[part]])}}
        for part in message.parts
    ]
    # Plain text goes as a string, which the simplest of servers takes.
    return [{"role": "user", "content": parts if message.images else message.text}]


def _data_url(content: bytes) -> str:
    # Servers look at the bytes; the type only has to be that of an image.
    return f"data:image/png;base64,{b64encode(content).decode()}"


def draws_of(read: Read, call: Call, answer: Any, engine: str, ms: float) -> list[Rows]:
    """The rows of a read's free positions, for each draw. Raises Broken when the answer is no canvas read."""
    try:
        _require_model(answer, call, engine)
        usage = answer.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        served = Served(
            engine,
            call.model,
            ms,
            prompt_tokens=int(usage.get("prompt_tokens") or 0),
            cached_tokens=int(details.get("cached_tokens") or 0),
            at=time() - ms / 1000,
        )
        choices = answer["choices"]
        if len(choices) != (call.samples or 1):
            raise Broken(f"{engine} gave {len(choices)} draws where {call.samples or 1} were asked for")
        # The tokens of one request count once.
        others = replace(served, prompt_tokens=0, cached_tokens=0)
        return [
            _rows(read, call, choice, others if number else served) for number, choice in enumerate(choices)
        ]
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise Broken(f"{engine} answered 200 with no canvas read in it: {error!r}") from error


def _rows(read: Read, call: Call, choice: Any, served: Served) -> Rows:
    if not choice["logprobs"]:
        raise NoCanvas(f"{served.engine} gave no logprobs: it does not read canvases")
    logprobs = choice["logprobs"]
    rows = (
        logprobs["top_logprobs"] if "top_logprobs" in logprobs else [_row(one) for one in logprobs["content"]]
    )
    width = max(read.canvas.width, call.least_width)
    if len(rows) != width:
        raise NoCanvas(f"{served.engine} gave {len(rows)} rows for a canvas of {width}")
    names = [f"token_id:{id}" for id in read.ids]
    slots = [rows[place] for place in read.canvas.free]
    try:
        logprobs = tuple(tuple(float(slot[name]) for name in names) for slot in slots)
        tops = [max(slot, key=slot.__getitem__) for slot in slots]
        peaks = tuple(float(slot[top]) for slot, top in zip(slots, tops, strict=True))
    except KeyError as error:
        raise Broken(f"{served.engine} left out {error}, a token id that was asked for") from error
    except TypeError as error:
        raise Broken(f"{served.engine} gave a logprob that is no number") from error
    if not all(math.isfinite(value) for row in (*logprobs, peaks) for value in row):
        raise Broken(f"{served.engine} gave a logprob that is no number")
    return Rows(logprobs, tuple(int(top.removeprefix("token_id:")) for top in tops), peaks, served)


def written_of(answer: Any, asked: Generation, call: Call, engine: str, ms: float) -> Written:
    """The text that an answer holds. Raises Broken when it holds none."""
    try:
        _require_model(answer, call, engine)
        (choice,) = answer["choices"]
        text = choice["text"] if asked.message is None else choice["message"]["content"] or ""
        usage = answer.get("usage") or {}
        tokens = int(usage.get("completion_tokens") or 0)
        tokens_read = int(usage.get("prompt_tokens") or 0)
        served = Served(engine, call.model, ms, prompt_tokens=tokens_read, at=time() - ms / 1000)
        return Written(str(text).strip(), tokens, str(choice["finish_reason"]), served)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise Broken(f"{engine} answered 200 with no text in it: {error!r}") from error


def _require_model(answer: Any, call: Call, engine: str) -> None:
    """Raise Broken for an answer that says that it comes from another model."""
    if answer.get("model", call.model) != call.model:
        raise Broken(f"{engine} was asked for {call.model!r} and answered as {answer['model']!r}")


def _row(position: Mapping[str, Any]) -> dict[str, float]:
    """One position's logprobs as a chat answers them, as a completion would."""
    return {one["token"]: one["logprob"] for one in position["top_logprobs"]}


class VllmClient:
    """Speaks to engines over the process's one HTTP session. `pad` is the padding token's id."""

    def __init__(self, session: aiohttp.ClientSession, pad: int) -> None:
        self._session = session
        self._pad = pad

    async def read(self, engine: str, read: Read, call: Call) -> Rows:
        """One canvas read on the engine at a URL. Raises an EngineError."""
        (rows,) = await self.draws(engine, read, call)
        return rows

    async def draws(
        self, engine: str, read: Read, call: Call, images: Mapping[str, bytes] = NO_IMAGES
    ) -> list[Rows]:
        """One request for one or several draws of a canvas read. Raises an EngineError."""
        if read.message is None:
            route, body = "completions", read_body(read, call, self._pad)
        else:
            route, body = "chat/completions", chat_body(read, call, self._pad, images)
        start = perf_counter()
        answer = await self._call("POST", f"{engine}/v1/{route}", call.timeout_s, body)
        return draws_of(read, call, answer, engine, 1000 * (perf_counter() - start))

    async def written(
        self, engine: str, asked: Generation, call: Call, images: Mapping[str, bytes] = NO_IMAGES
    ) -> Written:
        """A text that the model writes. Raises an EngineError."""
        body: dict[str, Any] = {
            "model": call.model,
            "max_tokens": asked.most_tokens,
            **_WRITING[asked.kind],
        }
        if asked.stop:
            body["stop"] = [asked.stop]
        if asked.grammar:
            body["structured_outputs"] = {"json": asked.grammar}
        if asked.message is None:
            route, body["prompt"] = "completions", [*asked.head, *asked.tail]
        else:
            route, body["messages"] = "chat/completions", _messages(asked.message, images)
            body["chat_template_kwargs"] = {"enable_thinking": asked.kind == "thought"}
        if call.salt:
            body["cache_salt"] = call.salt
        start = perf_counter()
        answer = await self._call("POST", f"{engine}/v1/{route}", call.timeout_s, orjson.dumps(body))
        return written_of(answer, asked, call, engine, 1000 * (perf_counter() - start))

    async def served_model(self, engine: str, timeout_s: float) -> ServedModel:
        """The first model that an engine lists. Raises an EngineError."""
        answer = await self._call("GET", f"{engine}/v1/models", timeout_s)
        try:
            first = answer["data"][0]
            context, created = first.get("max_model_len"), first.get("created")
            return ServedModel(
                name=str(first["id"]),
                context=context if isinstance(context, int) else None,
                created=created if isinstance(created, int) and 0 <= created < MOST_CREATED else None,
            )
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise Broken(f"{engine} lists no model") from error

    async def healthy(self, engine: str, timeout_s: float) -> None:
        """Raises an EngineError when the engine says it is dead, or says nothing."""
        await self._content("GET", f"{engine}/health", timeout_s)

    async def metrics(self, engine: str, timeout_s: float) -> str:
        """What an engine tells of itself to Prometheus. Raises an EngineError."""
        return (await self._content("GET", f"{engine}/metrics", timeout_s)).decode(errors="replace")

    async def _call(self, method: str, url: str, timeout_s: float, body: bytes | None = None) -> Any:
        content = await self._content(method, url, timeout_s, body)
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise Broken(f"{url} answered with no JSON: {_excerpt(content)}") from error

    async def _content(self, method: str, url: str, timeout_s: float, body: bytes | None = None) -> bytes:
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        try:
            async with self._session.request(
                method, url, data=body, headers=JSON_HEADERS, timeout=timeout
            ) as response:
                status, content = response.status, await response.read()
        except TimeoutError as error:
            raise TimedOut(f"{url} did not answer within {timeout_s:.3g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{url} does not answer: {error}") from error
        if status == 503:
            raise Busy(f"{url} has no room (503)")
        if status >= 500:
            raise Failed(f"{url} answered {status}: {_excerpt(content)}")
        if status >= 400:
            raise Refused(f"{url} answered {status}: {_excerpt(content)}", _said(status, content))
        return content


def _said(status: int, content: bytes) -> str:
    """The message in an error body, as vLLM has them: `{"error": {"message"}}`, of old `{"message"}`."""
    try:
        said = orjson.loads(content)
    except orjson.JSONDecodeError:
        said = None
    if isinstance(said, dict) and isinstance(said.get("error"), dict):
        said = said["error"]
    message = said.get("message") if isinstance(said, dict) else None
    if not isinstance(message, str) or not message:
        return f"the engine answered {status}"
    return f"the engine says: {message[:MOST_SAID]}"


def _excerpt(content: bytes) -> str:
    """The first words of an error body, for a message; bodies can be pages long."""
    return content[:500].decode(errors="replace")
