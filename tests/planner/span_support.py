"""What the tests of spans share: models that write with a window's ids, and texts of several windows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from planner.decision import Question
from planner.plan import Plan
from planner.reads import Found, Item, Read, Result, Rows, Served
from planner.span_parts import decoded
from planner.spans.boundaries import boundaries
from planner.spans.decoder import Blank, Lexicon, Walker
from planner.spans.items import decode_list, decode_span
from planner.spans.search_text import make_search_text
from planner.spans.windows import Window, closers, lexicon_of, make_windows, newlines
from planner.vocabulary import Vocabulary
from tests.planner.support import Engine, first_label

NOISE = 0.02


@cache
def words(vocabulary: Vocabulary, count: int) -> list[str]:
    """Different words that are one token each behind a space: few of them fill a window."""
    texts = (vocabulary.tokenizer.token_bytes(id) for id in range(2_000, vocabulary.size))
    return [text[1:].decode() for text in texts if re.fullmatch(rb" [a-z]{5,}", text)][:count]


def span(id: str = "s", instructions: str = "Which?", **more: Any) -> Question:
    """A question for one piece of the text."""
    return Question(id, "span", instructions, (), **more)


def spans(id: str = "l", instructions: str = "Which?", max_items: int = 16, **more: Any) -> Question:
    """A question for every such piece of the text."""
    return Question(id, "spans", instructions, (), max_items=max_items, **more)


def spelling(vocabulary: Vocabulary, lexicon: Lexicon, text: str) -> list[int] | None:
    """The ids with which a model writes a piece, led by a space, when it may use a lexicon's only.

    Its own tokens where they are allowed, else the fewest allowed ones that give the same bytes. White
    space is written as one space: no other is among the ids. None when nothing spells the piece.
    """
    folded = re.sub(r"\s+", " ", text)
    own = vocabulary.tokenizer.encode(f" {folded}")
    if set(own) <= lexicon.tokens.keys():
        return own
    return _fewest(lexicon, f" {folded}".encode()) or _fewest(lexicon, folded.encode())


def _fewest(lexicon: Lexicon, data: bytes) -> list[int] | None:
    ends = set(lexicon.enders)
    tokens = [(token, id) for id, token in lexicon.tokens.items() if id not in ends and token]
    best: list[list[int] | None] = [[], *[None] * len(data)]
    for place in range(len(data)):
        before = best[place]
        if before is None:
            continue
        for token, id in tokens:
            stop = place + len(token)
            if data.startswith(token, place):
                held = best[stop]
                if held is None or len(before) + 1 < len(held):
                    best[stop] = [*before, id]
    return best[-1]


def blank_of_ids(
    lexicon: Lexicon, ids: Sequence[int], length: int, *, seed: int = 0, noise: float = NOISE
) -> Blank:
    """A blank with these ids nearly certain, closed after them, and seeded noise on all others."""
    random = Random(seed)
    rows: list[dict[int, float]] = []
    for id in [*ids, *[lexicon.closers[0]] * length][:length]:
        weights = {other: random.expovariate(1) for other in lexicon.tokens if other != id}
        total = sum(weights.values())
        row = {other: math.log(noise * weight / total) for other, weight in weights.items()}
        rows.append(row | {id: math.log(1 - noise)})
    return Blank(rows, [max(row.values()) for row in rows], lexicon)


@dataclass(frozen=True)
class Reader:
    """One window of a text, read by a model that writes what it is told to."""

    vocabulary: Vocabulary
    text: str
    window: Window

    def lexicon(self, *, by_line: bool) -> Lexicon:
        """The ids that a span read, or a list read when `by_line`, asks for."""
        return lexicon_of(self.window, self.vocabulary, by_line=by_line)

    def walker(self, lexicon: Lexicon) -> Walker:
        """The window's text, ready to be walked."""
        return Walker(make_search_text(self.text, self.window.start, self.window.end), lexicon)

    def ids(self, said: str) -> list[int]:
        """The ids of what the model says, line by line."""
        lexicon = self.lexicon(by_line=True)
        lines = [spelling(self.vocabulary, lexicon, line) for line in said.split("\n")]
        assert all(line is not None for line in lines), f"{said!r} cannot be spelled in this window"
        return [id for line in lines for id in (*lexicon.newlines, *(line or ()))][1:]

    def says(self, said: str | Sequence[int], *, seed: int = 0, noise: float = NOISE) -> Found:
        """What a span read comes to when the model writes this, as text or as ids."""
        lexicon = self.lexicon(by_line=False)
        return self._checked(
            decode_span(self.text, self.walker(lexicon), self._blank(lexicon, said, seed, noise))
        )

    def lists(
        self, said: str | Sequence[int], *, seed: int = 0, noise: float = NOISE, most: int = 64
    ) -> Found:
        """What a list read comes to when the model writes this, one item a line."""
        lexicon = self.lexicon(by_line=True)
        blank = self._blank(lexicon, said, seed, noise)
        return self._checked(decode_list(self.text, self.walker(lexicon), blank, most))

    def _blank(self, lexicon: Lexicon, said: str | Sequence[int], seed: int, noise: float) -> Blank:
        ids = self.ids(said) if isinstance(said, str) else said
        return blank_of_ids(lexicon, ids, max(24, len(ids) + 2), seed=seed, noise=noise)

    def _checked(self, found: Found) -> Found:
        """What holds of every answer: it lies in the window, cuts nothing, and is a probability."""
        allowed = boundaries(self.text)
        for item in found.items:
            assert self.window.start <= item.start < item.end <= self.window.end
            assert allowed[item.start]
            assert allowed[item.end]
            assert 0 <= item.confidence <= 1
            assert 0 <= item.coverage <= 1
        return found


def reader(vocabulary: Vocabulary, text: str) -> Reader:
    """The reader of a text that fits one window."""
    (window,) = make_windows(text, vocabulary)
    return Reader(vocabulary, text, window)


def pieces(text: str, found: Found | Sequence[Item]) -> list[str]:
    """The texts of items."""
    items = found.items if isinstance(found, Found) else found
    return [text[item.start : item.end] for item in items]


def places(found: Found | Sequence[Item]) -> list[tuple[int, int]]:
    """The offsets of items."""
    items = found.items if isinstance(found, Found) else found
    return [(item.start, item.end) for item in items]


def rows_of(read: Read, ids: Sequence[int], vocabulary: Vocabulary, noise: float = NOISE) -> Rows:
    """What an engine sends when the model writes these ids, also such as nobody asked for."""
    lexicon = Lexicon(dict.fromkeys(read.ids, b"x"), closers(vocabulary), newlines(vocabulary))
    blank = blank_of_ids(lexicon, ids, len(read.canvas.free), seed=read.seed, noise=noise)
    return Rows(
        logprobs=tuple(tuple(row[id] for id in read.ids) for row in blank.rows),
        top=tuple(max(row, key=row.__getitem__) for row in blank.rows),
        peaks=tuple(blank.peaks),
        served=Served("e", ms=2.5, prompt_tokens=len(read.head) + len(read.tail)),
    )


def writing(plan: Plan, say: Callable[[Read], str], noise: float = NOISE) -> Engine:
    """An engine whose model writes what `say` tells, or "none" where a window cannot spell that.

    Labels and choices get their first alternative.
    """

    def answer(read: Read) -> Result:
        if read.kind in ("label", "choose"):
            return first_label(read)
        window = Reader(plan.vocabulary, plan.decision.source, plan.windows[int(read.id.split("/")[2])])
        said = say(read)
        lines = [
            spelling(plan.vocabulary, window.lexicon(by_line=True), line) is None for line in said.split("\n")
        ]
        return decoded(
            plan, read, rows_of(read, window.ids("none" if any(lines) else said), plan.vocabulary, noise)
        )

    return answer


def found(*items: Item, confidence: float | None = None) -> Found:
    """A read that came to these items; of none, with this confidence."""
    sure = min(item.confidence for item in items) if confidence is None else confidence
    return Found(items, sure, tokens=3, served=Served("e", prompt_tokens=10))
