"""The pool: the engines, which of them are in, and where a read goes.

An engine joins after a canary: a small canvas read must come back with a row for every position and
the asked ids. A causal server ignores the canvas fields and answers 200 with prose, so a status
alone proves nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import time
from typing import Any, cast

import structlog

from planner.canvas import WIDTH_STEP
from planner.reads import Failure, Read, Result, Rows
from planner.vocabulary import Vocabulary
from workers.canary import canary_read
from workers.routing import Policy
from workers.vllm import Broken, Busy, EngineError, Refused, ServedModel, TimedOut, Unreachable, VllmClient

HEALTH_EVERY_S = 2.0
PROBE_TIMEOUT_S = 5.0
TRIES = 2
"""Times that one read may fail on one engine before the engine is no longer asked for it."""

PATIENCE_STEP_S = 0.4
"""Seconds between looks for an engine while none can take a read."""

CLOSE_S = 0.05
"""Seconds before a decision's deadline from which a time-out counts as that: timers fire a little early."""

BUSY_BACKOFF_S = 0.05
BUSY_BACKOFF_MAX_S = 1.0

log = structlog.get_logger()


@dataclass(slots=True)
class Engine:
    """One engine as this worker knows it.

    `room` bounds the reads at it, and `in_flight` counts them with those that wait for room.
    `least_width` is the narrowest canvas it takes, in tokens; `reason` why it is out; `last_read` when it
    last gave a read (seconds since 1970).
    """

    url: str
    room: asyncio.Semaphore
    joined: bool = False
    reason: str = "not yet probed"
    model: ServedModel = field(default_factory=lambda: ServedModel(""))
    least_width: int = WIDTH_STEP
    in_flight: int = 0
    last_read: float = 0.0

    def view(self) -> dict[str, Any]:
        """The engine for `GET /v1/engines` and for the other processes."""
        return {
            "url": self.url,
            "joined": self.joined,
            "reason": self.reason,
            "model": self.model.name,
            "context": self.model.context,
            "created": self.model.created,
            "least_width": self.least_width,
            "in_flight": self.in_flight,
        }


class Pool:
    """The engines of one worker process. Belongs to the worker's event loop.

    `changed` is set whenever an engine comes in or goes out.
    """

    def __init__(
        self,
        urls: Sequence[str],
        client: VllmClient,
        vocabulary: Vocabulary,
        policy: Policy,
        *,
        engine_in_flight: int,
        read_timeout_s: float,
        patience_s: float,
    ) -> None:
        self.engines = [Engine(url, asyncio.Semaphore(engine_in_flight)) for url in urls]
        self._client = client
        self._vocabulary = vocabulary
        self._policy = policy
        self._read_timeout_s = read_timeout_s
        self._patience_s = patience_s
        self._probing: dict[str, asyncio.Task[None]] = {}
        self._last_health = 0.0
        self.changed = asyncio.Event()

    async def read(self, read: Read, model: str, deadline: float, salt: str = "") -> Result:
        """A read's rows, from whichever engine gives them, or the failure when none does in time.

        `deadline` is in seconds since 1970, `salt` keeps its prompt's cache apart. An engine that does not
        answer is out until a canary brings it back, and the read goes elsewhere; one that has no room is
        asked again later.
        """
        failures: dict[str, list[str]] = {}
        full: set[str] = set()
        patient_until = time() + self._patience_s
        backoff, attempts = BUSY_BACKOFF_S, 0
        while (left := deadline - time()) > 0:
            joined = await self._joined(model)
            able = [engine for engine in joined if len(failures.get(engine.url, ())) < TRIES]
            candidates = [engine for engine in able if engine.url not in full]
            if not able:
                if time() >= patient_until:
                    return Failure("no_engine", f"no engine can take the read: {self._reasons(failures)}")
                failures = {}
                await asyncio.sleep(min(left, PATIENCE_STEP_S * random.uniform(0.5, 1)))
                continue
            if not candidates:
                await asyncio.sleep(min(left, backoff * random.uniform(0.5, 1)))
                backoff, full = min(2 * backoff, BUSY_BACKOFF_MAX_S), set()
                continue
            engine = cast(Engine, self._policy(candidates, read))
            attempts += 1
            try:
                return await self._read_on(engine, read, deadline, salt, attempts)
            except Busy:
                full.add(engine.url)
            except Refused as error:
                return Failure("max_tokens_exceeded" if error.too_long else "refused", str(error))
            except (Unreachable, Broken) as error:
                if isinstance(error, TimedOut) and deadline - time() < CLOSE_S:
                    # A read that ran into its own deadline says nothing about the engine.
                    break
                failures.setdefault(engine.url, []).append(str(error))
                self._put_out(engine, error)
        return Failure("expired", "the deadline passed before an engine answered")

    async def look(self) -> None:
        """Probe the engines that are out for coming back, and now and then the others for their health."""
        due = time() - self._last_health >= HEALTH_EVERY_S
        self._last_health = time() if due else self._last_health
        await asyncio.gather(
            *(
                self._check(engine) if engine.joined else self._probe(engine)
                for engine in self.engines
                if due or not engine.joined
            )
        )

    def _reasons(self, failures: Mapping[str, Sequence[str]]) -> str:
        """Why each engine cannot take a read: what it did to this one, or why it is out."""
        told = (failures.get(engine.url, [f"{engine.url}: {engine.reason}"])[-1] for engine in self.engines)
        return "; ".join(told)

    async def _read_on(self, engine: Engine, read: Read, deadline: float, salt: str, attempts: int) -> Rows:
        """A read on one engine, once there is room. One whose deadline passed meanwhile is not sent."""
        engine.in_flight += 1
        try:
            async with engine.room:
                timeout_s = min(deadline - time(), self._read_timeout_s)
                if timeout_s <= 0:
                    raise TimedOut(f"{engine.url} had no room before the deadline")
                rows = await self._client.read(
                    engine.url,
                    read,
                    model=engine.model.name,
                    least_width=engine.least_width,
                    timeout_s=timeout_s,
                    salt=salt,
                )
        finally:
            engine.in_flight -= 1
        engine.last_read = time()
        return replace(rows, attempts=attempts, model=engine.model.name)

    async def _joined(self, model: str) -> list[Engine]:
        """The engines in the pool that serve a model; when none is in, each is probed once, now.

        A name that no engine is known to serve is an alias: of the model of the first engine listed.
        """
        joined = self._serving(model)
        if not joined:
            await asyncio.gather(*(self._probe(engine) for engine in self.engines if not engine.joined))
            joined = self._serving(model)
        return joined

    @property
    def is_in(self) -> bool:
        """Whether any engine is in."""
        return any(engine.joined for engine in self.engines)

    def _serving(self, model: str) -> list[Engine]:
        names = [engine.model.name for engine in self.engines if engine.model.name]
        name = model if model in names or not names else names[0]
        return [engine for engine in self.engines if engine.joined and engine.model.name == name]

    def _put_out(self, engine: Engine, error: EngineError) -> None:
        if engine.joined:
            log.warning("engine out", engine=engine.url, reason=str(error))
            self.changed.set()
        engine.joined, engine.reason = False, str(error)

    async def _check(self, engine: Engine) -> None:
        """Ask an engine for its health. One that gave a read lately is well, however slow to say so."""
        if time() - engine.last_read < HEALTH_EVERY_S:
            return
        try:
            await self._client.healthy(engine.url, PROBE_TIMEOUT_S)
        except EngineError as error:
            if time() - engine.last_read >= PROBE_TIMEOUT_S:
                self._put_out(engine, error)

    async def _probe(self, engine: Engine) -> None:
        """Try to bring an engine in. Callers that come while a probe is under way share it."""
        running = self._probing.get(engine.url)
        if running is None:
            running = self._probing[engine.url] = asyncio.create_task(self._canary(engine))
            running.add_done_callback(lambda _: self._probing.pop(engine.url))
        await asyncio.shield(running)

    async def _canary(self, engine: Engine) -> None:
        try:
            engine.model = await self._client.served_model(engine.url, PROBE_TIMEOUT_S)
            full = self._vocabulary.canvas
            await self._canary_read(engine, full)
            try:
                await self._canary_read(engine, WIDTH_STEP)
                engine.least_width = WIDTH_STEP
            except Refused:
                engine.least_width = full
        except EngineError as error:
            self._put_out(engine, error)
            return
        engine.joined, engine.reason = True, ""
        self.changed.set()
        log.info("engine in", engine=engine.url, model=engine.model.name, least_width=engine.least_width)

    async def _canary_read(self, engine: Engine, width: int) -> None:
        await self._client.read(
            engine.url,
            canary_read(self._vocabulary),
            model=engine.model.name,
            least_width=width,
            timeout_s=PROBE_TIMEOUT_S,
        )
