"""Items: what a read blank says, as pieces of the state's text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.reads import Found, Item
from planner.spans.decoder import MISS_COST, NONE_TEXT, Blank, Lexicon, Walk, Walker
from planner.spans.trimming import trimmed

SAME_LINE = 0.5
"""Nats by which a line may fit better before the last item than after it and still count as after."""

MOST_WHEN_SKIPPED = 0.25
"""Most confidence of a piece in or before which the model wrote something that is not in the text."""

LEAST_EVIDENCE = 0.01
"""Confidence times coverage under which a line of a list is no item: its words are not in the text."""


def decode_span(text: str, walker: Walker, blank: Blank) -> Found:
    """The one piece of the text that a blank spells, or none."""
    none = _none(blank, 0)
    walk = walker.best(blank, under=_cost(none))
    if walk is None:
        return _nothing(blank, none)
    item = _item(text, walker, blank, walk, 0)
    return Found((item,), item.confidence, tokens=walk.stop)


def decode_list(text: str, walker: Walker, blank: Blank, most: int) -> Found:
    """The pieces that a blank spells line by line, at most `most`, each starting after the one before.

    A line whose words stand only where an item already is repeats that item and is none of its own; one
    whose words are not in the text is passed over.
    """
    items: list[Item] = []
    walks: list[Walk] = []
    position = stop = 0
    while position < len(blank.rows) and len(items) < most:
        none = _none(blank, position)
        walk = _line(walker, blank, position, walks, _cost(none))
        if (
            walk is not None
            and _evidence(item := _item(text, walker, blank, walk, position)) >= LEAST_EVIDENCE
        ):
            stop = walk.stop
            if not any(walk.start < other.end and other.start < walk.end for other in walks):
                items.append(item)
                walks.append(walk)
        elif walk is None and _cost(none) < MISS_COST:
            break
        else:
            stop = _line_end(blank, position)
        if _closes(blank, stop):
            break
        position = stop + 1
    if not items:
        return _nothing(blank, _none(blank, 0))
    return Found(tuple(items), min(item.confidence for item in items), tokens=stop)


def _none(blank: Blank, position: int) -> Walk | None:
    """How the blank spells "none" from a position on."""
    return Walker(NONE_TEXT, blank.lexicon).best(blank, position)


def _cost(walk: Walk | None) -> float:
    return math.inf if walk is None else walk.cost


def _nothing(blank: Blank, none: Walk | None) -> Found:
    """The text has no answer: the model wrote "none", or nothing that can be walked."""
    if none is None:
        return Found((), 0.0, tokens=len(blank.rows))
    return Found((), _confidence(blank, none, 0), tokens=none.stop)


def _line(walker: Walker, blank: Blank, position: int, walks: Sequence[Walk], under: float) -> Walk | None:
    """The best piece for the line at a position: after the last item, unless it fits far better before."""
    after = walker.best(blank, position, walks[-1].end if walks else 0, under)
    if not walks:
        return after
    anywhere = walker.best(blank, position, under=min(under, _cost(after) - SAME_LINE))
    return anywhere or after


def _line_end(blank: Blank, position: int) -> int:
    """Where the line at a position ends that spells nothing of the text."""
    while position < len(blank.rows) and blank.end_cost(position) > 0:
        position += 1
    return position


def _closes(blank: Blank, position: int) -> bool:
    """Whether a blank ends at a position, rather than going on with another line."""
    if position >= len(blank.rows):
        return True
    return blank.share(position, blank.lexicon.closers) >= blank.share(position, blank.lexicon.newlines)


def _item(text: str, walker: Walker, blank: Blank, walk: Walk, first: int) -> Item:
    origin = walker.text.origin
    start, end = trimmed(text, origin[walk.start], origin[walk.end])
    return Item(start, end, _confidence(blank, walk, first), _coverage(blank, walk))


def _evidence(item: Item) -> float:
    return item.confidence * item.coverage


def _confidence(blank: Blank, walk: Walk, first: int) -> float:
    """The weakest share along a walk from position `first` on, and little where positions were skipped.

    Spellings of one piece with and without a space count together.
    """
    shares = [
        blank.share(position, _spelled_alike(blank.lexicon, id) if place == 0 else (id,))
        for place, (position, id) in enumerate(walk.steps)
    ]
    if walk.stop < len(blank.rows):
        shares.append(blank.share(walk.stop, blank.lexicon.enders))
    if _skips(blank, walk, first):
        shares.append(MOST_WHEN_SKIPPED)
    return min(shares)


def _skips(blank: Blank, walk: Walk, first: int) -> bool:
    """Whether a walk left out a position that the model did not fill with mere white space."""
    walked = {position for position, _ in walk.steps}
    skipped = (position for position in range(first, walk.stop) if position not in walked)
    return any(blank.first_pick(position) != b" " for position in skipped)


def _coverage(blank: Blank, walk: Walk) -> float:
    places = {position for position, _ in walk.steps} | {walk.stop} & set(range(len(blank.rows)))
    return min(blank.mass(position) for position in places)


def _spelled_alike(lexicon: Lexicon, id: int) -> list[int]:
    bare = lexicon.spelling[id].lstrip(b" ")
    return [other for other, data in lexicon.spelling.items() if data.lstrip(b" ") == bare]
