"""Answers a validated call: time, prefix cache, backend, body."""

import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from engine.latency import TOKENS_PER_STEP, Gate
from engine.liars import OTHER_MODEL, blind, lie
from engine.metrics import Metrics
from engine.prefix_cache import PrefixCache
from engine.requests import Call
from engine.responses import Writer, usage
from engine.tool_calls import Reader, deltas_of
from engine.work import Backend, CanvasRead, Generation, Piece, Prompt, Row, best


@dataclass(slots=True)
class Service:
    """One served model. `liar` is a name of `liars.NAMES` or None."""

    backend: Backend
    writer: Writer
    gate: Gate
    cache: PrefixCache
    metrics: Metrics
    liar: str | None

    async def answer(self, call: Call, fault: str | None = None) -> dict[str, Any]:
        """The whole body of a call that is not streamed. `fault` may be `wrong-rows`."""
        call = blind(call, self.liar)
        self.gate.enter()
        try:
            if isinstance(call.work, CanvasRead):
                body = await self._read(call, call.work, fault)
            else:
                body = await self._generation(call, call.work)
        finally:
            self.gate.leave()
        return body | {"model": OTHER_MODEL} if self.liar == "wrong-model" else body

    async def stream(self, call: Call) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of a generation."""
        call = blind(call, self.liar)
        assert isinstance(call.work, Generation)
        self.gate.enter()
        try:
            async with aclosing(self._chunks(call, call.work)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            self.gate.leave()

    async def _read(self, call: Call, read: CanvasRead, fault: str | None) -> dict[str, Any]:
        cached = await self._prefill(read.prompt, read.steps)
        slots = frozenset(read.slots)
        choices = []
        for index, rows in enumerate(await self.backend.read(read)):
            if read.constrained:
                rows = [_constrain(row, read.asked) if at in slots else row for at, row in enumerate(rows)]
            rows = rows[: read.rows - 1] if fault == "wrong-rows" else rows[: read.rows]
            text = self.writer.codec.decode([row.token for row in rows], skip_special=True)
            shown = lie(rows, read, self.liar) if read.top or read.asked else None
            choices.append(self.writer.choice(call, index, text, shown, "length"))
        counts = usage(read.prompt.length, read.rows * len(choices), cached)
        return self.writer.envelope(call) | {"choices": choices, "usage": counts}

    async def _generation(self, call: Call, generation: Generation) -> dict[str, Any]:
        cached = await self._prefill(generation.prompt, 1)
        text, finish = "", None
        rows: list[Row] = []
        async with aclosing(self._paced(generation)) as pieces:
            async for piece in pieces:
                text += piece.text
                rows += piece.rows
                finish = piece.finish or finish
        choice = self.writer.choice(call, 0, text, None if generation.top is None else rows, finish)
        if call.token_ids:
            choice["token_ids"] = [row.token for row in rows]
            choice["prompt_token_ids"] = list(generation.prompt.ids)
        counts = usage(generation.prompt.length, len(rows), cached)
        return self.writer.envelope(call) | {"choices": [choice], "usage": counts}

    async def _chunks(self, call: Call, generation: Generation) -> AsyncGenerator[dict[str, Any], None]:
        cached = await self._prefill(generation.prompt, 1)
        frame = self.writer.envelope(call, chunk=True)
        if call.chat:
            yield frame | {"choices": [_delta(call, {"role": "assistant", "content": ""}, None)]}
        tokens, reader = 0, Reader(call.tools) if call.tools else None
        async with aclosing(self._paced(generation)) as pieces:
            async for piece in pieces:
                tokens += len(piece.rows)
                *ahead, choice = _told(call, piece, reader)
                if generation.top is not None:
                    choice["logprobs"] = self.writer.logprobs(call, piece.rows)
                if call.token_ids:
                    choice["token_ids"] = [row.token for row in piece.rows]
                for told in (*ahead, choice):
                    yield frame | {"choices": [told]}
        if call.stream_usage:
            yield frame | {"choices": [], "usage": usage(generation.prompt.length, tokens, cached)}

    async def _prefill(self, prompt: Prompt, steps: int) -> int:
        """Spend the first steps of a request; the number of its prompt tokens that were cached."""
        keys = self.cache.keys(prompt)
        cached = self.cache.cached_tokens(keys)
        self.metrics.prefix_cache_queries_total += prompt.length
        self.metrics.prefix_cache_hits_total += cached
        await self.gate.spend(steps, prompt.length - cached)
        # Stored after the prefill: reads of one prefix that come together all pay for it, as in vLLM.
        self.cache.store(keys)
        self.metrics.kv_cache_usage_perc = self.cache.usage()
        return cached

    async def _paced(self, generation: Generation) -> AsyncGenerator[Piece, None]:
        tokens, opening = 0, generation.opening[: generation.max_tokens]
        if opening:
            tokens, left = len(opening), generation.max_tokens - len(opening)
            rows = [Row(token, {token: 0.0}) for token in opening]
            yield Piece(self.writer.codec.decode(list(opening)), rows, None if left else "length")
            if not left:
                return
            prompt = replace(generation.prompt, ids=(*generation.prompt.ids, *opening))
            generation = replace(generation, prompt=prompt, max_tokens=left, opening=())
        async with aclosing(self.backend.generate(generation)) as pieces:
            async for piece in pieces:
                before, tokens = tokens // TOKENS_PER_STEP, tokens + len(piece.rows)
                steps = tokens // TOKENS_PER_STEP - before
                if steps:
                    await self.gate.spend(steps)
                yield piece


def _told(call: Call, piece: Piece, reader: Reader | None) -> list[dict[str, Any]]:
    """The choices that a piece of a stream is told in: one at least."""
    if reader is None:
        return [_delta(call, {"content": piece.text} if call.chat else piece.text, piece.finish)]
    deltas = deltas_of(reader.feed(piece.text, last=piece.finish is not None), reader) or [{}]
    finish = "tool_calls" if piece.finish and reader.calls else piece.finish
    return [_delta(call, delta, finish if delta is deltas[-1] else None) for delta in deltas]


def _delta(call: Call, content: Any, finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta" if call.chat else "text": content, "logprobs": None, "finish_reason": finish}


def _constrain(row: Row, asked: tuple[int, ...]) -> Row:
    """Normalised over the asked ids, as vLLM's constrained path does: their mass is always 1."""
    values = [row.logprobs[token] for token in asked]
    high = max(values)
    total = high + math.log(sum(math.exp(value - high) for value in values))
    logprobs = {token: value - total for token, value in zip(asked, values, strict=True)}
    return Row(best(logprobs), logprobs)
