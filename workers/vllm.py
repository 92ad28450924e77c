"""The engine's wire: one read as vLLM's OpenAI server takes it, and what can come back.

EngineError
├── Unreachable   no answer: refused, reset, or a 5xx
│   └── TimedOut  no answer in the time given
├── Busy          503: elsewhere, now; no failure of the engine
├── Refused       4xx: the request's own fault, on every engine alike
└── Broken        a 200 that is no canvas read: wrong rows, ids missing, not a number
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import aiohttp
import orjson

from planner.reads import Read, Rows

JSON_HEADERS = {"content-type": "application/json"}
CONNECT_TIMEOUT_S = 2.0

MOST_CREATED = 2**33
"""Seconds since 1970 beyond which a time of creation is none (the year 2242)."""


class EngineError(Exception):
    """Base of what an engine can do wrong. The message says what, and where."""


class Unreachable(EngineError):
    """No answer: the connection failed or timed out, or the engine answered with a 5xx."""


class TimedOut(Unreachable):
    """No answer in the time that was given."""


class Busy(EngineError):
    """The engine has no room now (503)."""


class Refused(EngineError):
    """The engine says that the request is wrong (4xx); `too_long` when it is for its length."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.too_long = "maximum context length" in message or "max_model_len" in message


class Broken(EngineError):
    """The engine answered 200 with something that is no canvas read."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """What an engine says of the model it serves.

    `context` is in tokens, `created` in seconds since 1970, each where the engine says so.
    """

    name: str
    context: int | None = None
    created: int | None = None


def read_body(read: Read, model: str, pad: int, least_width: int, salt: str = "") -> bytes:
    """The body of a read. A canvas narrower than `least_width` is padded to it with `pad`."""
    canvas = read.canvas.seeded(read.seed)
    padding = max(0, least_width - len(canvas))
    pinned = [*read.canvas.pinned, *range(len(canvas), len(canvas) + padding)]
    canvas += [pad] * padding
    salted = {"cache_salt": salt} if salt else {}
    return orjson.dumps(
        {
            "model": model,
            "prompt": [*read.head, *read.tail],
            "max_tokens": len(canvas),
            "temperature": 1,
            "logprobs": 1,
            "logprob_token_ids": read.ids,
            "return_tokens_as_token_ids": True,
            "vllm_xargs": {
                "diffusion_seed_canvas": canvas,
                "diffusion_canvas_length": len(canvas),
                "diffusion_pinned": pinned,
                "diffusion_max_steps": read.steps,
                "diffusion_read_only": True,
            },
            **salted,
        }
    )


def rows_of(read: Read, width: int, answer: Any, engine: str, ms: float) -> Rows:
    """The rows of a read's free positions. Raises Broken when the answer is no canvas read."""
    try:
        rows = answer["choices"][0]["logprobs"]["top_logprobs"]
        usage = answer.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        if len(rows) != width:
            raise Broken(f"{engine} gave {len(rows)} rows for a canvas of {width}")
        names = [f"token_id:{id}" for id in read.ids]
        logprobs = tuple(tuple(float(rows[place][name]) for name in names) for place in read.canvas.free)
        tops = [max(rows[place], key=rows[place].__getitem__) for place in read.canvas.free]
        peaks = tuple(float(rows[place][name]) for place, name in zip(read.canvas.free, tops, strict=True))
        top = tuple(int(name.removeprefix("token_id:")) for name in tops)
        tokens = int(usage.get("prompt_tokens") or 0), int(details.get("cached_tokens") or 0)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise Broken(f"{engine} answered 200 with no canvas read in it: {error!r}") from error
    if not all(math.isfinite(value) for row in (*logprobs, peaks) for value in row):
        raise Broken(f"{engine} gave a logprob that is no number")
    return Rows(
        logprobs=logprobs,
        top=top,
        engine=engine,
        ms=ms,
        prompt_tokens=tokens[0],
        cached_tokens=tokens[1],
        peaks=peaks,
    )


class VllmClient:
    """Speaks to engines over the process's one HTTP session. `pad` is the padding token's id."""

    def __init__(self, session: aiohttp.ClientSession, pad: int) -> None:
        self._session = session
        self._pad = pad

    async def read(
        self, engine: str, read: Read, *, model: str, least_width: int, timeout_s: float, salt: str = ""
    ) -> Rows:
        """One canvas read on the engine at a URL. Raises an EngineError."""
        body = read_body(read, model, self._pad, least_width, salt)
        start = perf_counter()
        answer = await self._call("POST", f"{engine}/v1/completions", timeout_s, body)
        width = max(read.canvas.width, least_width)
        return rows_of(read, width, answer, engine, 1000 * (perf_counter() - start))

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
        await self._call("GET", f"{engine}/health", timeout_s, empty=True)

    async def _call(
        self, method: str, url: str, timeout_s: float, body: bytes | None = None, *, empty: bool = False
    ) -> Any:
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        try:
            async with self._session.request(
                method, url, data=body, headers=JSON_HEADERS, timeout=timeout
            ) as response:
                status, content = response.status, await response.read()
        except TimeoutError as error:
            raise TimedOut(f"{url} did not answer within {timeout_s:.3g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{url} does not answer: {error!r}") from error
        if status == 503:
            raise Busy(f"{url} has no room (503)")
        if status >= 500:
            raise Unreachable(f"{url} answered {status}: {_excerpt(content)}")
        if status >= 400:
            raise Refused(f"{url} answered {status}: {_excerpt(content)}")
        if empty:
            return None
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise Broken(f"{url} answered {status} with no JSON: {_excerpt(content)}") from error


def _excerpt(content: bytes) -> str:
    """The first words of an error body, for a message; bodies can be pages long."""
    return content[:500].decode(errors="replace")
