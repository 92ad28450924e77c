"""The pool: which engines there are, which of them are in, and why the others are not.

An engine joins after a canary: a small canvas read must come back with a row for every position and
the asked ids. A causal server ignores the canvas fields and answers 200 with prose, so a status
alone proves nothing; one that proves that it keeps to a grammar joins to generate, and gets no reads. What
else an engine can do is learned by further canaries once it is in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import structlog

from workers.pool.canary import Canary
from workers.pool.engine import Capabilities, Engine, Started
from workers.pool.vllm import (
    Broken,
    EngineError,
    Failed,
    NoCanvas,
    Refused,
    TimedOut,
    Unreachable,
    VllmClient,
)
from workers.pool.warming import Warming

HEALTH_EVERY_S = 2.0
PROBE_TIMEOUT_S = 5.0
LEARN_TIMEOUT_S = 20.0
LEARN_EVERY_S = 3.0

log = structlog.get_logger()


class Pool:
    """The engines of one worker process. Belongs to the worker's event loop.

    `said` tells per engine what its canaries need not find out. `changed` is set whenever an engine comes
    in or goes out.
    """

    def __init__(
        self,
        urls: Sequence[str],
        client: VllmClient,
        canary: Canary,
        *,
        engine_in_flight: int,
        said: Mapping[str, dict[str, Any]],
    ) -> None:
        self.changed = asyncio.Event()
        self.warming = Warming()
        self._client = client
        self._canary = canary
        self._in_flight = engine_in_flight
        self._said = said
        self._configured = tuple(urls)
        self._probing: dict[str, asyncio.Task[None]] = {}
        self._learning: dict[str, asyncio.Task[None]] = {}
        self.engines = [self._engine(url) for url in urls]

    def adopt(self, states: Mapping[str, str], said: Mapping[str, dict[str, Any]]) -> None:
        """Take up what was said about engines at run time: `active`, `draining` or `removed`, by URL.

        One that was removed takes no reads any more, and is forgotten once its last one is back.
        """
        wanted = dict.fromkeys(self._configured, "active") | dict(states)
        known = {engine.url: engine for engine in self.engines}
        for url, state in wanted.items():
            if url not in known and state != "removed":
                known[url] = self._engine(url)
            if url in known:
                engine, draining = known[url], state != "active"
                engine.said = {**self._said.get(url, {}), **said.get(url, {})}
                if engine.draining != draining:
                    engine.draining = draining
                    self.changed.set()
        gone = {url for url in known if wanted.get(url, "removed") == "removed" and not known[url].in_flight}
        if gone or len(known) != len(self.engines):
            self.changed.set()
        self.engines = [engine for url, engine in known.items() if url not in gone]

    @property
    def is_in(self) -> bool:
        """Whether any engine is in that reads canvases."""
        return any(engine.joined and engine.can.canvas for engine in self.engines)

    def serving(self, model: str) -> list[Engine]:
        """The engines that take canvas reads of a model.

        A name that no engine is known to serve is an alias: of the model of the first engine listed.
        """
        reading = [engine for engine in self.engines if engine.can.canvas]
        names = [engine.model.name for engine in reading if engine.model.name]
        name = model if model in names or not names else names[0]
        return [engine for engine in reading if engine.takes_reads and engine.model.name == name]

    def generating(self, model: str) -> list[Engine]:
        """The engines that write under a grammar: those of a model, else those of any other."""
        own = [engine for engine in self.serving(model) if engine.can.generate]
        return own or [engine for engine in self.engines if engine.takes_reads and engine.can.generate]

    async def probe_all(self) -> None:
        """Send a canary to every engine that is out, now."""
        await asyncio.gather(*(self._probe(engine) for engine in self.engines if not engine.joined))

    async def look(self) -> None:
        """See how the engines do: those that are out may come back, those that are in be ill or stalled."""
        now = asyncio.get_running_loop().time()
        due = []
        for engine in self.engines:
            if not engine.joined:
                if engine.breaker.half_open(now):
                    due.append(self._probe(engine))
                continue
            self._eject_if_stalled(engine, now)
            if now - max(engine.last_health, engine.last_read) >= HEALTH_EVERY_S:
                engine.last_health = now
                due.append(self._check(engine))
        await asyncio.gather(*due)

    @contextmanager
    def under_way(self, engine: Engine, patience_s: float) -> Iterator[None]:
        """Note the request that this task sends; it should be back within `patience_s` seconds."""
        task, now = asyncio.current_task(), asyncio.get_running_loop().time()
        assert task is not None, "requests are sent by tasks"
        engine.under_way[task] = Started(now, now + patience_s)
        try:
            yield
        finally:
            del engine.under_way[task]

    def succeeded(self, engine: Engine) -> None:
        """Note that a read came back from an engine."""
        engine.reads += 1
        engine.last_read = asyncio.get_running_loop().time()
        engine.breaker.succeeded()

    def failed(self, engine: Engine, error: EngineError, *, counts: bool = True) -> None:
        """Note what an engine did to a read: one that lies is out, one that fails again and again too.

        A 5xx that does not count is one more for the same read.
        """
        engine.errors += 1
        now = asyncio.get_running_loop().time()
        if isinstance(error, Broken):
            engine.breaker.open(now)
            self._put_out(engine, str(error))
        elif isinstance(error, Failed) and not counts:
            return
        elif isinstance(error, Unreachable) and engine.breaker.failed(now):
            self._put_out(engine, str(error))

    def reasons(self) -> str:
        """Why each engine that takes no reads does not."""
        told = (f"{engine.url}: {engine.reason or 'draining'}" for engine in self.engines)
        return "; ".join(told) or "there is no engine"

    def _engine(self, url: str) -> Engine:
        return Engine(url, asyncio.Semaphore(self._in_flight), said=self._said.get(url, {}))

    def _put_out(self, engine: Engine, reason: str) -> None:
        if engine.joined:
            log.warning("engine out", engine=engine.url, reason=reason)
            engine.outs += 1
            self.changed.set()
        engine.joined, engine.reason = False, reason
        self.warming.forget(engine.url)

    def _eject_if_stalled(self, engine: Engine, now: float) -> None:
        """Put an engine out that gives nothing back any more, and send its reads elsewhere.

        Only where there is an elsewhere: an engine that is alone may as well go on.
        """
        oldest = min(engine.under_way.values(), key=lambda started: started.at, default=None)
        alike = (
            other
            for other in self.engines
            if other.takes_reads and other.model.name == engine.model.name and other.can == engine.can
        )
        others = any(other is not engine for other in alike)
        if oldest is None or not others or now < oldest.patience_until or engine.last_read > oldest.at:
            return
        engine.breaker.open(now)
        self._put_out(engine, f"stalled: no read came back for {now - oldest.at:.1f} s")
        for task in list(engine.under_way):
            task.cancel()

    async def _check(self, engine: Engine) -> None:
        """Ask an engine for its health. One that gave a read meanwhile is well, however slow to say so."""
        asked = asyncio.get_running_loop().time()
        try:
            await self._client.healthy(engine.url, PROBE_TIMEOUT_S)
        except EngineError as error:
            if engine.last_read < asked:
                # Not to answer at all while reads are under way may be no more than being busy.
                if isinstance(error, TimedOut) and engine.under_way:
                    return
                engine.breaker.open(asyncio.get_running_loop().time())
                self._put_out(engine, str(error))

    async def _probe(self, engine: Engine) -> None:
        """Try to bring an engine in. Callers that come while a probe is under way share it."""
        running = self._probing.get(engine.url)
        if running is None:
            running = self._probing[engine.url] = asyncio.create_task(self._join(engine))
            running.add_done_callback(lambda _: self._probing.pop(engine.url))
        await asyncio.shield(running)

    async def _join(self, engine: Engine) -> None:
        reason = ""
        try:
            engine.model = await self._client.served_model(engine.url, PROBE_TIMEOUT_S)
            engine.can = await self._canary.reads(engine, PROBE_TIMEOUT_S)
        except EngineError as error:
            if not (isinstance(error, NoCanvas | Refused) and await self._writes(engine)):
                self._put_out(engine, str(error))
                return
            engine.can = Capabilities(canvas=False, generate=True).but(engine.said)
            reason = f"joined to generate alone: {error}"
        engine.joined, engine.reason, engine.breaker.in_a_row = True, reason, 0
        self.changed.set()
        least_width = engine.can.least_width
        log.info("engine in", engine=engine.url, model=engine.model.name, least_width=least_width)
        engine.learned = False
        if engine.url not in self._learning:
            learning = self._learning[engine.url] = asyncio.create_task(self._learn(engine))
            learning.add_done_callback(lambda _: self._learning.pop(engine.url))

    async def _writes(self, engine: Engine) -> bool:
        """Whether an engine that reads no canvases writes under a grammar, as far as it says."""
        try:
            return await self._canary.generates(engine, LEARN_TIMEOUT_S)
        except EngineError:
            return False

    async def _learn(self, engine: Engine) -> None:
        """Learn what else an engine can do, while it is in. One that has no time to say is asked again."""
        while engine.joined and not engine.learned:
            try:
                engine.can = await self._canary.learned(engine, LEARN_TIMEOUT_S)
                engine.learned = True
            except EngineError as error:
                log.info("engine not yet known", engine=engine.url, reason=str(error))
                await asyncio.sleep(LEARN_EVERY_S)
        self.changed.set()
