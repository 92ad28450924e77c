"""What a plan would read, told without reading anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from planner.decision import Question
from planner.object_parts import ObjectPart
from planner.parts import Part
from planner.plan import Plan, steps_of
from planner.span_parts import SpanPart


@dataclass(frozen=True, slots=True)
class Explained:
    """The stages of a plan, and the reads that each question takes when it is asked and nothing is repeated.

    Questions that share canvases share their reads: the first of a canvas has them. `least` are the reads of
    the questions that are asked whatever the answers, `all` those of every question.
    """

    stages: tuple[tuple[str, ...], ...]
    reads: dict[str, int]
    least: int

    @property
    def all(self) -> int:
        """The reads when every question is asked."""
        return sum(self.reads.values())


def explain(plan: Plan) -> Explained:
    """What a plan would read. A thought, where the options ask for one, is not counted."""
    reads: Counter[str] = Counter()
    for number, labels in enumerate(plan.stages):
        for step in steps_of(plan, labels):
            for group, chunk in enumerate(step):
                reads[chunk.questions[0].id] += len(Part(plan, chunk, number, group).wanted({}))
    for number, question in enumerate(plan.spans):
        reads[question.id] = len(SpanPart(plan, question, number).wanted({}))
    for number, question in enumerate(plan.objects):
        reads[question.id] = len(ObjectPart(plan, question, number).wanted({}))
    certain = _certain(plan)
    return Explained(
        stages=tuple(tuple(question.id for question in stage) for stage in plan.asked),
        reads={question.id: reads[question.id] for stage in plan.asked for question in stage},
        least=sum(count for id, count in reads.items() if id in certain),
    )


def _certain(plan: Plan) -> set[str]:
    """The questions that are asked whatever the answers: those without `ask_if`."""
    questions: list[Question] = [question for stage in plan.asked for question in stage]
    return {question.id for question in questions if not question.ask_if}
