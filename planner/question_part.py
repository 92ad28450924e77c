"""What parts have in common that answer one question by itself, beside the label stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.decision import Question
from planner.once import once
from planner.plan import Plan, told_to
from planner.prompts import Told
from planner.reads import Written


@dataclass(frozen=True, eq=False)
class QuestionPart:
    """The reads of one question.

    `number` counts the plan's questions of its kind, spans or objects. `words` are the answers so far as
    prompts restate them, by question; `thought` is what the model wrote ahead of all answers.
    """

    plan: Plan
    question: Question
    number: int
    words: Mapping[str, str] = field(default_factory=dict)
    thought: Written | None = None

    @once
    def told(self) -> tuple[Told, ...]:
        """The answers that its prompts restate: those that it needs."""
        return told_to(self.plan, [self.question], self.words)

    @property
    def stage(self) -> int:
        """The stage of its question."""
        return self.plan.stage_of[self.question.id]

    @property
    def ids_asked(self) -> tuple[str, ...]:
        """The id of the question, as parts of several give theirs."""
        return (self.question.id,)
