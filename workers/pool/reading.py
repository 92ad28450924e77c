"""Reading: one read, from engine to engine, until one of them gives its result.

Reads are idempotent, so they may be sent twice. An engine that fails a read has it taken elsewhere at
once; when all were tried, they are tried again after a pause with jitter, until the deadline. 503 means
"elsewhere, now" and is no failure. A read that takes longer than most is asked of a second engine too.
"""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from time import time

import structlog

from planner.reads import AnyRead, Failure, Generation, Ids, Result, Rows, Tried, Written
from workers.metrics import ReadMetrics
from workers.pool.engine import Engine
from workers.pool.hedging import Hedging
from workers.pool.pool import Pool
from workers.pool.vllm import (
    Broken,
    Busy,
    Call,
    EngineError,
    Failed,
    NoCanvas,
    Refused,
    TimedOut,
    Unreachable,
    VllmClient,
)
from workers.pool.warming import LONG_TOKENS
from workers.routing.policy import Policy, Prefix
from workers.store.images import Images
from workers.tracing import Tracer

log = structlog.get_logger()

HEAD_TOKENS = 1024
"""Tokens of a prompt's head by which it is told apart: a conversation that grows stays where it was."""

PATIENCE_STEP_S = 0.4
"""Seconds between looks for an engine while none is in."""

BACKOFF_S = 0.05
BACKOFF_MAX_S = 1.0

CLOSE_S = 0.05
"""Seconds before a decision's deadline from which a time-out counts as that: timers fire a little early."""

MOST_FAILURES = 20
"""Failed requests after which a read, and not the engines, is at fault."""

STALL_S = 1.5
STALL_TIMES_SLOW = 3.0
STALL_TOKENS_PER_S = 300.0
"""A request is not stalled before `STALL_S`, and three times what most reads of its kind take, and the time
in which a slow engine computes its prompt."""


SLOW_TOKENS_PER_S = 10.0
"""Tokens that a slow engine writes in a second."""

CHARACTERS_A_TOKEN = 4
HEAD_CHARACTERS = CHARACTERS_A_TOKEN * HEAD_TOKENS
"""About what a token is in a text that another tokenizer reads."""

IMAGE_TOKENS = 256
"""About what an image is to a model, in tokens."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a read is read under: the model, the deadline (seconds since 1970), its prompt cache's salt.

    `patient`: nobody waits for it on the line, so it may wait for an engine until its deadline.
    """

    model: str
    deadline: float
    salt: str = ""
    patient: bool = False


Told = Rows | Written
"""What an engine gives for a read."""

_ONE_BY_ONE = Failure("no_draws", "no engine that is in makes several draws in one request")
"""Never told: the draws are read one by one instead."""


class WentOut(EngineError):
    """The engine went out before the read was sent to it."""


_OUTCOMES: dict[type[EngineError], str] = {
    Busy: "busy",
    Unreachable: "unreachable",
    Failed: "unreachable",
    TimedOut: "timed_out",
    Broken: "broken",
    NoCanvas: "broken",
    Refused: "refused",
    WentOut: "not_sent",
}
"""What came of a request, in metrics."""

_READS = "take the read"
_DOES = {"object": "write under a grammar"}
"""What an engine is asked to do, by the kind of read."""


@dataclass(slots=True)
class _Story:
    """What came of a read so far: requests that failed, engines to leave out of this round, and those that
    answered it with a 5xx.
    """

    tried: list[Tried] = field(default_factory=list)
    failures: int = 0
    out: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)


class Reader:
    """Gets reads read. One per worker process; belongs to its event loop."""

    def __init__(
        self,
        pool: Pool,
        client: VllmClient,
        policy: Policy,
        *,
        read_timeout_s: float,
        patience_s: float,
        constrained: bool,
        images: Images,
        metrics: ReadMetrics,
        tracer: Tracer,
    ) -> None:
        self._metrics = metrics
        self._tracer = tracer
        self._pool = pool
        self._client = client
        self._images = images
        self._policy = policy
        self._hedging = Hedging()
        self._read_timeout_s = read_timeout_s
        self._patience_s = patience_s
        self._constrained = constrained
        self._last_head: tuple[Ids, str, int] = ((), "", 0)

    async def read(self, read: AnyRead, demand: Demand) -> Result:
        """What an engine gives for a read, whichever does, or the failure when none does in time."""
        with self._tracer.span("read", read=read.id, kind=read.kind):
            result = await self._read((read,), demand)
        return result if isinstance(result, Failure) else result[0]

    async def draws(self, reads: Sequence[AnyRead], demand: Demand) -> list[Result]:
        """The results of reads that differ in their seed alone; of one request, where an engine can."""
        able = any(engine.can.engine_samples >= len(reads) for engine in self._pool.serving(demand.model))
        if len(reads) == 1 or not able:
            return list(await asyncio.gather(*(self.read(read, demand) for read in reads)))
        with self._tracer.span("read", read=reads[0].id, kind=reads[0].kind, draws=len(reads)):
            result = await self._read(reads, demand)
        if result is _ONE_BY_ONE:
            return list(await asyncio.gather(*(self.read(read, demand) for read in reads)))
        return [result] * len(reads) if isinstance(result, Failure) else list(result)

    async def _read(self, reads: Sequence[AnyRead], demand: Demand) -> list[Told] | Failure:
        """The rows of a read, or of the draws of one."""
        story, prefix = _Story(), self._prefix(reads[0], demand)
        patient_until = demand.deadline if demand.patient else time() + self._patience_s
        pause = BACKOFF_S
        while (left := demand.deadline - time()) > 0:
            serving = self._serving(reads, demand.model)
            able = [engine for engine in serving if engine.url not in story.out] if story.out else serving
            if not serving and len(reads) > 1:
                return _ONE_BY_ONE
            if not serving:
                await self._pool.probe_all()
                if not self._serving(reads, demand.model):
                    if time() >= patient_until:
                        return Failure(
                            "no_engine",
                            f"no engine can {_DOES.get(reads[0].kind, _READS)}: {self._reasons(story)}",
                        )
                    await asyncio.sleep(min(left, PATIENCE_STEP_S * random.uniform(0.5, 1)))
                continue
            if not able:
                story.out.clear()
                await asyncio.sleep(min(left, pause * random.uniform(0.5, 1)))
                pause = min(2 * pause, BACKOFF_MAX_S)
                continue
            result = await self._race(able, reads, demand, prefix, story)
            if result is not None:
                return result
            if story.failures >= MOST_FAILURES:
                return Failure("no_engine", f"every engine failed the read: {self._reasons(story)}")
        return Failure("expired", "the deadline passed before an engine answered")

    def _serving(self, reads: Sequence[AnyRead], model: str) -> list[Engine]:
        """The engines that are in and can take a read, or the draws of one in one request."""
        if reads[0].kind == "object":
            return self._pool.generating(model)
        return [
            engine
            for engine in self._pool.serving(model)
            if len(reads) == 1 or engine.can.engine_samples >= len(reads)
        ]

    async def _race(
        self, able: Sequence[Engine], reads: Sequence[AnyRead], demand: Demand, prefix: Prefix, story: _Story
    ) -> list[Told] | Failure | None:
        """Ask one engine and, when it is slow, a second. None when neither gave a result."""
        engine = self._policy(able, prefix)
        second: Engine | None = None
        if story.failures:
            self._metrics.retries.inc()
        racing = {self._send(engine, reads, demand, prefix): (engine, time())}
        others = [other for other in able if other is not engine]
        delay_s = self._hedging.delay_s(reads[0].kind) if others else None
        try:
            while racing:
                done, _ = await asyncio.wait(racing, timeout=delay_s, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    sent = [engine.under_way.get(task) for task, (engine, _) in racing.items()]
                    if None in sent:
                        # It waits for its turn; slow is only an engine that has the read.
                        continue
                    delay_s = None
                    if self._hedging.spend():
                        second = self._policy(others, prefix)
                        self._metrics.hedges_sent.inc()
                        racing[self._send(second, reads, demand, prefix)] = (second, time())
                for task in done:
                    engine, since = racing.pop(task)
                    result = self._settled(task, engine, 1000 * (time() - since), reads[0], demand, story)
                    if result is not None:
                        if engine is second:
                            self._metrics.hedges_won.inc()
                        return self._told(result, racing, story)
            return None
        finally:
            for task, (engine, _) in racing.items():
                task.cancel()
                self._metrics.requests(engine.url, "dropped").inc()
            if racing:
                # Whatever came of those that were too late is of no interest any more.
                await asyncio.gather(*racing, return_exceptions=True)

    def _send(
        self, engine: Engine, reads: Sequence[AnyRead], demand: Demand, prefix: Prefix
    ) -> asyncio.Task[list[Told]]:
        return asyncio.ensure_future(self._request(engine, reads, demand, prefix))

    async def _request(
        self, engine: Engine, reads: Sequence[AnyRead], demand: Demand, prefix: Prefix
    ) -> list[Told]:
        """A read on one engine, once there is room. One whose deadline passed meanwhile is not sent."""
        engine.in_flight += 1
        try:
            if prefix.tokens < LONG_TOKENS:
                return await self._once_there_is_room(engine, reads, demand, prefix)
            async with self._pool.warming.turn(engine.url, prefix):
                return await self._once_there_is_room(engine, reads, demand, prefix)
        finally:
            engine.in_flight -= 1

    async def _once_there_is_room(
        self, engine: Engine, reads: Sequence[AnyRead], demand: Demand, prefix: Prefix
    ) -> list[Told]:
        async with engine.room:
            timeout_s = min(demand.deadline - time(), self._read_timeout_s + _writing_s(reads[0]))
            if timeout_s <= 0:
                raise TimedOut(f"{engine.url} had no room before the deadline")
            if not engine.takes_reads:
                raise WentOut(f"{engine.url} went out before the read was sent")
            slow_s = self._hedging.slow_s(reads[0].kind) or 0.0
            patience_s = STALL_S + STALL_TIMES_SLOW * slow_s + _work_s(reads[0], prefix)
            with self._tracer.span("engine", engine=engine.url), self._pool.under_way(engine, patience_s):
                told = await self._asked(engine, reads, demand, timeout_s)
            served = told[0].served
            self._hedging.took(reads[0].kind, served.ms / 1000)
            self._metrics.ok(engine.url, served.ms / 1000, served.prompt_tokens, served.cached_tokens)
            self._pool.succeeded(engine)
            return told

    async def _asked(
        self, engine: Engine, reads: Sequence[AnyRead], demand: Demand, timeout_s: float
    ) -> list[Told]:
        """One request to an engine, with the images that it shows."""
        read = reads[0]
        images = await self._images_of(read) if read.message else {}
        call = Call(
            engine.model.name,
            engine.can.least_width,
            timeout_s,
            demand.salt,
            constrained=self._constrained and engine.can.constrained and read.kind == "label",
            samples=len(reads) if len(reads) > 1 else 0,
        )
        if isinstance(read, Generation):
            return [await self._client.written(engine.url, read, call, images)]
        return [*await self._client.draws(engine.url, read, call, images)]

    async def _images_of(self, read: AnyRead) -> dict[str, bytes]:
        digests = dict.fromkeys(read.message.images if read.message else ())
        found = {digest: await self._images.get(digest) for digest in digests}
        gone = [digest for digest, content in found.items() if content is None]
        if gone:
            raise Refused(f"image {gone[0]} is no longer kept")
        return {digest: content for digest, content in found.items() if content is not None}

    def _settled(
        self,
        task: asyncio.Task[list[Told]],
        engine: Engine,
        ms: float,
        read: AnyRead,
        demand: Demand,
        story: _Story,
    ) -> list[Told] | Failure | None:
        """The result of a request that ended, or None when the read has to go elsewhere."""
        if task.cancelled():
            self._metrics.requests(engine.url, "ejected").inc()
            story.tried.append(Tried(engine.url, ms, engine.reason))
            story.failures += 1
            story.out.add(engine.url)
            return None
        error = task.exception()
        if error is None:
            return task.result()
        if not isinstance(error, EngineError):
            raise error
        self._metrics.requests(engine.url, _OUTCOMES[type(error)]).inc()
        if isinstance(error, Refused):
            refused = "grammar_refused" if read.kind == "object" else "refused"
            log.info("read refused", read=read.id, engine=engine.url, reason=str(error))
            return Failure("max_tokens_exceeded" if error.too_long else refused, error.told)
        story.tried.append(Tried(engine.url, ms, str(error)))
        story.out.add(engine.url)
        if not isinstance(error, Busy | WentOut):
            story.failures += 1
            # A read that ran into its own deadline says nothing about the engine.
            if not isinstance(error, TimedOut) or demand.deadline - time() >= CLOSE_S:
                # Of a read that no engine bears, one failure counts: it must not put them out for the others.
                self._pool.failed(engine, error, counts=engine.url not in story.failed)
            if isinstance(error, Failed):
                story.failed.add(engine.url)
        return None

    def _told(
        self,
        result: list[Told] | Failure,
        racing: dict[asyncio.Task[list[Told]], tuple[Engine, float]],
        story: _Story,
    ) -> list[Told] | Failure:
        """A result with the story of its requests."""
        if isinstance(result, Failure) or not (racing or story.tried):
            return result
        slower = [
            Tried(engine.url, 1000 * (time() - since), "another engine was sooner")
            for engine, since in racing.values()
        ]
        first = result[0]
        served = replace(first.served, tried=(*story.tried, *slower))
        return [replace(first, served=served), *result[1:]]

    def _prefix(self, read: AnyRead, demand: Demand) -> Prefix:
        """What caches know a prompt by. Reads of one wave share their head, so the last is remembered."""
        head, salt, key = self._last_head
        if head is not read.head or salt != demand.salt or read.message:
            known = f"{demand.model} {demand.salt} ".encode() + array("q", read.head[:HEAD_TOKENS]).tobytes()
            if read.message:
                known += "".join(read.message.images).encode() + read.message.text[:HEAD_CHARACTERS].encode()
            key = int.from_bytes(blake2b(known, digest_size=8).digest())
            self._last_head = (read.head, demand.salt, key)
        tokens = len(read.head) + len(read.tail)
        if read.message:
            tokens = IMAGE_TOKENS * len(read.message.images) + len(read.message.text) // CHARACTERS_A_TOKEN
        return Prefix(key, tokens)

    def _reasons(self, story: _Story) -> str:
        """Why no engine gave a result: what each did to this read last, or why it is out."""
        last = {tried.engine: tried.why for tried in story.tried}
        told = "; ".join(last.values())
        return told or self._pool.reasons()


def _work_s(read: AnyRead, prefix: Prefix) -> float:
    """Seconds that a slow engine works on a prompt, and on what it is to write."""
    return prefix.tokens / STALL_TOKENS_PER_S + _writing_s(read)


def _writing_s(read: AnyRead) -> float:
    """Seconds in which a slow engine writes what it is to write."""
    return read.most_tokens / SLOW_TOKENS_PER_S if isinstance(read, Generation) else 0.0
