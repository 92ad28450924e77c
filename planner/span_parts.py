"""A span part: the reads of one span question over all windows, and the answer that they come to.

Each window is read by itself. A `span` read that came back unsure is repeated with the next seed; when
windows disagree, one choose read among the candidates settles it. A `spans` question reads every window
twice with different seeds instead, and keeps what either pass found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from planner.answers import Reading, SpanReading, fold
from planner.canvas import Canvas, make_canvas
from planner.decision import Alternative, Question
from planner.errors import TooLong
from planner.formats import ISOLATED, Row, Slot, Template, distribution, labels_of, make_template
from planner.plan import Plan
from planner.prompts import isolated_tail, span_tail
from planner.reads import Found, Ids, Item, Read, Result, Rows
from planner.spans.blanks import LEAST_STEPS, blank_of
from planner.spans.decoder import Blank, Walker
from planner.spans.items import decode_list, decode_span
from planner.spans.search_text import make_search_text
from planner.spans.windows import lexicon_of
from planner.vocabulary import encode_recurring

SURE = 0.3
"""Confidence from which on a span read is not repeated."""

RETRIES = 3
PASSES = 2
MOST_CANDIDATES = 8

CONTEXT = 60
"""Code points of text around a candidate that the choose read is shown on each side."""

Results = Mapping[str, Result]


@dataclass(frozen=True, eq=False)
class SpanPart:
    """The reads of one span question. `number` counts the plan's span questions."""

    plan: Plan
    question: Question
    number: int

    @property
    def _kind(self) -> str:
        return "span" if self.question.type == "span" else "list"

    @cached_property
    def _tail(self) -> Ids:
        text = span_tail(self.question)
        return (*encode_recurring(self.plan.vocabulary, text), *self.plan.vocabulary.chat_close)

    @cached_property
    def _canvas(self) -> Canvas:
        return blank_of(self.question, self.plan.vocabulary)

    def missing(self, results: Results) -> Iterator[Read]:
        """The wanted reads that have no result yet. Raises TooLong when the prompt does not fit."""
        for window in range(len(self.plan.windows)):
            for draw, attempt in self._wanted(window, results):
                if self._id(window, draw, attempt) not in results:
                    yield self._read(window, draw, attempt)
        if self._windows_are_read(results) and self._choice(results) and self._choose_id not in results:
            yield self._choose_read(results)
