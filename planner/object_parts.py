"""An object part: the generations of one object question, and the value that they come to.

The text is written under a grammar, which cannot hold everything that a schema may say: the value is
checked in full afterwards. One that is not valid is asked for once more, with what was wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.answers import ObjectReading
from planner.decision import as_text
from planner.once import once
from planner.prompts import message_of, object_text
from planner.question_part import QuestionPart
from planner.reads import Generation, Results, Wanted, Written
from planner.schemas.sent import sent_schema
from planner.schemas.values import Fault, read_value

ATTEMPTS = 2

USUAL_TOKENS = 512
"""The most tokens of a value whose question does not say."""


@dataclass(frozen=True, eq=False)
class ObjectPart(QuestionPart):
    """The generations of one object question."""

    def wanted(self, results: Results) -> list[Wanted]:
        """A generation, and a second one after a first that was not valid."""
        return [self._want(attempt) for attempt in range(len(self._values(results)))]

    def read(self, want: Wanted, results: Results) -> Generation:
        """A wanted generation, whole."""
        decision = self.plan.decision
        thought = self.thought.text if self.thought else ""
        refused = self._refused(results, want.attempt - 1) if want.attempt else None
        text = self.plan.isolated_text + object_text(self.question, self.told, thought, refused)
        most = self.question.max_tokens or USUAL_TOKENS
        grammar = as_text(self._sent)
        message = message_of(text, decision.images)
        return Generation(want.id, want.kind, (), (), most, "", message, grammar)

    def fold(self, results: Results) -> ObjectReading:
        """What came of the question, once all its generations are there and none failed."""
        values = self._values(results)
        found = [results[self._want(attempt).id] for attempt in range(len(values))]
        written = [one for one in found if isinstance(one, Written)]
        fault = values[-1] if isinstance(values[-1], Fault) else None
        return ObjectReading(
            value=None if fault else values[-1],
            fault=fault,
            attempts=len(values),
            finish=written[-1].finish,
            tokens=sum(one.tokens for one in written),
        )

    @once
    def _sent(self) -> object:
        return sent_schema(self.question.schema)

    def _want(self, attempt: int) -> Wanted:
        id = f"{self.stage}/o{self.number}/0/0/{attempt}"
        return Wanted(id, "object", attempt, 0, attempt, 0)

    def _values(self, results: Results) -> list[object]:
        """What each attempt came to, up to the first that is no Fault: a value, or none as yet."""
        values: list[object] = []
        while len(values) < ATTEMPTS and (not values or isinstance(values[-1], Fault)):
            values.append(self._read(results, len(values)))
        return values

    def _read(self, results: Results, attempt: int) -> object:
        """The value that an attempt wrote, or its Fault; None where it is not there, or failed."""
        written = results.get(self._want(attempt).id)
        if not isinstance(written, Written):
            return None
        if written.finish == "length":
            return Fault("", f"the answer was cut off after {written.tokens} tokens, the most it may have")
        if not written.closed:
            return Fault("", f"the answer did not end by itself, but by {written.finish!r}")
        return read_value(written.text, self.question.schema)

    def _refused(self, results: Results, attempt: int) -> tuple[str, str]:
        """The text of an attempt that was not valid, and what was wrong with it."""
        written, fault = results[self._want(attempt).id], self._read(results, attempt)
        assert isinstance(written, Written), "it was asked for before"
        assert isinstance(fault, Fault), "only faults are asked again"
        return written.text, f"{fault.path}: {fault.message}" if fault.path else fault.message
