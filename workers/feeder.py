"""The feeder: in every worker that serves the batch queue, no leader. It turns states into decisions.

An open batch has a lease, which whoever feeds it renews; when a feeder dies, another takes the batch over and
goes on from what was fed. Two that feed at once do no harm: only the state that is next can be fed
(workers/store/batch_scripts.py), and a decision's id follows from its batch and its index.

However long a batch, a feeder holds one piece of its states, and keeps at most `CANVASS_BATCH_IN_FLIGHT`
decisions open, shared evenly among the batches it feeds. It waits for half of a share to be free before it
feeds again: what becomes ready together travels in one message. While interactive decisions come in, it feeds
fewer at a time and no more than `CANVASS_BATCH_READS_BESIDE` reads a second. A low priority on the processor
alone does not keep a batch out of their way: they meet in Redis, at the engines and in the caches. While no
engine is in it feeds nothing, so that an outage delays a batch rather than failing it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import monotonic, time

import orjson
import structlog

from planner.errors import Invalid
from planner.vocabulary import Vocabulary
from workers.batch_lines import BadLine, bad_line_of, decision_of, read_line
from workers.celery_app import BATCH
from workers.dispatch import Dispatcher, PublishError
from workers.failpoints import reach
from workers.planning import off_loop_if_long, planned
from workers.pool.pool import Pool
from workers.settings import Settings
from workers.store.batches import Batches, Fed, Feeding, Piece, Shared
from workers.store.decisions import Decisions, id_of_item
from workers.store.store import StoreError
from workers.tracing import Tracer

LOOK_EVERY_S = 0.01
"""Seconds between looks at how much room there is."""

BESIDE_GROUP = 8
"""Most decisions fed at a time while interactive ones come in: what is fed together is also read together,
and holds up whatever comes to an engine behind it.
"""

TAKE_EVERY_S = 0.25
CANCEL_EVERY_S = 1.0
STORE_PAUSE_S = 1.0

MOST_BATCHES = 16
"""Batches that one feeder feeds at once; others wait for their turn."""

log = structlog.get_logger()


@dataclass(slots=True)
class Held:
    """A batch that is fed here: what its states share, and the piece that its next state is in.

    `number` is that of the piece; `canceled_at` is when what is open was last canceled, on the
    monotonic clock.
    """

    shared: Shared
    number: int = -1
    piece: Piece | None = None
    canceled_at: float = 0.0


class Feeder:
    """Feeds the batches whose lease it holds."""

    def __init__(
        self,
        batches: Batches,
        decisions: Decisions,
        pool: Pool,
        dispatcher: Dispatcher,
        vocabulary: Vocabulary,
        settings: Settings,
        tracer: Tracer,
    ) -> None:
        self._tracer = tracer
        self._batches = batches
        self._decisions = decisions
        self._pool = pool
        self._dispatcher = dispatcher
        self._vocabulary = vocabulary
        self._settings = settings
        self._held: dict[str, Held] = {}
        self._take_at = 0.0
        self._feed_at = 0.0

    async def look(self) -> None:
        """Take over what nobody feeds, and feed every batch as far as there is room."""
        try:
            if not self._held:
                await asyncio.sleep(TAKE_EVERY_S)
            if monotonic() >= self._take_at:
                await self._take()
                self._take_at = monotonic() + TAKE_EVERY_S
            for id, held in list(self._held.items()):
                await self._feed(id, held)
        except StoreError as error:
            log.warning("batches are not fed", reason=str(error))
            await asyncio.sleep(STORE_PAUSE_S)

    async def renew(self) -> None:
        """Renew the leases of what is fed here. Raises StoreError."""
        await self._batches.renew(self._held)

    async def _take(self) -> None:
        room = min(MOST_BATCHES, self._settings.batch_in_flight) - len(self._held)
        for id in await self._batches.overdue(room) if room > 0 else ():
            shared = await self._batches.take_over(id)
            if shared is not None:
                self._held[id] = Held(shared)

    async def _feed(self, id: str, held: Held) -> None:
        """Feed one batch as far as there is room. A fault of ours ends the batch, and says so."""
        try:
            batch = await self._batches.feeding(id)
            if batch is None:
                del self._held[id]
            elif batch.stopped or batch.deadline <= time():
                await self._stop(id, held, batch)
            else:
                await self._top_up(id, held, batch)
        except (StoreError, PublishError):
            raise
        except Exception as error:
            log.exception("batch failed by a fault of Canvass", batch=id)
            fault = {"code": "internal", "message": f"Canvass failed: {error!r}"}
            await self._batches.stop(id, "fault", orjson.dumps(fault).decode())

    async def _stop(self, id: str, held: Held, batch: Feeding) -> None:
        """End a batch that takes no more once nothing of it is open.

        Past its deadline the watchdog ends what is open: no decision may run longer than its batch.
        """
        if batch.open and (monotonic() - held.canceled_at < CANCEL_EVERY_S or not batch.stopped):
            return
        held.canceled_at = monotonic()
        await cancel_all(self._decisions, await self._batches.stop(id))

    async def _top_up(self, id: str, held: Held, batch: Feeding) -> None:
        share = max(1, self._settings.batch_in_flight // len(self._held))
        room = min(share - batch.open, batch.total - batch.fed)
        beside = batch.beside
        group = min(BESIDE_GROUP if beside else -(-share // 2), share, batch.total - batch.fed)
        if room < group or not group or not self._pool.is_in or (beside and monotonic() < self._feed_at):
            return
        states = [await self._prepared(held, *place) for place in await self._next(id, held, batch, group)]
        taken = await self._batches.feed(id, batch, held.shared.terms, states)
        reach("fed")
        ready = [state for state, fed in zip(states, taken, strict=True) if fed and state.asked]
        reads = sum(len(state.asked[1].all) for state in ready if state.asked)
        self._feed_at = monotonic() + reads / self._settings.batch_reads_beside
        self._held[id] = self._held.pop(id)  # the others come first next time
        await asyncio.gather(*(self._publish(id, state) for state in ready))

    async def _next(self, id: str, held: Held, batch: Feeding, most: int) -> list[tuple[int, int, bytes]]:
        """Up to `most` states that are next: index, number of the piece, line. One piece at a time."""
        while held.piece is None or batch.fed >= held.piece.first + len(held.piece.lines):
            held.number = max(batch.piece, held.number + 1)
            held.piece = await self._batches.piece(id, held.number)
            if held.piece is None:
                now = await self._batches.feeding(id)
                if now is not None and now.fed == batch.fed:
                    raise LookupError(f"piece {held.number} of the states is gone")
                held.number = -1
                return []  # another feeder went on meanwhile, and the batch is looked at again
        start = batch.fed - held.piece.first
        lines = held.piece.lines[start : start + most]
        return [(batch.fed + place, held.number, line) for place, line in enumerate(lines)]

    async def _prepared(self, held: Held, index: int, piece: int, line: bytes) -> Fed:
        """A state as a decision with its first wave, or as what is wrong with it."""
        await asyncio.sleep(0)  # planning many short states must not hold the event loop for all of them
        try:
            read = read_line(line)
            decision = decision_of(held.shared.request, read, held.shared.salt)
            most = self._settings.most_reads
            try:
                stages, wave = await off_loop_if_long(
                    decision, len(line), lambda: planned(decision, self._vocabulary, most)
                )
            except Invalid as error:
                raise bad_line_of(error, read.custom_id) from error
        except BadLine as bad:
            return Fed(index, piece, bad.custom_id, None, (bad.code, bad.message))
        return Fed(index, piece, read.custom_id, (decision, wave, stages))

    async def _publish(self, id: str, state: Fed) -> None:
        """Publish a decision. A queue that is away is no failure: the watchdog publishes it later."""
        assert state.asked is not None
        item, decision = id_of_item(id, state.index), state.asked[0]
        seen = {"state": decision.state} if self._settings.log_states else {}
        log.debug("decision accepted", decision=item, door=decision.door, **seen)
        try:
            with self._tracer.root("decision", item, door=decision.door):
                await self._dispatcher.publish(item, 0, state.asked[1], BATCH)
        except PublishError as error:
            log.warning("not published yet", decision=item, reason=str(error))


async def cancel_all(decisions: Decisions, ids: list[str]) -> None:
    """Ask for some decisions to be canceled."""
    await asyncio.gather(*(decisions.cancel(id) for id in ids))
