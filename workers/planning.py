"""Planning in a server: off the event loop when it takes long, and once per decision where it can be."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from planner.decision import Decision
from planner.errors import Invalid
from planner.plan import Plan, make_plan
from planner.reads import Wave
from planner.vocabulary import Vocabulary
from planner.waves import first_wave

LONG_BYTES = 20_000
"""Size of a decision from which on planning leaves the event loop for a thread."""

WORTH_KEEPING = 2_000
"""Characters of state from which on a plan is kept: a shorter one is made again in less time."""

MANY_QUESTIONS = 16
"""Questions from which on a plan is kept, however short its state."""

PLANS_KEPT = 32
CHARACTERS_KEPT = 8_000_000
"""Plans that a process keeps, by number and by the length of their states together."""

T = TypeVar("T")


async def off_loop_if_long(decision: Decision, size: int, work: Callable[[], T]) -> T:
    """The result of some planning; `size` is that of the decision in bytes.

    A short decision of labels plans in less time than handing it to a thread takes. Span questions cut
    their text into windows, and schemas may be hard to check values against, which takes longer.
    """
    labels_alone = all(question.is_label for question in decision.questions)
    short = size < LONG_BYTES and labels_alone and decision.schema is None
    return work() if short else await asyncio.to_thread(work)


def _has_spans(decision: Decision) -> bool:
    return any(question.is_span for question in decision.questions)


def planned(decision: Decision, vocabulary: Vocabulary, most_reads: int) -> tuple[int, Wave]:
    """The number of stages of a decision's plan, and its first reads: `most_reads` at most.

    Raises Invalid (TooLong among them) for what cannot be planned, or takes more.
    """
    plan = make_plan(decision, vocabulary)
    wave = first_wave(plan)
    if len(wave.all) > most_reads:
        raise Invalid(
            ("questions",),
            f"the decision takes {len(wave.all)} reads at once; the server takes {most_reads} "
            "(CANVASS_MOST_READS): ask fewer questions, or about a shorter text",
            kind="too_many_reads",
        )
    return len(plan.asked), wave


class PlanCache:
    """The plans of the last few decisions: a state is tokenised once, not once a wave. For any thread."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._plans: dict[str, Plan] = {}
        self._lock = threading.Lock()

    def plan(self, id: str, decision: Decision) -> Plan:
        """The plan of a decision by its id. Raises Invalid as `make_plan` does."""
        few = len(decision.questions) < MANY_QUESTIONS
        if few and len(decision.text) < WORTH_KEEPING and not _has_spans(decision):
            return make_plan(decision, self._vocabulary)
        with self._lock:
            plan = self._plans.pop(id, None)
        plan = plan or make_plan(decision, self._vocabulary)
        with self._lock:
            self._plans[id] = plan
            while len(self._plans) > 1 and self._is_full():
                del self._plans[next(iter(self._plans))]
        return plan

    def _is_full(self) -> bool:
        characters = sum(len(plan.decision.text) for plan in self._plans.values())
        return len(self._plans) > PLANS_KEPT or characters > CHARACTERS_KEPT
