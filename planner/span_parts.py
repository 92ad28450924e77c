"""A span part: the reads of one span question over all windows, and the answer that they come to.

Each window is read by itself. A `span` read that came back unsure is repeated with the next seed; when
windows disagree, one choose read among the candidates settles it. A `spans` question reads every window
twice with different seeds instead, and keeps what either pass found.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.answers import SpanReading
from planner.canvas import Canvas, make_canvas
from planner.decision import Alternative, Question
from planner.formats import ISOLATED, distribution, isolated_template, labels_of
from planner.once import once
from planner.plan import Plan
from planner.prompts import isolated_tail, span_tail
from planner.question_part import QuestionPart
from planner.reads import Found, Ids, Item, Read, ReadKind, Results, Rows, Wanted
from planner.spans.blanks import LEAST_STEPS, blank_of
from planner.spans.decoder import Blank, Lexicon, Walker
from planner.spans.items import decode_list, decode_span
from planner.spans.search_text import SearchText, make_search_text
from planner.spans.windows import lexicon_of
from planner.vocabulary import Vocabulary, encode_recurring

SURE = 0.3
"""Confidence from which on a span read is not repeated."""

RETRIES = 3
PASSES = 2
MOST_CANDIDATES = 8

CONTEXT = 60
"""Code points of text around a candidate that the choose read is shown on each side."""


def decoded(plan: Plan, read: Read, rows: Rows) -> Found:
    """What the rows of a span or list read say: pieces of the source text, or none.

    Done where the read ran, so that its result is small: a blank's rows are thousands of numbers.
    """
    _, group, number, _, _ = read.id.split("/")
    question = plan.spans[int(group.removeprefix("s"))]
    window = plan.windows[int(number)]
    source = plan.decision.source
    search = make_search_text(source, window.start, window.end)
    asked = lexicon_of(window, plan.vocabulary, by_line=read.kind == "list")
    blank = _blank(read, rows, _with_picks(asked, rows, search, plan.vocabulary))
    walker = Walker(search, blank.lexicon)
    if read.kind == "span":
        found = decode_span(source, walker, blank)
    else:
        found = decode_list(source, walker, blank, question.max_items)
    return replace(found, served=rows.served)


def _with_picks(asked: Lexicon, rows: Rows, search: SearchText, vocabulary: Vocabulary) -> Lexicon:
    """A lexicon with those of the model's own first picks that stand in the text, though nobody asked.

    A text can be spelled in more ways than a read can ask for: several characters in one token, a line
    break with its carriage return. What the model would write comes with every row.
    """
    tokens = {id: vocabulary.tokenizer.token_bytes(id) for id in set(rows.top) if id < vocabulary.size}
    picks = {id: data for id, data in tokens.items() if id not in asked.tokens and search.has(data)}
    breaks = (id for id, data in picks.items() if data.isspace() and data.splitlines() != [data])
    return replace(asked, tokens={**asked.tokens, **picks}, newlines=(*asked.newlines, *breaks))


def _blank(read: Read, rows: Rows, lexicon: Lexicon) -> Blank:
    """A read's rows by id, each with the model's first pick when that is in the lexicon."""
    return Blank(
        rows=[
            dict(zip(read.ids, row, strict=True)) | ({top: peak} if top in lexicon.tokens else {})
            for row, top, peak in zip(rows.logprobs, rows.top, rows.peaks, strict=True)
        ],
        peaks=rows.peaks,
        lexicon=lexicon,
    )


def merged(items: Sequence[Item]) -> list[Item]:
    """Items of overlapping windows and of several passes, each place once, in text order.

    Only places decide, never texts: a value that the text repeats is there as often as the text has
    it. Of pieces that overlap, the surest stays, the longer of equals.
    """
    kept: list[Item] = []
    for item in sorted(items, key=lambda item: (-item.confidence, item.start - item.end, item.start)):
        place = bisect(kept, item.start, key=lambda other: other.start)
        after_last = place == 0 or kept[place - 1].end <= item.start
        before_next = place == len(kept) or item.end <= kept[place].start
        if after_last and before_next:
            kept.insert(place, item)
    return kept


@dataclass(frozen=True, eq=False)
class SpanPart(QuestionPart):
    """The reads of one span question."""

    @property
    def _kind(self) -> ReadKind:
        return "span" if self.question.type == "span" else "list"

    @once
    def _tail(self) -> Ids:
        text = span_tail(self.question, self.told)
        return (*encode_recurring(self.plan.vocabulary, text), *self.plan.closing(self.thought))

    @once
    def _canvas(self) -> Canvas:
        return blank_of(self.question, self.plan.vocabulary)

    def wanted(self, results: Results) -> list[Wanted]:
        """Every read that this question takes, as far as the results can tell."""
        wanted = [want for window in range(len(self.plan.windows)) for want in self._wanted(window, results)]
        if self._disagree(wanted, results):
            last = max(want.wave for want in wanted)
            wanted.append(Wanted(self._choose_id, "choose", last + 1, 0, 0, self.plan.decision.options.seed))
        return wanted

    def read(self, want: Wanted, results: Results) -> Read:
        """A wanted read, whole. Raises TooLong when the prompt does not fit the context."""
        if want.kind == "choose":
            return self._choose_read(want, results)
        ids = self.plan.windows[int(want.id.split("/")[2])].ids
        steps = max(LEAST_STEPS, self.plan.decision.options.steps)
        return self._read(want, self._tail, self._canvas, ids, steps)

    def _read(self, want: Wanted, tail: Ids, canvas: Canvas, ids: Ids, steps: int) -> Read:
        head = self.plan.isolated_head
        self.plan.vocabulary.check_length(len(head) + len(tail) + canvas.width)
        return Read(want.id, want.kind, head, tail, canvas, ids, want.seed, steps)

    def _choose_read(self, want: Wanted, results: Results) -> Read:
        """The read that chooses among candidates, each shown with the text around it."""
        vocabulary, options = self.plan.vocabulary, self.plan.decision.options
        found = [self._found(window, results) for window in range(len(self.plan.windows))]
        question = self._choice(self._candidates(found))
        text = isolated_tail(question, labels_of(question, vocabulary, ISOLATED), ISOLATED, [])
        template = isolated_template(question, vocabulary)
        (slot,) = template.slots
        canvas = make_canvas(vocabulary, template.ids, (slot.position,))
        tail = (*vocabulary.tokenizer.encode(text), *self.plan.closing(self.thought))
        return self._read(want, tail, canvas, slot.label_ids, options.steps)

    def _choice(self, candidates: Sequence[Item]) -> Question:
        """The candidates as a choice's options, each on a line of its own whatever white space it has."""
        source = self.plan.decision.source
        around = (source[max(0, item.start - CONTEXT) : item.end + CONTEXT] for item in candidates)
        alternatives = tuple(
            Alternative(_on_one_line(self._text(item)), f"in: {_on_one_line(context)}")
            for item, context in zip(candidates, around, strict=True)
        )
        return Question(self.question.id, "choice", self.question.instructions, alternatives)

    def fold(self, results: Results) -> SpanReading:
        """What all reads of the question say together, once all of them are there and none failed."""
        found = [self._found(window, results) for window in range(len(self.plan.windows))]
        reads = [results[want.id] for want in self.wanted(results)]
        tokens = sum(read.tokens for read in reads if isinstance(read, Found))
        items, resolved = self._settled(found, results)
        return SpanReading(
            items=tuple(items[: self.question.max_items]),
            windows=len(self.plan.windows),
            reads=len(reads),
            tokens=tokens,
            resolved=resolved,
        )

    def in_words(self, reading: SpanReading) -> str:
        """What later prompts restate of a reading: its texts, one per line, or none."""
        return "\n".join(self._text(item) for item in reading.items) or "none"

    def _settled(
        self, found: Sequence[Sequence[Found]], results: Results
    ) -> tuple[list[Item], dict[str, float] | None]:
        if self._kind == "list":
            return merged([item for window in found for one in window for item in one.items]), None
        candidates = self._candidates(found)
        rows = results.get(self._choose_id) if len(candidates) > 1 else None
        if not isinstance(rows, Rows):
            return candidates[:1], None
        (slot,) = isolated_template(self._choice(candidates), self.plan.vocabulary).slots
        shares = distribution(slot, dict(zip(slot.label_ids, rows.logprobs[0], strict=True)), rows.top[0])
        texts = [self._text(item) for item in candidates]
        resolved = dict(zip(texts, shares.probabilities, strict=True))
        return [max(candidates, key=lambda item: resolved[self._text(item)])], resolved

    def _candidates(self, found: Sequence[Sequence[Found]]) -> list[Item]:
        """The distinct texts that the windows found, each where a read was surest of it, in text order.

        At most `MOST_CANDIDATES`, the surest ones.
        """
        best: dict[str, Item] = {}
        for item in (item for window in found for one in window for item in one.items):
            held = best.get(self._text(item))
            if held is None or item.confidence > held.confidence:
                best[self._text(item)] = item
        surest = sorted(best.values(), key=lambda item: -item.confidence)[:MOST_CANDIDATES]
        return sorted(surest, key=lambda item: item.start)

    def _text(self, item: Item) -> str:
        return self.plan.decision.source[item.start : item.end]

    def _found(self, window: int, results: Results) -> list[Found]:
        """What counts of a window's reads: the surest attempt of a span, every pass of a list."""
        found = [one for want in self._wanted(window, results) if isinstance(one := results[want.id], Found)]
        return found if self._kind == "list" else [max(found, key=lambda one: one.confidence)]

    def _wanted(self, window: int, results: Results) -> list[Wanted]:
        """The reads of one window: every pass of a list, of a span an attempt after each unsure one."""
        if self._kind == "list":
            return [self._want(window, draw, 0) for draw in range(PASSES)]
        wanted = [self._want(window, 0, 0)]
        while len(wanted) <= RETRIES:
            result = results.get(wanted[-1].id)
            if not isinstance(result, Found) or result.confidence >= SURE:
                break
            wanted.append(self._want(window, 0, len(wanted)))
        return wanted

    def _want(self, window: int, draw: int, attempt: int) -> Wanted:
        """One read of a window. Attempts of one draw take seeds that follow each other; draws lie apart."""
        seed = self.plan.decision.options.seed + draw * (RETRIES + 1) + attempt
        id = f"{self.stage}/s{self.number}/{window}/{draw}/{attempt}"
        return Wanted(id, self._kind, attempt, draw, attempt, seed)

    def _disagree(self, wanted: Sequence[Wanted], results: Results) -> bool:
        """Whether the windows are all read, and found texts that differ."""
        if self._kind == "list" or not all(isinstance(results.get(want.id), Found) for want in wanted):
            return False
        found = [self._found(window, results) for window in range(len(self.plan.windows))]
        return len(self._candidates(found)) > 1

    @property
    def _choose_id(self) -> str:
        return f"{self.stage}/s{self.number}/choose/0/0"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
