"""A GGUF model through llama.cpp, in this process.

llama.cpp reports the exact log-probabilities (temperature 1, full vocabulary) of the likeliest tokens, and
of the one token it sampled. What is asked and not among them is found by a second request: it lifts all
asked ids by the same bias, far over every other token, and reads their probabilities after sampling. These
are relative to each other; the sampled token of the first request, which is one of the asked, ties them to
the full vocabulary. Each request evaluates one token, because the prefix is in llama.cpp's prompt cache.
(Reporting the whole vocabulary instead takes 400 ms of JSON.)

An answer hangs on its prompt alone, not on what the cache held of it. What is cached was computed in other
batches than what is not, and on a CPU two things depend on a batch's size: flash attention takes another
way from 64 tokens on, and without it a single token is computed otherwise than several. (Measured: log-
probabilities differed by up to 0.33 and 0.06.) With flash attention and batches of at most 32 tokens they
are the same to the last bit.

llama.cpp reports nothing for a sampled token that is only part of a character, so such tokens are never
lifted: they have their exact value when they are among the likeliest, and the floor otherwise.
"""

import asyncio
import math
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import xllamacpp

from engine.causal import NextToken, emulate
from engine.codec import Codec
from engine.errors import BadRequest, EngineError
from engine.work import FLOOR, CanvasRead, Generation, Piece, Row, best

# One thread writes tokens: with two, llama.cpp's threads spin while they wait for each other, and on two busy
# cores a read of 16 ms took up to 3 s (measured). A prefill's work is long enough to be shared.
_THREADS, _PREFILL_THREADS = 1, 2
_PROMPT_CACHE_MIB = 512
# Tokens of a prompt that are computed together. A prompt of 250 that is not cached takes about 14 % more CPU
# than in llama.cpp's own batches of 512, one of 1000 about 30 %; one whose head is cached takes no more.
_BATCH = 32
# Added to the asked ids' logits: over the gap between any two logits (about 50 here), and small enough that
# float32 still tells apart differences of 1e-5.
_BIAS = 100.0
# Reported beside the top K, so that the asked ids are mostly among them: costs about 1 ms.
_REPORTED = 256
_JSON_STARTS = frozenset('{["-0123456789tfn')
_SAMPLING = {"repetition_penalty": "repeat_penalty"}


class LlamaBackend:
    """One model, one sequence at a time: requests wait for each other in a thread."""

    slots: int | None = 1

    def __init__(self, model: Path, codec: Codec, context: int | None) -> None:
        self.name = model.stem.rsplit(".Q", 1)[0]
        self.context = context or codec.context or 2048
        self._codec = codec
        self._server = _load(model, self.context)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="llama")
        self._closing = threading.Event()

    async def read(self, read: CanvasRead) -> list[list[Row]]:
        """Each draw left to right, all of them in one go, so that the cached prefix stays."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._read, read)

    async def generate(self, generation: Generation) -> AsyncGenerator[Piece, None]:
        """A generation, streamed out of llama.cpp's callback."""
        if generation.asked:
            yield await asyncio.get_running_loop().run_in_executor(self._thread, self._one_token, generation)
            return
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[Piece | EngineError | BadRequest | None] = asyncio.Queue()
        stop = threading.Event()

        def put(piece: Piece | EngineError | BadRequest | None) -> None:
            loop.call_soon_threadsafe(pieces.put_nowait, piece)

        running = loop.run_in_executor(self._thread, self._generate, generation, put, stop)
        try:
            while (piece := await pieces.get()) is not None:
                if not isinstance(piece, Piece):
                    raise piece
                yield piece
            # What the thread failed with, if it did, is raised here.
            await running
        finally:
            stop.set()
            running.cancel()

    async def close(self) -> None:
        """Stop what runs. A prefill that is under way cannot be stopped."""
        self._closing.set()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _read(self, read: CanvasRead) -> list[list[Row]]:
        return [self._draw(read, draw) for draw in range(read.samples)]

    def _draw(self, read: CanvasRead, draw: int) -> list[Row]:
        emulation = emulate(read, draw, self._codec.eos)
        try:
            wanted = next(emulation)
            while True:
                wanted = emulation.send(self._next_token(wanted))
        except StopIteration as finished:
            rows: list[Row] = finished.value
            return rows

    def _next_token(self, wanted: NextToken) -> dict[int, float]:
        lifted = [token for token in wanted.asked if self._is_whole(token)] or [self._codec.eos]
        request: dict[str, Any] = {
            "prompt": wanted.prefix,
            "max_tokens": 1,
            "cache_prompt": True,
            "logit_bias": [[token, _BIAS] for token in lifted],
        }
        entry = self._first_entry(
            request | {"temperature": 0, "logprobs": max(wanted.top, _REPORTED if wanted.asked else 1)}
        )
        reported = {top["id"]: float(top["logprob"]) for top in entry["top_logprobs"]}
        top = dict(list(reported.items())[: wanted.top])
        reported[entry["id"]] = float(entry["logprob"])
        if any(token not in reported for token in wanted.asked):
            relative = self._first_entry(
                request
                | {"temperature": 1, "samplers": ["temperature"], "post_sampling_probs": True}
                | {"logprobs": len(lifted)}
            )
            shares = {share["id"]: float(share["prob"]) for share in relative["top_probs"]}
            anchor = float(entry["logprob"]) - _log(shares[entry["id"]])
            missing = (token for token in wanted.asked if token not in reported)
            reported |= {token: max(anchor + _log(shares.get(token, 0.0)), FLOOR) for token in missing}
        return top | {token: reported[token] for token in wanted.asked}

    def _is_whole(self, token: int) -> bool:
        """Whether a token is whole characters, so that llama.cpp reports it when it is sampled."""
        return "\ufffd" not in self._codec.token_text(token)

    def _first_entry(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = self._server.handle_completions(request)
        if "error" in answer:
            raise EngineError(f"llama.cpp: {answer['error']['message']}")
        entry: dict[str, Any] = answer["choices"][0]["logprobs"]["content"][0]
        return entry

    def _one_token(self, generation: Generation) -> Piece:
        logprobs = self._next_token(
            NextToken(list(generation.prompt.ids), generation.asked, generation.top or 1)
        )
        token = best(logprobs)
        return Piece(self._codec.token_text(token), [Row(token, logprobs)], "length")

    def _generate(
        self,
        generation: Generation,
        put: Callable[[Piece | EngineError | BadRequest | None], None],
        stop: threading.Event,
    ) -> None:
        enforced = None if generation.schema is None else _Enforced()

        def receive(chunk: dict[str, Any]) -> bool:
            """Called for each token; true ends the generation."""
            if "error" in chunk:
                put(BadRequest(f"llama.cpp: {chunk['error']['message']}"))
                return True
            choice = chunk["choices"][0]
            if enforced and enforced.violated(choice["text"], choice["finish_reason"]):
                put(BadRequest("llama.cpp cannot enforce this schema", "structured_outputs.json"))
                return True
            rows = _rows(choice["logprobs"], generation.top or 0)
            if any(row.token in generation.stop_ids for row in rows):
                put(Piece("", [], "stop"))
                return True
            if rows or choice["text"] or choice["finish_reason"]:
                put(Piece(choice["text"], rows, choice["finish_reason"]))
            return stop.is_set() or self._closing.is_set()

        try:
            if not stop.is_set():
                self._server.handle_completions(_request(generation), receive)
        finally:
            put(None)


def _load(model: Path, context: int) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_ctx = context
    params.n_parallel = 1
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    params.n_batch = params.n_ubatch = _BATCH
    params.cpuparams.n_threads = _THREADS
    params.cpuparams_batch.n_threads = _PREFILL_THREADS
    params.verbosity = -1
    params.warmup = False
    params.ui = False
    return xllamacpp.Server(params)


def _request(generation: Generation) -> dict[str, Any]:
    sampling = {_SAMPLING.get(name, name): value for name, value in generation.sampling.items()}
    request: dict[str, Any] = sampling | {
        "prompt": list(generation.prompt.ids),
        "max_tokens": generation.max_tokens,
        "stop": list(generation.stop),
        "stream": True,
        # At least 1, for the ids of the tokens are nowhere else.
        "logprobs": max(generation.top or 0, 1),
    }
    if generation.schema is not None:
        # Without white space between its parts: a small model loops in it.
        request["json_schema"] = generation.schema | {"x-guidance": {"whitespace_flexible": False}}
    return request


class _Enforced:
    """Notices that llama.cpp ignored a schema, which it does in silence when it cannot compile it."""

    def __init__(self) -> None:
        self._text = ""

    def violated(self, text: str, finish: str | None) -> bool:
        """Whether what was written so far is no JSON."""
        self._text += text
        if self._text and self._text[0] not in _JSON_STARTS:
            return True
        if finish != "stop":
            return False
        try:
            orjson.loads(self._text)
        except orjson.JSONDecodeError:
            return True
        return False


def _rows(logprobs: dict[str, Any] | None, top: int) -> list[Row]:
    rows = []
    for entry in (logprobs or {}).get("content", []):
        likeliest = {other["id"]: float(other["logprob"]) for other in entry["top_logprobs"][:top]}
        rows.append(Row(entry["id"], {entry["id"]: float(entry["logprob"])} | likeliest))
    return rows


def _log(share: float) -> float:
    return math.log(share) if share > 0 else FLOOR
