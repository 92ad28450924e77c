"""The span decoder: the best contiguous piece of a text under the logprobs of a blank.

A walk goes through the blank's positions and through the text at once. Each step takes one token that
the text has there and costs the token's *regret*: how much less likely (nats) it is than the model's
own first pick at that position. A walk starts and ends on boundaries of the text; it ends where the
blank does, or where the turn close, EOS or a newline comes next. Up to two positions may be skipped at
a cost, so that a token that the model inserted does not break it.

The walk keeps the best way to every (text offset, skips) at each position, as long as it is within
`MARGIN` of the best and at most `BEAM` of them. Tokens are looked up where they stand (indexed once), so
its cost is linear in the text.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from planner.spans.search_text import SearchText, folded, make_search_text, occurrences

MOST_SKIPS = 2
SKIP_COST = 4.0
"""Nats that a skipped position costs: an inserted token must be worth more than it loses."""

MISS_COST = 8.0
"""Most nats that one token can cost: a near miss is one wrong token, however sure the model was of it."""

MARGIN = 25.0
"""Nats behind the best way at which another one is given up."""

BEAM = 4096
"""Most ways kept at one position; a text that repeats its words has many equally good starts."""

Row = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Blank:
    """A read blank: per position the logprobs of the allowed ids, and of the model's first pick."""

    rows: Sequence[Row]
    peaks: Sequence[float]

    def regret(self, position: int, id: int) -> float:
        """How much less likely an id is than the model's first pick there: -MISS_COST to zero, nats."""
        return max(-MISS_COST, min(0.0, self.rows[position][id] - self.peaks[position]))

    def mass(self, position: int) -> float:
        """The probability that the allowed ids hold at a position."""
        return min(1.0, math.fsum(math.exp(value) for value in self.rows[position].values()))

    def share(self, position: int, ids: Sequence[int]) -> float:
        """The probability of some ids at a position among the allowed ones."""
        row = self.rows[position]
        peak = max(row.values())
        total = math.fsum(math.exp(value - peak) for value in row.values())
        return math.fsum(math.exp(row[id] - peak) for id in ids) / total


@dataclass(frozen=True)
class Lexicon:
    """The allowed ids of a read: their bytes, and which of them end an answer or a line."""

    tokens: Mapping[int, bytes]
    closers: tuple[int, ...]
    newlines: tuple[int, ...]

    @cached_property
    def enders(self) -> tuple[int, ...]:
        """Every id that ends a line: turn close, EOS, newline."""
        return (*self.closers, *self.newlines)

    @cached_property
    def spelling(self) -> dict[int, bytes]:
        """The ids that spell text, with white space folded."""
        ends = set(self.enders)
        return {id: folded(data) for id, data in self.tokens.items() if id not in ends and data}


@dataclass(frozen=True, slots=True)
class Walk:
    """A piece of the search text, with the blank's positions that spelled it.

    `start` and `end` are byte offsets; `score` is the sum of regrets and costs (nats, at most zero);
    `steps` holds (position, id) of each spelled token; `stop` is the position of what ended it, the
    blank's length where nothing had to.
    """

    start: int
    end: int
    score: float
    steps: tuple[tuple[int, int], ...]
    stop: int


@dataclass(frozen=True)
class Walker:
    """A text indexed for one lexicon: where each token stands, and which tokens stand where."""

    text: SearchText
    lexicon: Lexicon

    @cached_property
    def here(self) -> list[list[tuple[int, int]]]:
        """Per byte offset the (id, length) of every token that stands there."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(len(self.text.data) + 1)]
        for id, data in self.lexicon.spelling.items():
            for place in occurrences(self.text.data, data):
                found[place].append((id, len(data)))
        return found

    @cached_property
    def starts(self) -> dict[int, list[int]]:
        """Per id the offsets at which a span may start with it; a leading space of it is dropped."""
        may = self.text.may_start
        return {
            id: [place for place in occurrences(self.text.data, bare) if may[place]]
            for id, data in self.lexicon.spelling.items()
            if (bare := data.lstrip(b" "))
        }

    def best(self, blank: Blank, first: int = 0, least_start: int = 0) -> Walk | None:
        """The best walk from position `first` on, starting at byte `least_start` or later.

        Of equally good ones the first in the text. None when nothing in the text can be walked.
        """
        length = len(blank.rows)
        ends = [self._end_regret(blank, position) for position in range(length)] + [0.0]
        # State: (text offset, skips) -> (score, -start, steps as a linked list).
        states: dict[tuple[int, int], _State] = {}
        before: dict[int, float] = {0: 0.0}
        found: tuple[float, int, int, _State] | None = None
        for position in range(first, length + 1):
            for (offset, _), state in states.items():
                if self.text.may_end[offset]:
                    # Ties go to the earlier start, then to the longer piece.
                    rank = (state[0] + ends[position], state[1], offset, state)
                    if found is None or rank[:3] > found[:3]:
                        found = rank
                        stop = position
            if position == length:
                break
            following: dict[tuple[int, int], _State] = {}
            self._extend(blank, position, states, following)
            before = self._enter(blank, position, before, following, least_start)
            states = _pruned(following)
        if found is None:
            return None
        score, minus_start, end, state = found
        return Walk(-minus_start, end, score, _unlinked(state[2]), stop)

    def _extend(
        self,
        blank: Blank,
        position: int,
        states: Mapping[tuple[int, int], _State],
        following: dict[tuple[int, int], _State],
    ) -> None:
        for (offset, skips), (score, start, steps) in states.items():
            for id, size in self.here[offset]:
                regret = blank.regret(position, id)
                _keep(following, (offset + size, skips), (score + regret, start, (position, id, steps)))
            if skips < MOST_SKIPS:
                _keep(following, (offset, skips + 1), (score - SKIP_COST, start, steps))

    def _enter(
        self,
        blank: Blank,
        position: int,
        before: Mapping[int, float],
        following: dict[tuple[int, int], _State],
        least_start: int,
    ) -> dict[int, float]:
        """Start walks at this position; returns the ways (skips to score) to start at the next."""
        later: dict[int, float] = {}
        for skips, score in before.items():
            for id, places in self.starts.items():
                regret = blank.regret(position, id)
                size = len(self.lexicon.spelling[id].lstrip(b" "))
                for place in places:
                    if place >= least_start:
                        _keep(
                            following, (place + size, skips), (score + regret, -place, (position, id, None))
                        )
            if skips < MOST_SKIPS:
                _raise_to(later, skips + 1, score - SKIP_COST)
            for id, data in self.lexicon.spelling.items():
                if data == b" ":
                    _raise_to(later, skips, score + blank.regret(position, id))
        return later

    def _end_regret(self, blank: Blank, position: int) -> float:
        return max(blank.regret(position, id) for id in self.lexicon.enders)


_Steps = tuple[int, int, "_Steps | None"]
_State = tuple[float, int, "_Steps | None"]


def _keep(states: dict[tuple[int, int], _State], key: tuple[int, int], state: _State) -> None:
    held = states.get(key)
    if held is None or state[:2] > held[:2]:
        states[key] = state


def _raise_to(scores: dict[int, float], skips: int, score: float) -> None:
    scores[skips] = max(score, scores.get(skips, -math.inf))


def _pruned(states: dict[tuple[int, int], _State]) -> dict[tuple[int, int], _State]:
    if not states:
        return states
    least = max(state[0] for state in states.values()) - MARGIN
    kept = {key: state for key, state in states.items() if state[0] >= least}
    if len(kept) <= BEAM:
        return kept
    return dict(heapq.nlargest(BEAM, kept.items(), key=lambda item: item[1][:2]))


def _unlinked(steps: _Steps | None) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    while steps is not None:
        position, id, steps = steps
        found.append((position, id))
    return tuple(reversed(found))


NONE_TEXT = make_search_text("none", 0, 4)
"""The answer that says there is none, as a text of its own: it is walked like any other."""
