"""The decision service: what every front door calls, whatever its dialect."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any

import structlog

from api.refusals import Refusal, Unavailable
from api.settings import ApiSettings
from api.waiting import Waiting
from planner.decision import Decision
from planner.errors import Invalid
from planner.plan import make_plan
from planner.reads import Wave
from planner.vocabulary import Vocabulary
from planner.waves import first_wave
from workers.dispatch import Dispatcher, PublishError
from workers.jobs import Fields, job_of, status_of
from workers.planning import off_loop_if_long
from workers.presence import pool_view
from workers.store.decisions import Decisions, Outcome
from workers.store.names import Names
from workers.store.store import Store, StoreError
from workers.terms import Terms

WATCH_POOL_EVERY_S = 1.0
READY_WITHIN_S = 2.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Accepted:
    """A decision on its way: its id, and its outcome when it came within the wait."""

    id: str
    outcome: Outcome | None


class Service:
    """Accepts decisions and waits for their outcomes."""

    def __init__(
        self,
        settings: ApiSettings,
        store: Store,
        decisions: Decisions,
        dispatcher: Dispatcher,
        waiting: Waiting,
        names: Names,
        vocabulary: Vocabulary,
    ) -> None:
        self.settings = settings
        self.decisions = decisions
        self.waiting = waiting
        self.names = names
        self._store = store
        self._dispatcher = dispatcher
        self._vocabulary = vocabulary
        self.engines: list[dict[str, Any]] = []

    @staticmethod
    def new_id() -> str:
        """An id for a decision."""
        return f"dec_{uuid.uuid4().hex}"

    async def decide(self, id: str, decision: Decision, size: int, terms: Terms, wait_s: float) -> Accepted:
        """Plan, store and publish a decision under an id, and wait `wait_s` seconds for its outcome.

        It is stored first and published second, so that what was accepted cannot be lost. `size` is
        that of the request's body in bytes; the wait counts from now. Raises Invalid (TooLong among
        them), Refusal, TooManyOpen or StoreError when the decision was not accepted, Unavailable when
        that was not settled within the sync limit.
        """
        until = asyncio.get_running_loop().time() + wait_s
        with self.waiting.expecting(id) as outcome:
            await self._accept(id, decision, size, terms, self.waiting.channel if wait_s else "")
            return Accepted(id, await _within(outcome, until))

    async def join(self, id: str, wait_s: float) -> Accepted:
        """Wait for a decision that was accepted before, here or elsewhere. Raises StoreError."""
        until = asyncio.get_running_loop().time() + wait_s
        with self.waiting.expecting(id) as outcome:
            if not await self.decisions.listen(id, self.waiting.channel):
                return Accepted(id, (await self.decisions.outcomes([id]))[id])
            return Accepted(id, await _within(outcome, until))

    async def _accept(self, id: str, decision: Decision, size: int, terms: Terms, channel: str) -> None:
        limit, saved = self.settings.sync_limit_s, False
        try:
            async with asyncio.timeout(limit):
                await self._check_model(decision.model)
                stages, wave = await off_loop_if_long(decision, size, lambda: self._first_wave(decision))
                await self.decisions.save(id, decision, wave, stages, terms, channel)
                saved = True
                await self._publish(id, wave, terms.lane)
        except TimeoutError as error:
            if not saved:
                message = f"the decision could not be planned and stored within {limit:g} s"
                raise Unavailable(message) from error

    def _first_wave(self, decision: Decision) -> tuple[int, Wave]:
        """The stages of the plan, and its first reads. Raises Invalid for more than the server takes."""
        plan = make_plan(decision, self._vocabulary)
        wave = first_wave(plan)
        most = self.settings.most_reads
        if len(wave.reads) > most:
            raise Invalid(
                ("questions",),
                f"the decision takes {len(wave.reads)} reads at once; the server takes {most} "
                "(CANVASS_MOST_READS): ask fewer questions, or about a shorter text",
                kind="too_many_reads",
            )
        return max(1, len(plan.stages)), wave

    async def _publish(self, id: str, wave: Wave, lane: str) -> None:
        """Publish the first wave. A queue that is away is no failure: the watchdog publishes it later."""
        try:
            await self._dispatcher.publish(id, 0, wave, lane)
        except PublishError as error:
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
        """Whether the store answers, and whether a worker has an engine in."""
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                await self.look_at_pool()
        except (StoreError, TimeoutError):
            return {"store": False, "engine": False}
        return {"store": True, "engine": any(engine["joined"] for engine in self.engines)}

    async def look_at_pool(self) -> None:
        """See the pool as the workers see it now."""
        self.engines = await pool_view(self._store)

    def served_models(self) -> dict[str, int]:
        """The served models' names, each with the time its engine gives for it (seconds since 1970)."""
        return {engine["model"]: engine["created"] or 0 for engine in self.engines if engine["joined"]}

    async def _check_model(self, name: str) -> None:
        if name in self.settings.aliases or name in self.served_models():
            return
        await self.look_at_pool()
        served = self.served_models()
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
