"""The state machine: what to read next, given all that is known.

`next_wave` replays the plan over the results from its first stage. It keeps nothing between calls,
so results may come in any order, twice, or not at all: a result that is missing is asked for again,
and the same set of results always gives the same outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from planner.answers import Answers, Reading, ReadTrace, fold
from planner.decision import Question
from planner.parts import Part, Results
from planner.plan import Plan, steps_of
from planner.reads import Failure, Rows, Wave
from planner.stages import skip_reason


def first_wave(plan: Plan) -> Wave:
    """The reads that need no result. Raises TooLong when a prompt does not fit the context."""
    wave = next_wave(plan, {})
    assert isinstance(wave, Wave), "a plan asks at least one question"
    return wave


def next_wave(plan: Plan, results: Results) -> Wave | Answers | Failure:
    """The reads still missing of the earliest unsettled step, or the outcome when none is."""
    story = _Story(plan)
    for number, stage in enumerate(plan.stages):
        for step in steps_of(plan, story.open_stage(stage)):
            parts = [Part(plan, chunk, number, story.next_group(), story.settled) for chunk in step]
            missing = [read for part in parts for read in part.missing(results)]
            if missing:
                return Wave(number, tuple(missing))
            failure = next(_failures(parts, results), None)
            if failure is not None:
                return failure
            story.settle(parts, results)
    return story.answers()


def _failures(parts: Sequence[Part], results: Results) -> Iterator[Failure]:
    for part in parts:
        for draw in range(part.draws_wanted(results)):
            for id in part.ids(draw):
                result = results[id]
                if isinstance(result, Failure):
                    yield result


@dataclass(slots=True)
class _Story:
    """What the replay has come to know on its way through the plan."""

    plan: Plan
    readings: dict[str, Reading] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    stages: list[tuple[str, ...]] = field(default_factory=list)
    traces: list[ReadTrace] = field(default_factory=list)
    wave: int = 0
    group: int = 0

    @property
    def settled(self) -> dict[str, int]:
        return {id: reading.best for id, reading in self.readings.items()}

    def open_stage(self, stage: Sequence[Question]) -> list[Question]:
        """The questions of a stage that are asked after all; the others are skipped, with a reason."""
        known = self.plan.decision.by_id
        answers = {id: known[id].alternatives[best].name for id, best in self.settled.items()}
        reasons = {question.id: skip_reason(question, answers, known) for question in stage}
        self.skipped |= {id: reason for id, reason in reasons.items() if reason is not None}
        asked = [question for question in stage if reasons[question.id] is None]
        self.stages.append(tuple(question.id for question in asked))
        self.group = 0
        return asked

    def next_group(self) -> int:
        self.group += 1
        return self.group - 1

    def settle(self, parts: Sequence[Part], results: Results) -> None:
        """Fold the draws of a step into readings, and note which waves they came in."""
        last = self.wave
        for part in parts:
            draws = range(part.draws_wanted(results))
            by_draw = [part.distributions(draw, results) for draw in draws]
            for question, found in zip(part.chunk.questions, zip(*by_draw, strict=True), strict=True):
                self.readings[question.id] = fold(found)
            automatic = self.plan.decision.options.samples is None
            for draw in draws:
                wave = self.wave + (1 if automatic and draw else 0)
                last = max(last, wave)
                self._trace(part, draw, wave, results)
        if parts:
            self.wave = last + 1

    def _trace(self, part: Part, draw: int, wave: int, results: Results) -> None:
        for id in part.ids(draw):
            rows = results[id]
            assert isinstance(rows, Rows), "failures were returned before"
            self.traces.append(
                ReadTrace(
                    id=id,
                    wave=wave,
                    stage=part.stage,
                    questions=tuple(question.id for question in part.chunk.questions),
                    draw=draw,
                    seed=part.seed(draw),
                    engine=rows.engine,
                    ms=rows.ms,
                    attempts=rows.attempts,
                    prompt_tokens=rows.prompt_tokens,
                    cached_tokens=rows.cached_tokens,
                )
            )

    def answers(self) -> Answers:
        return Answers(self.readings, self.skipped, tuple(self.stages), tuple(self.traces))
