"""The state machine: what to read next, given all that is known.

`next_wave` replays the plan over the results from its first stage. It keeps nothing between calls,
so results may come in any order, twice, or not at all: a result that is missing is asked for again,
and the same set of results always gives the same outcome.

Two tracks run side by side, and a wave holds what either of them waits for: the label questions, stage
by stage, and the span questions, which depend on nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner.answers import Answers, Reading, ReadTrace, SpanReading
from planner.decision import Question
from planner.parts import Part
from planner.plan import Chunk, Plan, steps_of
from planner.reads import AnyRead, Failure, Generation, Read, Results, Thought, Wanted, Wave
from planner.span_parts import SpanPart
from planner.stages import skip_reason
from planner.thoughts import ThoughtPart


def first_wave(plan: Plan) -> Wave:
    """The reads that need no result. Raises TooLong when a prompt does not fit the context."""
    wave = next_wave(plan, {})
    assert isinstance(wave, Wave), "a plan asks at least one question"
    return wave


def next_wave(plan: Plan, results: Results) -> Wave | Answers | Failure:
    """The reads still missing of the earliest unsettled step of each track, or the outcome.

    A failed read fails the decision, once nothing is missing beside it: of several failures the
    first in the plan is told, whatever order they came in.
    """
    story = _Story(plan, results)
    if story.follow_thought():
        story.follow_labels()
        story.follow_spans()
    if story.missing:
        return Wave(
            max(0, len(story.stages) - 1),
            tuple(read for read in story.missing if isinstance(read, Read)),
            tuple(read for read in story.missing if isinstance(read, Generation)),
        )
    if story.failures:
        return story.failures[0]
    return Answers(
        story.readings,
        story.spans,
        story.skipped,
        tuple(story.stages),
        tuple(story.traces),
        story.thought,
    )


AnyPart = Part | SpanPart | ThoughtPart

_Asked = tuple[AnyPart, Wanted]


@dataclass(slots=True)
class _Story:
    """What the replay comes to know on its way through the plan, and where it has to stop."""

    plan: Plan
    results: Results
    readings: dict[str, Reading] = field(default_factory=dict)
    settled: dict[str, int] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    spans: dict[str, SpanReading] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    stages: list[tuple[str, ...]] = field(default_factory=list)
    traces: list[ReadTrace] = field(default_factory=list)
    missing: list[AnyRead] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    thought: Thought | None = None

    def follow_thought(self) -> bool:
        """Whether the answers can be read: there is no thought to go first, or it is there."""
        if not self.plan.decision.options.think:
            return True
        part = ThoughtPart(self.plan)
        if self._settled([part]) is None:
            return False
        self.thought = part.fold(self.results)
        self._trace([(part, want) for want in part.wanted(self.results)], 0)
        return True

    @property
    def _first(self) -> int:
        """The wave in which the first answers are read."""
        return 0 if self.thought is None else 1

    def follow_labels(self) -> None:
        """Settle the label questions, step by step, up to the first step that is not all there."""
        wave = self._first
        for number, stage in enumerate(self.plan.stages):
            group = 0
            for step in steps_of(self.plan, self._open(stage)):
                parts = [
                    Part(self.plan, chunk, number, group + place, self._known_to(chunk), self.thought)
                    for place, chunk in enumerate(step)
                ]
                group += len(step)
                wanted = self._settled(parts)
                if wanted is None:
                    return
                for part in parts:
                    self._settle(part.fold(self.results))
                wave = self._trace(wanted, wave)

    def follow_spans(self) -> None:
        """Settle the span questions, which all run from the first wave on."""
        parts = [
            SpanPart(self.plan, question, number, self.thought)
            for number, question in enumerate(self.plan.spans)
        ]
        wanted = self._settled(parts)
        if wanted is not None:
            self.spans |= {part.question.id: part.fold(self.results) for part in parts}
            self._trace(wanted, self._first)

    def _open(self, stage: Sequence[Question]) -> list[Question]:
        """The questions of a stage that are asked after all; the others are skipped, with a reason."""
        known = self.plan.decision.by_id
        reasons = {question.id: skip_reason(question, self.answers, known) for question in stage}
        self.skipped |= {id: reason for id, reason in reasons.items() if reason is not None}
        asked = [question for question in stage if reasons[question.id] is None]
        self.stages.append(tuple(question.id for question in asked))
        return asked

    def _known_to(self, chunk: Chunk) -> dict[str, int]:
        """The answers that a chunk carries on from: all so far when joint, else those it needs."""
        if chunk.joint:
            return dict(self.settled)
        return {id: self.settled[id] for id in chunk.questions[0].needs if id in self.settled}

    def _settle(self, readings: Mapping[str, Reading]) -> None:
        for id, reading in readings.items():
            self.readings[id] = reading
            self.settled[id] = reading.best
            self.answers[id] = self.plan.decision.by_id[id].alternatives[reading.best].name

    def _settled(self, parts: Sequence[AnyPart]) -> list[_Asked] | None:
        """The reads of some parts when all came back well, else None; what is lacking is noted."""
        asked = [(part, want) for part in parts for want in part.wanted(self.results)]
        missing = [(part, want) for part, want in asked if want.id not in self.results]
        if missing:
            self.missing += [part.read(want, self.results) for part, want in missing]
            return None
        failures = [one for _, want in asked if isinstance(one := self.results[want.id], Failure)]
        self.failures += failures
        return None if failures else asked

    def _trace(self, asked: Sequence[_Asked], first: int) -> int:
        """Note what ran, from wave `first` on; the wave that comes next."""
        last = first - 1
        for part, want in asked:
            result = self.results[want.id]
            assert not isinstance(result, Failure), "failures were noted before"
            last = max(last, first + want.wave)
            self.traces.append(
                ReadTrace(
                    id=want.id,
                    kind=want.kind,
                    wave=first + want.wave,
                    stage=part.stage,
                    questions=part.ids_asked,
                    draw=want.draw,
                    attempt=want.attempt,
                    seed=want.seed,
                    served=result.served,
                )
            )
        return last + 1
