"""Marks: where in a text the answers of span questions stand. Pure.

Offsets count code points of the source text (API.md, section 1). An offset that does not fit its text is
a fault of the server: it is told, and never drawn.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

AROUND = 80
"""Code points of a long text that are shown on each side of a mark."""

_LEAST_GAP = 40  # fewer left out would not be worth the words that say so
_REACH = 20  # how far a cut moves to come to stand between two words
_JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class Mark:
    """One found piece. `color` counts the decision's span questions from zero."""

    question: str
    color: int
    start: int
    end: int
    confidence: float | None

    @property
    def tag(self) -> str:
        """What stands beside the piece."""
        return self.question if self.confidence is None else f"{self.question} {self.confidence:.2f}"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Text under the same marks throughout, the shortest mark first; those that begin and end with it.

    `opens` holds the outer ones first and `closes` the inner ones.
    """

    text: str
    marks: tuple[Mark, ...] = ()
    opens: tuple[Mark, ...] = ()
    closes: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """So many code points that are left out."""

    size: int


def source_text(state: Any) -> str:
    """The text that offsets index: a string state, the `text` of an object, else the state's JSON."""
    if isinstance(state, Mapping) and isinstance(state.get("text"), str):
        return str(state["text"])
    return state_text(state)


def state_text(state: Any) -> str:
    """The state as the model reads it: a string as itself, else JSON that keeps non-ASCII as itself."""
    return state if isinstance(state, str) else json.dumps(state, ensure_ascii=False)


def span_answers(answers: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The answers of span questions, in order."""
    return {
        id: answer
        for id, answer in answers.items()
        if isinstance(answer, Mapping) and answer.get("type") in ("span", "spans")
    }


def items_of(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The pieces that a span answer found."""
    if answer.get("type") == "spans":
        return list(answer.get("items") or [])
    return [answer] if answer.get("found") else []


def fits(source: str, item: Mapping[str, Any]) -> bool:
    """Whether an item is the piece of the text that its offsets say, in UTF-16 too where it says so."""
    start, end, text = item.get("start"), item.get("end"), item.get("text")
    if not (type(start) is int and type(end) is int and isinstance(text, str)):
        return False
    if not 0 <= start < end <= len(source) or source[start:end] != text:
        return False
    wide = (item.get("start_utf16", _wide(source[:start])), item.get("end_utf16", _wide(source[:end])))
    return wide == (_wide(source[:start]), _wide(source[:end]))


def faults(source: str, answers: Mapping[str, Any]) -> list[str]:
    """A sentence for each item whose text does not stand where its offsets say."""
    return [
        f"{id}: {item.get('text')!r} does not stand at {item.get('start')} to {item.get('end')}"
        for id, answer in span_answers(answers).items()
        for item in items_of(answer)
        if not fits(source, item)
    ]


def marks_of(source: str, answers: Mapping[str, Any]) -> list[Mark]:
    """A mark for every item that fits the text."""
    return [
        Mark(id, color, item["start"], item["end"], item.get("confidence"))
        for color, (id, answer) in enumerate(span_answers(answers).items())
        for item in items_of(answer)
        if fits(source, item)
    ]


def stretches(source: str, marks: Sequence[Mark], whole: int) -> Iterator[Stretch | Gap]:
    """The text cut where a mark begins or ends. Of one longer than `whole`, what lies around the marks."""
    done = 0
    for start, end in _shown(source, marks, whole):
        if start > done:
            yield Gap(start - done)
        yield from _cut(source, marks, start, end)
        done = end
    if done < len(source):
        yield Gap(len(source) - done)


def _cut(source: str, marks: Sequence[Mark], start: int, end: int) -> Iterator[Stretch]:
    inside = [mark for mark in marks if start <= mark.start and mark.end <= end]
    borders = sorted({start, end, *(mark.start for mark in inside), *(mark.end for mark in inside)})
    for low, high in pairwise(borders):
        over = sorted(
            (mark for mark in inside if mark.start <= low and high <= mark.end),
            key=lambda mark: (mark.end - mark.start, -mark.color),
        )
        yield Stretch(
            source[low:high],
            tuple(over),
            opens=tuple(mark for mark in reversed(over) if mark.start == low),
            closes=tuple(mark for mark in over if mark.end == high),
        )


def _shown(source: str, marks: Sequence[Mark], whole: int) -> list[tuple[int, int]]:
    """The ranges of the text that are shown, in order and apart."""
    if len(source) <= whole:
        return [(0, len(source))]
    if not marks:
        return [(0, _outwards(source, whole, 1))]
    shown: list[tuple[int, int]] = []
    for mark in sorted(marks, key=lambda mark: mark.start):
        low = _outwards(source, mark.start - AROUND, -1)
        high = _outwards(source, mark.end + AROUND, 1)
        low = 0 if low < _LEAST_GAP else low
        high = len(source) if len(source) - high < _LEAST_GAP else high
        if shown and low - shown[-1][1] < _LEAST_GAP:
            before = shown.pop()
            low, high = before[0], max(before[1], high)
        shown.append((low, high))
    return shown


def _outwards(source: str, place: int, step: int) -> int:
    """The nearest place, going one way, between two words; else one that cuts no character."""
    place = max(0, min(len(source), place))
    for near in range(place, place + step * _REACH, step):
        if not 0 < near < len(source) or source[near - 1].isspace() or source[near].isspace():
            return max(0, min(len(source), near))
    while 0 < place < len(source) and _joined(source[place - 1], source[place]):
        place += step
    return place


def _joined(before: str, after: str) -> bool:
    return _JOINER in (before, after) or unicodedata.category(after)[0] == "M"


def _wide(text: str) -> int:
    """The length of a text in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
