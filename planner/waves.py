"""The state machine: what to read next, given all that is known.

`next_wave` replays the plan over the results from its first stage. It keeps nothing between calls,
so results may come in any order, twice, or not at all: a result that is missing is asked for again,
and the same set of results always gives the same outcome.

Several tracks run side by side, and a wave holds what any of them waits for: the label questions go stage
by stage; beside them every span and object question goes by itself, once what it needs is settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.answers import Answers, ObjectReading, Reading, ReadTrace, SpanReading
from planner.decision import NO, YES, Question, as_text
from planner.object_parts import ObjectPart
from planner.parts import Part, spoken_answer
from planner.plan import Chunk, Plan, steps_of
from planner.reads import Failure, Generation, Read, Results, Wanted, Wave, Written
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
        story.follow()
    if story.missing:
        missing = [part.read(want, results) for part, want in story.missing]
        return Wave(
            story.stage,
            tuple(read for read in missing if isinstance(read, Read)),
            tuple(read for read in missing if isinstance(read, Generation)),
        )
    if story.failures:
        return story.failures[0]
    return Answers(
        story.readings,
        story.spans,
        story.objects,
        story.skipped,
        tuple(story.stages),
        tuple(story.traces),
        story.thought,
    )


def asked_for(plan: Plan, results: Results) -> list[tuple[AnyPart, Wanted]]:
    """Every read that the plan has asked for, as far as the results tell, with the part it is of. Those that
    are missing may not fit the context.
    """
    story = _Story(plan, results)
    if story.follow_thought():
        story.follow()
    return story.asked


AnyPart = Part | SpanPart | ObjectPart | ThoughtPart

_Asked = tuple[AnyPart, Wanted]


@dataclass(slots=True)
class _Story:
    """What the replay comes to know on its way through the plan, and where it has to stop.

    `answers` are by the names that `ask_if` knows, `words` those that later prompts restate; `over` is the
    first wave that may need a question, and `begun` holds those beside the stages that were looked at.
    `turn` is the first wave of the next label stage, as far as the one before it goes.
    """

    plan: Plan
    results: Results
    readings: dict[str, Reading] = field(default_factory=dict)
    spans: dict[str, SpanReading] = field(default_factory=dict)
    objects: dict[str, ObjectReading] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    over: dict[str, int] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    turn: int = 0
    stage: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    stages: list[tuple[str, ...]] = field(default_factory=list)
    asked: list[_Asked] = field(default_factory=list)
    traces: list[ReadTrace] = field(default_factory=list)
    missing: list[_Asked] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    thought: Written | None = None

    def follow_thought(self) -> bool:
        """Whether the answers can be read: there is no thought to go first, or it is there."""
        if not self.plan.decision.options.think:
            return True
        part = ThoughtPart(self.plan)
        if self._settled([part]) is None:
            return False
        self.thought, self.turn = part.fold(self.results), 1
        self._trace([(part, want) for want in part.wanted(self.results)], 0)
        return True

    def follow(self) -> None:
        """Settle what can be: stage after stage up to the first that is not there, and all beside them."""
        for number, labels in enumerate(self.plan.stages):
            if not self._can_ask(labels):
                self._follow_beside()
                if not self._can_ask(labels):
                    break
            if not self._follow_stage(number, labels):
                break
        self._follow_beside()

    def _can_ask(self, questions: Sequence[Question]) -> bool:
        return all(all(map(self.over.__contains__, question.needs)) for question in questions)

    def _follow_stage(self, number: int, labels: Sequence[Question]) -> bool:
        """Whether the label questions of a stage are settled, step by step."""
        if not labels:
            if any(self.plan.stages[number:]):
                self.stages.append(())
            return True
        self.stage = max(self.stage, number)
        asked = self._open(labels)
        self.stages.append(tuple(question.id for question in asked))
        wave = max(self.turn, *map(self._after, labels))
        group = 0
        for step in steps_of(self.plan, asked):
            parts = [self._part(chunk, number, group + place) for place, chunk in enumerate(step)]
            group += len(step)
            wanted = self._settled(parts)
            if wanted is None:
                return False
            wave = self._trace(wanted, wave)
            for part in parts:
                for id, reading in part.fold(self.results).items():
                    self.readings[id] = reading
                    question = self.plan.decision.by_id[id]
                    name = question.alternatives[reading.best].name
                    self._know(id, name, spoken_answer(question, reading.best), wave)
        self.turn = wave
        return True

    def _follow_beside(self) -> None:
        """Settle the span and object questions whose needs are settled."""
        for question in self.plan.beside:
            if question.id in self.begun or not self._can_ask([question]):
                continue
            self.begun.add(question.id)
            wave = self._after(question)
            if not self._open([question]):
                continue
            self.stage = max(self.stage, self.plan.stage_of[question.id])
            part = self._part_beside(question)
            wanted = self._settled([part])
            if wanted is None:
                continue
            wave = self._trace(wanted, wave)
            if isinstance(part, SpanPart):
                self.spans[question.id] = reading = part.fold(self.results)
                self._know(question.id, YES if reading.items else NO, part.in_words(reading), wave)
            else:
                self.objects[question.id] = value = part.fold(self.results)
                self._know(question.id, "", as_text(value.value) if value.valid else "no valid answer", wave)

    def _part(self, chunk: Chunk, stage: int, group: int) -> Part:
        """A chunk whose turn has come. A joint one goes on from all labels so far."""
        known = self.plan.decision.by_id if chunk.joint else {}
        lines = tuple((known[id], self.readings[id].best) for id in known if id in self.readings)
        return Part(self.plan, chunk, stage, group, lines, self.words, self.thought)

    def _part_beside(self, question: Question) -> SpanPart | ObjectPart:
        if question.is_span:
            return SpanPart(self.plan, question, self.plan.spans.index(question), self.words, self.thought)
        return ObjectPart(self.plan, question, self.plan.objects.index(question), self.words, self.thought)

    def _know(self, id: str, answer: str, words: str, wave: int) -> None:
        self.answers[id], self.words[id], self.over[id] = answer, words, wave

    def _after(self, question: Question) -> int:
        """The first wave in which a question can be asked."""
        first = 0 if self.thought is None else 1
        return max(first, max(map(self.over.__getitem__, question.needs), default=first))

    def _open(self, questions: Sequence[Question]) -> list[Question]:
        """The questions of a stage that are asked after all; the others are skipped, with a reason."""
        known = self.plan.decision.by_id
        reasons = {question.id: skip_reason(question, self.answers, known) for question in questions}
        for question in questions:
            if (reason := reasons[question.id]) is not None:
                self.skipped[question.id] = reason
                self.over[question.id] = self._after(question)
        return [question for question in questions if reasons[question.id] is None]

    def _settled(self, parts: Sequence[AnyPart]) -> list[_Asked] | None:
        """The reads of some parts when all came back well, else None; what is lacking is noted."""
        asked = [(part, want) for part in parts for want in part.wanted(self.results)]
        self.asked += asked
        missing = [(part, want) for part, want in asked if want.id not in self.results]
        if missing:
            self.missing += missing
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
