"""The span decoder: the best contiguous piece of a text under the logprobs of a blank.

A walk goes through the blank's positions and through the text at once. Each step takes one token that
the text has there and costs the token's *regret*: how much less likely (nats) it is than the model's
own first pick at that position. A walk starts and ends on boundaries of the text; it ends where the
blank does, or where the turn close, EOS or a newline comes next. Up to two positions may be skipped at
a cost, so that a token that the model inserted does not break it. Any white space of the model's stands
for any of the text's.

The best walk is a shortest path, found by A*: ways are followed in order of what they cost so far plus
the least that the rest of the blank costs in any text. Tokens are looked up where they stand (indexed
once), and starts are tried one after the other, so a blank that spells a piece of the text is decoded
in the time of that piece; whatever it holds, the time is bounded.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from planner.once import once
from planner.spans.search_text import SearchText, folded, make_search_text, occurrences

MOST_SKIPS = 2
SKIP_COST = 4.0
"""Nats that a skipped position costs: an inserted token must be worth more than it loses."""

MISS_COST = 8.0
"""Most nats that one token can cost: a near miss is one wrong token, however sure the model was of it."""

MOST_WAYS = 60_000
"""Ways followed through one blank before it is given up: it spells no piece of a text that repeats itself."""

Row = Mapping[int, float]


@dataclass(frozen=True)
class Lexicon:
    """The allowed ids of a read: their bytes, and which of them end an answer or a line.

    `by_line` tells whether a newline always ends a piece, or is white space that may stand in one, too.
    """

    tokens: Mapping[int, bytes]
    closers: tuple[int, ...]
    newlines: tuple[int, ...]
    by_line: bool = True

    @once
    def enders(self) -> tuple[int, ...]:
        """Every id that ends a line: turn close, EOS, newline."""
        return (*self.closers, *self.newlines)

    @once
    def spelling(self) -> dict[int, bytes]:
        """The ids that spell text, with white space folded."""
        ends = set(self.enders if self.by_line else self.closers)
        return {id: folded(data) for id, data in self.tokens.items() if id not in ends and data}


@dataclass(frozen=True)
class Blank:
    """A read blank: per position the logprobs of a lexicon's ids, and of the model's first pick.

    An id that a row lacks was not asked for there, and was not the first pick.
    """

    rows: Sequence[Row]
    peaks: Sequence[float]
    lexicon: Lexicon

    def cost(self, position: int, id: int) -> float:
        """The regret of an id at a position, zero to MISS_COST."""
        return min(MISS_COST, max(0.0, self.peaks[position] - self.rows[position].get(id, -math.inf)))

    def end_cost(self, position: int) -> float:
        """The regret of ending before a position."""
        return self._least_cost(position, self.lexicon.enders) if position < len(self.rows) else 0.0

    @once
    def ahead(self) -> list[list[float]]:
        """The least that a walk through any text still costs from a position on, by skips left."""
        spelling = list(self.lexicon.spelling)
        found = [[0.0] * (MOST_SKIPS + 1)]
        for position in reversed(range(len(self.rows))):
            end, step = self.end_cost(position), self._least_cost(position, spelling)
            after = found[-1]
            found.append(
                [
                    min(end, step + after[skips], SKIP_COST + after[skips - 1] if skips else math.inf)
                    for skips in range(MOST_SKIPS + 1)
                ]
            )
        return found[::-1]

    def first_pick(self, position: int) -> bytes:
        """What the likeliest of the ids that spell text writes at a position."""
        row, spelling = self.rows[position], self.lexicon.spelling
        return spelling[max(row.keys() & spelling.keys(), key=row.__getitem__)]

    def mass(self, position: int) -> float:
        """The probability that the allowed ids hold at a position."""
        return min(1.0, math.fsum(math.exp(value) for value in self.rows[position].values()))

    def share(self, position: int, ids: Sequence[int]) -> float:
        """The probability of some ids at a position among the allowed ones."""
        row = self.rows[position]
        peak = max(row.values())
        total = math.fsum(math.exp(value - peak) for value in row.values())
        return math.fsum(math.exp(row[id] - peak) for id in ids if id in row) / total

    def _least_cost(self, position: int, ids: Sequence[int]) -> float:
        row = self.rows[position]
        best = max((row[id] for id in ids if id in row), default=-math.inf)
        return min(MISS_COST, max(0.0, self.peaks[position] - best))


@dataclass(frozen=True, slots=True)
class Walk:
    """A piece of the search text, with the blank's positions that spelled it.

    `start` and `end` are byte offsets; `cost` is the sum of regrets and skips in nats; `steps` holds
    (position, id) of each spelled token; `stop` is the position of what ended it, the blank's length
    where nothing had to.
    """

    start: int
    end: int
    cost: float
    steps: tuple[tuple[int, int], ...]
    stop: int


_Steps = tuple[int, int, "_Steps | None"]


class _Way(NamedTuple):
    """A walk so far: what it cost, its next position, the skips it has left, and its piece of the text.

    `start` and `end` are -1 before its first token.
    """

    cost: float
    position: int
    skips: int
    start: int = -1
    end: int = -1
    steps: _Steps | None = None


@dataclass
class Walker:
    """A text indexed for one lexicon: where each token stands, and which tokens stand where.

    `patience` is how many ways its searches may still follow, all of them together.
    """

    text: SearchText
    lexicon: Lexicon
    patience: int = MOST_WAYS

    @once
    def here(self) -> list[list[tuple[int, int]]]:
        """Per byte offset the (id, length) of every token that stands there.

        A token that begins with white space stands behind white space, too: it goes on the same run.
        """
        found: list[list[tuple[int, int]]] = [[] for _ in range(len(self.text.data) + 1)]
        for id, data in self.lexicon.spelling.items():
            for place in occurrences(self.text.data, data):
                found[place].append((id, len(data)))
                if data.startswith(b" "):
                    found[place + 1].append((id, len(data) - 1))
        return found

    @once
    def starts(self) -> dict[int, tuple[list[int], int]]:
        """Per id the offsets at which a span may start with it, and its length without a leading space."""
        may = self.text.may_start
        bare = {id: data.lstrip(b" ") for id, data in self.lexicon.spelling.items()}
        return {
            id: ([place for place in occurrences(self.text.data, data) if may[place]], len(data))
            for id, data in bare.items()
            if data
        }

    @once
    def spaces(self) -> list[int]:
        """The ids that are nothing but a space: they may stand before the first token."""
        return [id for id, data in self.lexicon.spelling.items() if data == b" "]

    def best(
        self, blank: Blank, first: int = 0, least_start: int = 0, under: float = math.inf
    ) -> Walk | None:
        """The cheapest walk from position `first` on, starting at byte `least_start` or later.

        Of equally cheap ones the first in the text, then the longest. None when nothing in the text
        can be walked for less than `under` nats, or patience ran out.
        """
        return _Search(self, blank, least_start, under).run(first)


_NO_OTHERS: Iterator[_Way] = iter(())


@dataclass(frozen=True)
class _Search:
    """One search for the best walk: the ways still to follow, cheapest first."""

    walker: Walker
    blank: Blank
    least_start: int
    under: float
    queue: list[tuple[float, int, bool, int, int, _Way, Iterator[_Way]]] = field(default_factory=list)
    order: Iterator[int] = field(default_factory=count)

    def run(self, first: int) -> Walk | None:
        seen: set[tuple[int, int, int]] = set()
        self._add(_Way(0.0, first, MOST_SKIPS))
        while self.queue and self.walker.patience:
            _, _, ended, _, _, way, others = heappop(self.queue)
            self._add(next(others, None), others)
            if ended:
                return Walk(way.start, way.end, way.cost, _unlinked(way.steps), way.position)
            key = (way.position, way.end, way.skips)
            if key not in seen:
                seen.add(key)
                self.walker.patience -= 1
                self._follow(way)
        return None

    def _add(self, way: _Way | None, others: Iterator[_Way] = _NO_OTHERS, *, ended: bool = False) -> None:
        """Queue a way; `others` cost the same, lie behind it in text order, and wait for it."""
        if way is None:
            return
        due = way.cost if ended else way.cost + self.blank.ahead[way.position][way.skips]
        if due < self.under:
            # Of what costs the same, the earliest start comes first, and there the longest end.
            heappush(self.queue, (due, way.start, ended, -way.end, next(self.order), way, others))

    def _follow(self, way: _Way) -> None:
        """Queue every way that goes one position further, and the end of this one."""
        cost, position, skips, start, end, steps = way
        blank, further = self.blank, position + 1
        if end >= 0 and self.walker.text.may_end[end]:
            self._add(way._replace(cost=cost + blank.end_cost(position)), ended=True)
        if position == len(blank.rows):
            return
        if skips:
            self._add(_Way(cost + SKIP_COST, further, skips - 1, start, end, steps))
        if end >= 0:
            for id, size in self.walker.here[end]:
                spent = cost + blank.cost(position, id)
                self._add(_Way(spent, further, skips, start, end + size, (position, id, steps)))
            return
        for id in self.walker.starts:
            ways = self._started(_Way(cost + blank.cost(position, id), further, skips), id)
            self._add(next(ways, None), ways)
        for id in self.walker.spaces:
            self._add(_Way(cost + blank.cost(position, id), further, skips))

    def _started(self, way: _Way, id: int) -> Iterator[_Way]:
        """The ways that begin with a token, in text order."""
        places, size = self.walker.starts[id]
        steps = (way.position - 1, id, None)
        for number in range(bisect_left(places, self.least_start), len(places)):
            start = places[number]
            yield _Way(way.cost, way.position, way.skips, start, start + size, steps)


def _unlinked(steps: _Steps | None) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    while steps is not None:
        position, id, steps = steps
        found.append((position, id))
    return tuple(reversed(found))


NONE_TEXT = make_search_text("none", 0, 4)
"""The answer that says there is none, as a text of its own: it is walked like any other."""
