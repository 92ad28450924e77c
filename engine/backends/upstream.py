"""The canvas dialect in front of any OpenAI-compatible causal server.

Each slot is one completion of one token, read left to right (`engine.causal`). An upstream that is vLLM is
asked for exactly the ids that matter (`logprob_token_ids`); one that refuses the field is asked for its
likeliest tokens alone, and an id that is not among them gets a floor: `_MISSING`, or one below the lowest
that was reported. Generations are passed on.
"""

from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import orjson

from engine.causal import NextToken, emulate
from engine.codec import Codec
from engine.errors import BadRequest, EngineError, QueueFull
from engine.work import CanvasRead, Generation, Piece, Row

_MISSING = -20.0
_FALLBACK_TOP = 20  # vLLM's default --max-logprobs
_PROBE = "Is it 42? yes: A1\n"
_TIMEOUT = aiohttp.ClientTimeout(total=600, sock_connect=5)


class UpstreamBackend:
    """One causal server and its model. Made by `connect`."""

    slots: int | None = None

    def __init__(
        self, url: str, session: aiohttp.ClientSession, codec: Codec, name: str, context: int
    ) -> None:
        self.name = name
        self.context = context
        self._url = url
        self._session = session
        self._codec = codec
        self._exact = True
        self._ids: dict[str, int] = {}

    @classmethod
    async def connect(cls, url: str, codec: Codec, context: int | None) -> "UpstreamBackend":
        """Learn the upstream's model; refuse a tokenizer that is not its own. Raises `EngineError`."""
        session = aiohttp.ClientSession(timeout=_TIMEOUT)
        try:
            async with session.get(f"{url}/v1/models") as response:
                model = (await response.json())["data"][0]
            served = model.get("max_model_len") or codec.context
            length = min(context or served, served)
            backend = cls(url, session, codec, model["id"], int(length))
            await backend._check_tokenizer()
        except (aiohttp.ClientError, KeyError, IndexError, EngineError) as error:
            await session.close()
            raise EngineError(f"the upstream {url} cannot be used: {error}") from error
        return backend

    async def read(self, read: CanvasRead) -> list[list[Row]]:
        """Each draw, slot after slot."""
        return [await self._draw(read, draw) for draw in range(read.samples)]

    async def generate(self, generation: Generation) -> AsyncGenerator[Piece, None]:
        """The upstream's own generation, in one piece."""
        body: dict[str, Any] = generation.sampling | {
            "prompt": list(generation.prompt.ids),
            "max_tokens": generation.max_tokens,
            "logprobs": max(generation.top or 0, 1),
        }
        if generation.stop:
            body["stop"] = list(generation.stop)
        if generation.keeps_special:
            body["skip_special_tokens"] = False
        if generation.stop_ids:
            body["stop_token_ids"] = sorted(generation.stop_ids)
        if generation.schema is not None:
            body["structured_outputs"] = {"json": generation.schema}
        if generation.asked:
            body["logprob_token_ids"] = list(generation.asked)
        choice = await self._complete(body)
        logprobs = choice.get("logprobs") or {"tokens": [], "token_logprobs": [], "top_logprobs": []}
        rows = [
            _row(self._id(token, self._codec.pad), value, self._by_id(top))
            for token, value, top in zip(
                logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"], strict=True
            )
        ]
        yield Piece(choice["text"], rows, choice["finish_reason"])

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def _draw(self, read: CanvasRead, draw: int) -> list[Row]:
        emulation = emulate(read, draw, self._codec.eos)
        try:
            wanted = next(emulation)
            while True:
                wanted = emulation.send(await self._next_token(wanted))
        except StopIteration as finished:
            rows: list[Row] = finished.value
            return rows

    async def _next_token(self, wanted: NextToken) -> dict[int, float]:
        body: dict[str, Any] = {"prompt": wanted.prefix, "max_tokens": 1, "temperature": 0}
        asked = {"logprobs": wanted.top, "logprob_token_ids": list(wanted.asked)}
        likeliest = {"logprobs": _FALLBACK_TOP}
        try:
            choice = await self._complete(body | (asked if self._exact else likeliest))
        except BadRequest:
            if not self._exact:
                raise
            choice = await self._complete(body | likeliest)
            # It was the field that it refused, and not the read.
            self._exact = False
        reported = self._by_id(choice["logprobs"]["top_logprobs"][0])
        floor = min(_MISSING, min(reported.values()) - 1)
        top = sorted(reported, key=lambda token: -reported[token])[: wanted.top]
        return {token: reported[token] for token in top} | {
            token: reported.get(token, floor) for token in wanted.asked
        }

    async def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        body = {"model": self.name, "return_tokens_as_token_ids": True} | body
        try:
            async with self._session.post(f"{self._url}/v1/completions", json=body) as response:
                raw = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise EngineError(f"the upstream cannot be reached: {error}") from error
        if response.status == 400:
            raise BadRequest(f"the upstream refused: {raw[:500].decode(errors='replace')}")
        if response.status == 503:
            raise QueueFull("the upstream has no room")
        if response.status != 200:
            raise EngineError(f"the upstream answered {response.status}")
        choice: dict[str, Any] = orjson.loads(raw)["choices"][0]
        return choice

    async def _check_tokenizer(self) -> None:
        body = {"model": self.name, "prompt": _PROBE, "add_special_tokens": False}
        async with self._session.post(f"{self._url}/tokenize", json=body) as response:
            # Only vLLM has this route; of another server the tokenizer is taken on trust.
            theirs = (await response.json())["tokens"] if response.status == 200 else None
        if theirs not in (None, self._codec.encode(_PROBE)):
            raise EngineError(f"its tokenizer is not {self._codec.folder}: pass its own with --tokenizer")

    def _by_id(self, logprobs: dict[str, float]) -> dict[int, float]:
        known = {self._id(name, -1): value for name, value in logprobs.items()}
        known.pop(-1, None)
        return known

    def _id(self, name: str, unknown: int) -> int:
        """The id of a token, which a server that is not vLLM names by its text."""
        if name.startswith("token_id:"):
            return int(name[9:])
        if not self._ids:
            texts = (self._codec.token_text(token) for token in range(self._codec.vocabulary))
            self._ids = {text: token for token, text in enumerate(texts)}
        return self._ids.get(name, unknown)


def _row(token: int, value: float, top: dict[int, float]) -> Row:
    return Row(token, {token: value} | top)
