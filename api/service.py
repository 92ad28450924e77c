"""The decision service: what every front door calls, whatever its dialect."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from api.keyring import Keyring
from api.metrics import ApiMetrics
from api.refusals import Refusal, Unavailable, Unsettled, queue_full
from api.settings import ApiSettings
from api.waiting import Waiting
from planner.decision import Decision
from planner.errors import Invalid
from planner.explain import Explained, explain
from planner.plan import make_plan
from planner.reads import Wave
from planner.stages import make_stages
from planner.vocabulary import Vocabulary
from workers.dispatch import Dispatcher, PublishError
from workers.failpoints import reach
from workers.jobs import Fields, job_of, status_of
from workers.planning import off_loop_if_long, planned
from workers.presence import pool_view
from workers.store.backlog import Backlog, backlog_of
from workers.store.decisions import Decisions, Queue
from workers.store.images import Images
from workers.store.names import Names
from workers.store.outcome import Outcome
from workers.store.store import Store, StoreError
from workers.terms import Terms
from workers.tracing import Tracer

NO_IMAGES: Mapping[str, bytes] = {}

WATCH_POOL_EVERY_S = 1.0
WATCH_QUEUE_EVERY_S = 0.5
READY_WITHIN_S = 2.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Accepted:
    """A decision on its way: its id, and its outcome when it came within the wait."""

    id: str
    outcome: Outcome | None


class Service:
    """Accepts decisions and waits for their outcomes.

    `leaving` is set when the process was told to stop: who waits for long is then sent elsewhere.
    """

    def __init__(
        self,
        settings: ApiSettings,
        store: Store,
        decisions: Decisions,
        dispatcher: Dispatcher,
        waiting: Waiting,
        names: Names,
        keyring: Keyring,
        images: Images,
        vocabulary: Vocabulary,
        metrics: ApiMetrics,
        tracer: Tracer,
    ) -> None:
        self.settings = settings
        self.metrics = metrics
        self._tracer = tracer
        self.decisions = decisions
        self.waiting = waiting
        self.names = names
        self.keyring = keyring
        self.images = images
        self._store = store
        self._dispatcher = dispatcher
        self._vocabulary = vocabulary
        self.engines: list[dict[str, Any]] = []
        self._queue = Queue(0, 0.0)
        self.leaving = False

    @property
    def vocabulary(self) -> Vocabulary:
        """What prompts and canvases are written in."""
        return self._vocabulary

    @staticmethod
    def new_id() -> str:
        """An id for a decision: 128 random bits, which are its trace's id too (workers/tracing.py)."""
        return f"dec_{secrets.token_hex(16)}"

    async def decide(
        self,
        id: str,
        decision: Decision,
        size: int,
        terms: Terms,
        wait_s: float,
        images: Mapping[str, bytes] = NO_IMAGES,
    ) -> Accepted:
        """Plan, store and publish a decision under an id, and wait `wait_s` seconds for its outcome.

        It is stored first and published second, so that what was accepted cannot be lost. `size` is
        that of the request's body in bytes, `images` are the decision's by SHA-256 (hex); the wait counts
        from now. Raises Invalid (TooLong among
        them), Refusal, TooManyOpen or Unavailable when the decision was not accepted, Unsettled or
        StoreError when that is not known within the sync limit.
        """
        with self._tracer.root("decision", id, door=decision.door, questions=len(decision.questions)):
            return await self._decide(id, decision, size, terms, wait_s, images)

    async def _decide(
        self,
        id: str,
        decision: Decision,
        size: int,
        terms: Terms,
        wait_s: float,
        images: Mapping[str, bytes],
    ) -> Accepted:
        now = asyncio.get_running_loop().time()
        settled_by = now + self.settings.sync_limit_s
        stages, wave = await self._planned(decision, size, settled_by)
        # Not before: to those who look, a decision that is not stored yet looks like one that is gone.
        with self.waiting.expecting(id) as outcome:
            if images:
                await self.images.keep(images)
            saved = self.decisions.save(
                id, decision, wave, stages, terms, self.waiting.channel if wait_s else ""
            )
            with self._tracer.span("store"):
                await self._accepted(id, saved, settled_by)
            self._note(id, decision)
            reach("stored")
            with self._tracer.span("publish"):
                await self._publish(id, wave, terms.lane, settled_by)
            return Accepted(id, await _within(outcome, now + wait_s))

    async def check(self, decision: Decision, size: int) -> None:
        """Raise what `decide` would raise for a decision that cannot be planned, or whose model is not
        served.
        """
        await self._check_model(decision.model)
        await self._check_writing(decision)
        await off_loop_if_long(decision, size, lambda: self._first_wave(decision))

    async def explain(self, decision: Decision, size: int) -> Explained:
        """What a decision would read. No engine has to be in. Raises Invalid (TooLong among them)."""
        self._check_count(decision)
        return await off_loop_if_long(decision, size, lambda: explain(make_plan(decision, self._vocabulary)))

    async def join(self, id: str, wait_s: float) -> Accepted:
        """Wait for a decision that was accepted before, here or elsewhere. Raises StoreError."""
        until = asyncio.get_running_loop().time() + wait_s
        with self.waiting.expecting(id) as outcome:
            if not await self.decisions.listen(id, self.waiting.channel):
                return Accepted(id, (await self.decisions.outcomes([id]))[id])
            return Accepted(id, await _within(outcome, until))

    async def _planned(self, decision: Decision, size: int, until: float) -> tuple[int, Wave]:
        """The stages of the plan, and its first reads. Raises Invalid or Refusal."""
        try:
            async with asyncio.timeout_at(until):
                await self._check_model(decision.model)
                await self._check_writing(decision)
                with self._tracer.span("plan"), self.metrics.plan_seconds.time():
                    return await off_loop_if_long(decision, size, lambda: self._first_wave(decision))
        except TimeoutError as error:
            limit = f"{self.settings.sync_limit_s:g} s"
            raise Unavailable(f"the decision could not be planned within {limit}") from error

    async def _accepted(self, id: str, saved: Awaitable[None], until: float) -> None:
        try:
            async with asyncio.timeout_at(until):
                await saved
        except TimeoutError as error:
            limit = f"{self.settings.sync_limit_s:g} s"
            raise Unsettled(f"the store did not say within {limit} that it has the decision {id}") from error

    def _note(self, id: str, decision: Decision) -> None:
        self.metrics.accepted(decision.door).inc()
        seen = {"state": decision.state} if self.settings.log_states else {}
        log.debug("decision accepted", decision=id, door=decision.door, **seen)

    def _check_count(self, decision: Decision) -> None:
        count, most = len(decision.questions), self.settings.max_questions
        if count > most:
            message = f"{count} questions; the server takes {most} (CANVASS_MAX_QUESTIONS)"
            raise Invalid(("questions",), message, kind="too_long", given=count)

    def _first_wave(self, decision: Decision) -> tuple[int, Wave]:
        self._check_count(decision)
        return planned(decision, self._vocabulary, self.settings.most_reads)

    async def _publish(self, id: str, wave: Wave, lane: str, until: float) -> None:
        """Publish the first wave. A queue that is away is no failure: the watchdog publishes it later."""
        try:
            async with asyncio.timeout_at(until):
                await self._dispatcher.publish(id, 0, wave, lane)
        except (PublishError, TimeoutError) as error:
            log.warning("not published yet", decision=id, reason=str(error))

    async def job(self, id: str, owner: str) -> dict[str, Any]:
        """A job as its owner sees it (API.md, section 4). Raises Refusal when there is none of theirs."""
        fields = await self.job_fields(id, owner)
        position = await self.decisions.queue_position(id) if status_of(fields) == "queued" else None
        return job_of(id, fields, position=position)

    async def job_fields(self, id: str, owner: str) -> Fields:
        """What the store keeps of a job. Raises Refusal when its owner has none by this id."""
        (fields,) = await self.decisions.jobs([id])
        if fields is None or fields.get("owner", b"").decode() != owner:
            raise Refusal(404, "not_found", f"there is no job {id!r}, or it is no longer kept")
        return fields

    async def ready(self) -> dict[str, bool]:
        """Whether the store answers, and whether a worker has an engine in that reads canvases."""
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                await self.look_at_pool()
        except (StoreError, TimeoutError):
            return {"store": False, "engine": False}
        return {"store": True, "engine": bool(self._read_models())}

    def require_room(self) -> None:
        """Raise Refusal when more decisions wait than the server lets, as was seen a moment ago."""
        if self._queue.length >= self.settings.most_queued:
            raise queue_full(self._queue)

    async def look_at_queue(self) -> None:
        """See how many decisions wait. Raises StoreError."""
        self._queue = await self.decisions.queue()

    async def backlog(self) -> Backlog:
        """What waits in the store now. Raises StoreError."""
        return await backlog_of(self._store)

    async def look_at_pool(self) -> None:
        """See the pool as the workers see it now."""
        self.engines = await pool_view(self._store)

    def served_models(self) -> dict[str, int]:
        """The served models' names, each with the time its engine gives for it (seconds since 1970)."""
        return {engine["model"]: engine["created"] or 0 for engine in self.engines if engine["joined"]}

    def _read_models(self) -> set[str]:
        """The models that canvases are read of now."""
        return {
            engine["model"]
            for engine in self.engines
            if engine["joined"] and engine["capabilities"]["canvas"]
        }

    def _nobody_writes(self) -> bool:
        """Whether there are engines, and all of them proved that they do not write under a grammar."""
        known = [engine for engine in self.engines if engine["joined"] or engine["learned"]]
        return bool(known) and all(
            engine["learned"] and not engine["capabilities"]["generate"] for engine in known
        )

    async def _check_writing(self, decision: Decision) -> None:
        """Raise Invalid for a decision with something to write that no engine of the pool writes."""
        if not any(question.type == "object" for question in decision.questions):
            return
        if not self._nobody_writes():
            return
        asked = (question for stage in make_stages(decision) for question in stage)
        written = next((question.id for question in asked if question.type == "object"), None)
        if written is None:
            return
        await self.look_at_pool()
        if self._nobody_writes():
            raise Invalid(
                ("questions", written, "type") if decision.schema is None else ("schema",),
                "no engine of the pool writes under a grammar, which object questions need",
                kind="not_served",
                given="object",
            )

    async def _check_model(self, name: str) -> None:
        if name in self.settings.aliases or name in self._read_models():
            return
        await self.look_at_pool()
        served = self._read_models()
        if not served:
            raise Unavailable("no engine is in, so no model is served now")
        if name not in served:
            known = ", ".join(map(repr, (*self.settings.aliases, *served)))
            raise Refusal(400, "unknown_model", f"there is no model {name!r}; there are {known}")


async def _within(outcome: asyncio.Future[Outcome], until: float) -> Outcome | None:
    """An outcome, or None when it has not come by `until` on the loop's clock."""
    try:
        async with asyncio.timeout_at(until):
            return await outcome
    except TimeoutError:
        return None
