"""The thought part: what a model writes ahead of all its answers, once per decision.

Its prompt lists every question that is going to be asked; the draws and the questions then share the
thought.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.decision import Question
from planner.formats import ISOLATED, labels_of
from planner.plan import Plan
from planner.prompts import picture_of, thought_tail
from planner.reads import Generation, Results, Thought, Wanted

THOUGHT_ID = "0/thought/0/0/0"


@dataclass(frozen=True, eq=False)
class ThoughtPart:
    """The one generation that a decision's thought takes."""

    plan: Plan

    stage = 0

    @property
    def _questions(self) -> tuple[Question, ...]:
        return (*(question for stage in self.plan.stages for question in stage), *self.plan.spans)

    @property
    def ids_asked(self) -> tuple[str, ...]:
        """The ids of the questions that the thought is about."""
        return tuple(question.id for question in self._questions)

    def wanted(self, results: Results) -> list[Wanted]:
        """The generation, whatever the results."""
        return [Wanted(THOUGHT_ID, "thought", wave=0, draw=0, attempt=0, seed=0)]

    def read(self, want: Wanted, results: Results) -> Generation:
        """The generation, whole. Raises TooLong when prompt, thought and a canvas do not fit the context."""
        vocabulary, images = self.plan.vocabulary, self.plan.decision.images
        thinking = vocabulary.family.thinking
        assert thinking is not None, "a plan whose family cannot think is refused"
        listed = [
            (question, () if question.is_span else labels_of(question, vocabulary, ISOLATED))
            for question in self._questions
        ]
        text, most = thought_tail(listed, thinking.ask), self.plan.thought_tokens
        if images:
            picture = picture_of(f"{self.plan.isolated_text}{text}", images)
            return Generation(want.id, want.kind, (), (), most, thinking.stop, picture)
        tail = (*vocabulary.tokenizer.encode(text), *vocabulary.think_turn, *vocabulary.thought_open)
        head = self.plan.isolated_head
        vocabulary.check_length(len(head) + len(tail) + most + vocabulary.canvas)
        return Generation(want.id, want.kind, head, tail, most, thinking.stop)

    def fold(self, results: Results) -> Thought:
        """The thought that came back."""
        thought = results[THOUGHT_ID]
        assert isinstance(thought, Thought), "failures were noted before"
        return thought
