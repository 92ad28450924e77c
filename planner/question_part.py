"""What parts have in common that answer one question by itself, beside the label stages."""

from __future__ import annotations

from dataclasses import dataclass

from planner.decision import Question
from planner.plan import Plan
from planner.prompts import Told
from planner.reads import Written


@dataclass(frozen=True, eq=False)
class QuestionPart:
    """The reads of one question.

    `number` counts the plan's questions of its kind, spans or objects. `told` are answers that its prompts
    restate, `thought` is what the model wrote ahead of all answers.
    """

    plan: Plan
    question: Question
    number: int
    told: tuple[Told, ...] = ()
    thought: Written | None = None

    @property
    def stage(self) -> int:
        """The stage of its question."""
        return self.plan.stage_of[self.question.id]

    @property
    def ids_asked(self) -> tuple[str, ...]:
        """The id of the question, as parts of several give theirs."""
        return (self.question.id,)
