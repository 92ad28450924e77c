"""The runner: a worker's share of a decision, from a task's ids to the next wave or the answer."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from time import time
from weakref import WeakValueDictionary

import structlog

from planner.answers import Answers
from planner.audit import audit, heading
from planner.dialects import DIALECTS
from planner.dialects.dialect import Timing
from planner.errors import Invalid
from planner.json_numbers import exact_json
from planner.reads import AnyRead, Failure, Read, Result, Rows, Wave
from planner.span_parts import decoded
from planner.vocabulary import Vocabulary
from planner.waves import next_wave
from workers.dispatch import Dispatcher, PublishError, Ready, shard_of
from workers.failpoints import reach
from workers.jobs import rfc3339
from workers.metrics import WorkerMetrics
from workers.planning import PlanCache, off_loop_if_long
from workers.pool.draws import MOST_DRAWS, in_draws
from workers.pool.reading import Demand, Reader
from workers.settings import Settings
from workers.store.audits import Audits
from workers.store.decisions import Decisions, Snapshot
from workers.store.leases import Leases
from workers.store.outcome import CANCELED, EXPIRED, Outcome, failed
from workers.store.store import StoreError
from workers.tracing import Tracer

PIECE = 256
"""Reads of a shard whose results are kept together."""

log = structlog.get_logger()


class Stopped(Exception):
    """The reads of a decision were stopped: it was canceled, its deadline passed, or this worker goes.

    `outcome` is how it ended, None for one that goes on elsewhere.
    """

    def __init__(self, snapshot: Snapshot, outcome: Outcome | None) -> None:
        super().__init__(outcome.status if outcome else "handed back")
        self.snapshot = snapshot
        self.outcome = outcome


class Runner:
    """Runs waves on the worker's event loop: reads, keeps their results, and advances the plan."""

    def __init__(
        self,
        decisions: Decisions,
        audits: Audits,
        leases: Leases,
        reader: Reader,
        dispatcher: Dispatcher,
        vocabulary: Vocabulary,
        settings: Settings,
        metrics: WorkerMetrics,
        tracer: Tracer,
    ) -> None:
        self._metrics = metrics
        self._tracer = tracer
        self._decisions = decisions
        self._audits = audits
        self._leases = leases
        self._reader = reader
        self._dispatcher = dispatcher
        self._plans = PlanCache(vocabulary)
        self._running: Counter[str] = Counter()
        self._unwanted: set[str] = set()
        self._leaving = False
        self._reading: defaultdict[str, set[asyncio.Future[dict[str, Result]]]] = defaultdict(set)
        self._shards: dict[tuple[str, int, int], asyncio.Future[int]] = {}
        self._shares: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._settings = settings
        self._room = asyncio.Semaphore(settings.reads_in_flight)

    async def run(self, batch: Sequence[Ready]) -> None:
        """Run the waves of a message side by side. One decision's fault is not its neighbours'."""
        await asyncio.gather(*(self._run_one(id, number) for id, number in batch))

    async def shard(self, id: str, number: int, shard: int, shards: int) -> int:
        """Run one shard of a wave and keep its results; how many reads it held.

        A shard that is delivered again while it runs here waits for the one that runs. Results are kept
        piece by piece, so that a shard that starts again elsewhere goes on where this one got to.
        """
        key = (id, number, shard)
        if key not in self._shards:
            self._shards[key] = asyncio.ensure_future(self._run_shard(id, number, shard, shards))
            self._shards[key].add_done_callback(lambda _: self._shards.pop(key))
        return await asyncio.shield(self._shards[key])

    async def _run_shard(self, id: str, number: int, shard: int, shards: int) -> int:
        reads: list[AnyRead] = []
        async with self._answerable(id, "shard", number, alone=False):
            snapshot = await self._decisions.load(id)
            if snapshot is not None and snapshot.number == number:
                _require_wanted(snapshot)
                if snapshot.started is None:
                    await self._decisions.start(id)
                reach("claimed")
                mine = shard_of(snapshot.wave.all, shard, shards)
                reads = [read for read in mine if read.id not in snapshot.results]
                for start in range(0, len(reads), PIECE):
                    piece = reads[start : start + PIECE]
                    results = await self._read_all(snapshot, piece)
                    reach("read")
                    if not await self._decisions.put_results(id, results):
                        break
                    reach("kept")
        return len(reads)

    async def advance(self, id: str, number: int) -> None:
        """Advance a plan whose shards have all run. What they lost is asked for again."""
        async with self._answerable(id, "advance", number):
            reach("chord-body")
            snapshot = await self._decisions.load(id)
            if snapshot is not None and snapshot.number == number:
                _require_wanted(snapshot)
                await self._advance(snapshot, {})

    async def renew(self) -> None:
        """Renew the leases of what runs here, and stop what was canceled unheard. Raises StoreError."""
        await self._leases.renew(self._running)
        for id in await self._decisions.canceled(list(self._running)):
            self.cancel(id)

    def cancel(self, id: str) -> None:
        """Stop the reads of a decision that is worked on here: at once, also those at an engine, and those
        that were about to begin.
        """
        if id in self._running:
            self._unwanted.add(id)
        for reading in self._reading.get(id, ()):
            reading.cancel()

    def hand_back(self) -> None:
        """Stop what runs here, so that it goes on elsewhere: this worker has to go."""
        self._leaving = True
        for readings in self._reading.values():
            for reading in readings:
                reading.cancel()

    async def _run_one(self, id: str, number: int) -> None:
        async with self._answerable(id, "wave", number):
            snapshot = await self._decisions.claim(id, number)
            if snapshot is None:
                return
            reach("claimed")
            _require_wanted(snapshot)
            reads = [read for read in snapshot.wave.all if read.id not in snapshot.results]
            results = await self._read_all(snapshot, reads)
            reach("read")
            await self._advance(snapshot, results)

    @asynccontextmanager
    async def _answerable(
        self, id: str, span: str, number: int, *, alone: bool = True
    ) -> AsyncIterator[None]:
        """Hold a decision's lease while it is worked on, end it when it is stopped, and answer for
        faults of ours.

        A fault ends the decision with a failure that says so: it must not wait for ever. A shard does not
        run `alone`: a canceled decision ends when the last of its shards has stopped, in the chord's body.
        """
        self._running[id] += 1
        try:
            with self._tracer.within(span, id, wave=number):
                yield
        except Stopped as stop:
            if stop.outcome is None:
                # Of a shard, the chord's body asks again for what it did not read.
                if alone:
                    await self._hand_back(stop.snapshot)
            elif alone or stop.outcome is EXPIRED:
                await self._finish(stop.snapshot, stop.outcome, stop.snapshot.results)
        except (StoreError, PublishError):
            raise
        except Exception as error:
            log.exception("decision failed by a fault of Canvass", decision=id)
            await self._decisions.finish(id, failed(Failure("internal", f"Canvass failed: {error!r}")))
        finally:
            self._running[id] -= 1
            if not self._running[id]:
                del self._running[id]
                self._unwanted.discard(id)

    async def _read_all(self, snapshot: Snapshot, reads: Sequence[AnyRead]) -> dict[str, Result]:
        """The results of some reads. Raises Stopped once they have stopped, when they had to."""
        if snapshot.id in self._unwanted or self._leaving:
            raise self._stopped(snapshot)
        reading = asyncio.ensure_future(self._gather(snapshot, reads))
        self._reading[snapshot.id].add(reading)
        try:
            async with asyncio.timeout(snapshot.deadline - time()):
                return await reading
        except TimeoutError as error:
            raise Stopped(snapshot, EXPIRED) from error
        except asyncio.CancelledError as error:
            # This task's own cancellation is passed on; that of the reads alone was asked for.
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise self._stopped(snapshot) from error
        finally:
            self._reading[snapshot.id].discard(reading)
            if not self._reading[snapshot.id]:
                del self._reading[snapshot.id]

    def _stopped(self, snapshot: Snapshot) -> Stopped:
        return Stopped(snapshot, CANCELED if snapshot.id in self._unwanted else None)

    async def _hand_back(self, snapshot: Snapshot) -> None:
        log.info("decision handed back", decision=snapshot.id)
        self._metrics.hand_backs.inc()
        await self._leases.release(snapshot.id)
        await self._dispatcher.publish_again(snapshot.id, snapshot.number, snapshot.lane)

    async def _gather(self, snapshot: Snapshot, reads: Sequence[AnyRead]) -> dict[str, Result]:
        """The results of some reads, as many at a time as one decision may have under way here."""
        most = self._settings.decision_reads_in_flight
        decision = snapshot.decision
        demand = Demand(decision.model, snapshot.deadline, decision.salt, snapshot.patient)
        share = self._shares.setdefault(snapshot.id, asyncio.Semaphore(most))
        groups = in_draws(reads, MOST_DRAWS if self._settings.engine_samples else 1)
        tasks = [asyncio.ensure_future(self._read(snapshot, group, demand, share)) for group in groups]
        try:
            found = await asyncio.gather(*tasks)
        except Exception:
            # A fault of one ends the decision: the others would read for nobody.
            for task in tasks:
                task.cancel()
            raise
        except asyncio.CancelledError:
            if self._leaving:
                back = [
                    (group, task.result()) for group, task in zip(groups, tasks, strict=True) if _came(task)
                ]
                await self._decisions.put_results(snapshot.id, _by_read(back))
            raise
        return _by_read(zip(groups, found, strict=True))

    async def _read(
        self, snapshot: Snapshot, reads: Sequence[AnyRead], demand: Demand, share: asyncio.Semaphore
    ) -> Sequence[Result]:
        """The results of a read, or of draws of one that may go as one request."""
        async with share, self._room:
            if len(reads) > 1:
                return await self._reader.draws(reads, demand)
            result = await self._reader.read(reads[0], demand)
        read = reads[0]
        if isinstance(result, Rows) and isinstance(read, Read) and read.kind in ("span", "list"):
            return [await asyncio.to_thread(self._decoded, snapshot, read, result)]
        return [result]

    def _decoded(self, snapshot: Snapshot, read: Read, rows: Rows) -> Result:
        return decoded(self._plans.plan(snapshot.id, snapshot.decision), read, rows)

    async def _advance(self, snapshot: Snapshot, results: Mapping[str, Result]) -> None:
        outcome = await self._plan_on(snapshot, {**snapshot.results, **results})
        if isinstance(outcome, Wave):
            if await self._decisions.advance(snapshot, outcome, results):
                reach("advanced")
                await self._dispatcher.publish(snapshot.id, snapshot.number + 1, outcome, snapshot.lane)
                reach("published")
        elif isinstance(outcome, Failure):
            await self._finish(snapshot, failed(outcome), {**snapshot.results, **results})
        else:
            total_ms = 1000 * (time() - snapshot.created)
            timing = Timing(snapshot.queued_ms, total_ms, snapshot.created, snapshot.id)
            body = await self._rendered(snapshot, outcome, timing)
            reach("finishing")
            done = Outcome("succeeded", body)
            await self._finish(snapshot, done, {**snapshot.results, **results})

    async def _rendered(self, snapshot: Snapshot, answers: Answers, timing: Timing) -> bytes:
        decision = snapshot.decision
        render = DIALECTS[decision.door].render
        return await off_loop_if_long(
            decision, snapshot.size, lambda: exact_json(render(decision, answers, timing))
        )

    async def _finish(self, snapshot: Snapshot, outcome: Outcome, results: Mapping[str, Result]) -> None:
        """End a decision. Its audit is kept first, so that it is there when the end is told."""
        if snapshot.decision.options.audit:
            lines = await asyncio.to_thread(self._audit, snapshot, outcome, results)
            await self._audits.keep(snapshot.id, lines)
        await self._decisions.finish(snapshot.id, outcome)

    def _audit(self, snapshot: Snapshot, outcome: Outcome, results: Mapping[str, Result]) -> bytes:
        decision = snapshot.decision
        ended = {"id": snapshot.id, "status": outcome.status, "created_at": rfc3339(snapshot.created)}
        head = heading(decision) | ended | {"ended_at": rfc3339(time())}
        lines = [head, *audit(self._plans.plan(snapshot.id, decision), results)]
        return b"\n".join(map(exact_json, lines))

    async def _plan_on(self, snapshot: Snapshot, results: Mapping[str, Result]) -> Wave | Answers | Failure:
        def plan_on() -> Wave | Answers | Failure:
            try:
                return next_wave(self._plans.plan(snapshot.id, snapshot.decision), results)
            except Invalid as error:
                return Failure(error.kind, error.message)

        with self._tracer.span("plan"), self._metrics.plan_seconds.time():
            return await off_loop_if_long(snapshot.decision, snapshot.size, plan_on)


def _require_wanted(snapshot: Snapshot) -> None:
    """Raise Stopped for a decision that is not to be read any more."""
    if snapshot.canceling:
        raise Stopped(snapshot, CANCELED)
    if snapshot.deadline <= time():
        raise Stopped(snapshot, EXPIRED)


def _came(task: asyncio.Future[Sequence[Result]]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _by_read(found: Iterable[tuple[Sequence[AnyRead], Sequence[Result]]]) -> dict[str, Result]:
    return {read.id: result for reads, results in found for read, result in zip(reads, results, strict=True)}
