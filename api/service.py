"""The decision service: what every front door calls, whatever its dialect."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any

import structlog

from api.settings import ApiSettings
from api.waiting import Waiting
from planner.decision import Decision
from planner.errors import Invalid
from planner.plan import make_plan
from planner.reads import Wave
from planner.vocabulary import Vocabulary
from planner.waves import first_wave
from workers.dispatch import Dispatcher, PublishError
from workers.planning import off_loop_if_long
from workers.presence import pool_view
from workers.store import Outcome, Store, StoreError

WATCH_POOL_EVERY_S = 1.0
READY_WITHIN_S = 2.0

log = structlog.get_logger()


class Unavailable(Exception):
    """The decision could not be accepted: the store is away, or no engine is in. It may be sent again."""


class UnknownModel(Exception):
    """No engine serves the model by this name, and it is no alias."""


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
        dispatcher: Dispatcher,
        waiting: Waiting,
        vocabulary: Vocabulary,
    ) -> None:
        self.settings = settings
        self._store = store
        self._dispatcher = dispatcher
        self._waiting = waiting
        self._vocabulary = vocabulary
        self.engines: list[dict[str, Any]] = []

    async def decide(self, decision: Decision, size: int, wait_s: float) -> Accepted:
        """Plan, store and publish a decision, and wait for its outcome, `wait_s` seconds in all.

        It is stored first and published second, so that what was accepted cannot be lost. `size` is
        that of the request's body in bytes. Raises Invalid (TooLong among them), UnknownModel, or
        Unavailable when it was not accepted in that time.
        """
        id = f"dec_{uuid.uuid4().hex}"
        outcome = self._waiting.expect(id)
        accepted = False
        try:
            async with asyncio.timeout(wait_s):
                await self._check_model(decision.model)
                wave = await off_loop_if_long(decision, size, lambda: self._first_wave(decision))
                await self._store.save(id, decision, wave, self._waiting.channel)
                accepted = True
                await self._publish(id, wave)
                return Accepted(id, await outcome)
        except TimeoutError as error:
            if accepted:
                return Accepted(id, None)
            raise Unavailable(f"the decision could not be planned and stored within {wait_s:g} s") from error
        except StoreError as error:
            raise Unavailable(str(error)) from error
        finally:
            self._waiting.forget(id)

    def _first_wave(self, decision: Decision) -> Wave:
        """The first reads. Raises Invalid when they are more than the server takes."""
        wave = first_wave(make_plan(decision, self._vocabulary))
        most = self.settings.most_reads
        if len(wave.reads) > most:
            raise Invalid(
                ("questions",),
                f"the decision takes {len(wave.reads)} reads at once; the server takes {most} "
                "(CANVASS_MOST_READS): ask fewer questions, or about a shorter text",
                kind="too_many_reads",
            )
        return wave

    async def _publish(self, id: str, wave: Wave) -> None:
        """Publish the first wave. A queue that is away is no failure: the watchdog publishes it later."""
        try:
            await self._dispatcher.publish(id, 0, wave)
        except PublishError as error:
            log.warning("not published yet", decision=id, reason=str(error))

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
        try:
            await self.look_at_pool()
        except StoreError as error:
            raise Unavailable(str(error)) from error
        served = self.served_models()
        if not served:
            raise Unavailable("no engine is in, so no model is served now")
        if name not in served:
            known = ", ".join(map(repr, (*self.settings.aliases, *served)))
            raise UnknownModel(f"there is no model {name!r}; there are {known}")
