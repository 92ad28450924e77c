"""The thought part: what a model writes ahead of all its answers, once per decision.

Its prompt lists every question that is going to be asked; the draws and the questions then share the
thought.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.decision import Question
from planner.formats import ISOLATED, labels_of
from planner.plan import Plan
from planner.prompts import message_of, thought_tail
from planner.reads import Generation, Results, Wanted, Written
from planner.vocabulary import encode_long

THOUGHT_ID = "0/thought/0/0/0"


@dataclass(frozen=True, eq=False)
class ThoughtPart:
    """The one generation that a decision's thought takes."""

    plan: Plan

    stage = 0

    @property
    def _questions(self) -> tuple[Question, ...]:
        labels = (question for stage in self.plan.stages for question in stage)
        return (*labels, *self.plan.spans, *self.plan.objects)

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
            (question, labels_of(question, vocabulary, ISOLATED) if question.is_label else ())
            for question in self._questions
        ]
        text, most = thought_tail(listed, thinking.ask), self.plan.thought_tokens
        if images:
            message = message_of(f"{self.plan.isolated_text}{text}", images)
            return Generation(want.id, want.kind, (), (), most, thinking.stop, message)
        tail = (*encode_long(vocabulary, text), *vocabulary.think_turn, *vocabulary.thought_open)
        head = self.plan.isolated_head
        vocabulary.check_length(len(head) + len(tail) + most + vocabulary.canvas)
        return Generation(want.id, want.kind, head, tail, most, thinking.stop)

    def fold(self, results: Results) -> Written:
        """The thought that came back."""
        thought = results[THOUGHT_ID]
        assert isinstance(thought, Written), "failures were noted before"
        return thought
