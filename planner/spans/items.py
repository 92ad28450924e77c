"""Items: what a read blank says, as pieces of the state's text."""

from __future__ import annotations

from collections.abc import Sequence

from planner.reads import Found, Item
from planner.spans.decoder import NONE_TEXT, Blank, Lexicon, Walk, Walker
from planner.spans.trimming import trimmed

SAME_LINE = 0.5
"""Nats by which a line may fit better before the last item than after it and still count as after."""

LEAST_EVIDENCE = 0.01
"""Confidence times coverage under which a line of a list is no item: its words are not in the text."""


def decode_span(text: str, walker: Walker, blank: Blank) -> Found:
    """The one piece of the text that a blank spells, or none."""
    none = Walker(NONE_TEXT, walker.lexicon).best(blank)
    walk = walker.best(blank)
    if walk is None or (none is not None and none.score >= walk.score):
        return _nothing(walker.lexicon, blank, none)
    item = _item(text, walker, blank, walk)
    return Found((item,), item.confidence, tokens=walk.stop)


def decode_list(text: str, walker: Walker, blank: Blank, most: int) -> Found:
    """The pieces that a blank spells line by line, at most `most`, each starting after the one before.

    A line whose words stand only where an item already is repeats that item and is none of its own.
    """
    none = Walker(NONE_TEXT, walker.lexicon)
    items: list[Item] = []
    walks: list[Walk] = []
    position = 0
    while position < len(blank.rows) and len(items) < most:
        walk = _line(walker, blank, position, walks)
        nothing = none.best(blank, position)
        if walk is None or (nothing is not None and nothing.score >= walk.score):
            if not items:
                return _nothing(walker.lexicon, blank, nothing)
            break
        item = _item(text, walker, blank, walk)
        grounded = item.confidence * item.coverage >= LEAST_EVIDENCE
        if grounded and not any(walk.start < other.end and other.start < walk.end for other in walks):
            items.append(item)
            walks.append(walk)
        if _closes(walker.lexicon, blank, walk.stop):
            break
        position = walk.stop + 1
    confidence = min((item.confidence for item in items), default=0.0)
    return Found(tuple(items), confidence, tokens=min(position, len(blank.rows)))


def _nothing(lexicon: Lexicon, blank: Blank, none: Walk | None) -> Found:
    """The text has no answer: the model wrote "none", or nothing that can be walked."""
    if none is None:
        return Found((), 0.0, tokens=len(blank.rows))
    return Found((), _confidence(lexicon, blank, none), tokens=none.stop)


def _line(walker: Walker, blank: Blank, position: int, walks: Sequence[Walk]) -> Walk | None:
    """The best piece for the line at a position: after the last item, unless it fits far better before."""
    anywhere = walker.best(blank, position)
    if anywhere is None or not walks:
        return anywhere
    after = walker.best(blank, position, least_start=walks[-1].end)
    return after if after is not None and after.score >= anywhere.score - SAME_LINE else anywhere


def _closes(lexicon: Lexicon, blank: Blank, position: int) -> bool:
    """Whether a blank ends at a position, rather than going on with another line."""
    if position >= len(blank.rows):
        return True
    row = blank.rows[position]
    return max(row[id] for id in lexicon.closers) >= max(row[id] for id in lexicon.newlines)


def _item(text: str, walker: Walker, blank: Blank, walk: Walk) -> Item:
    origin = walker.text.origin
    start, end = trimmed(text, origin[walk.start], origin[walk.end])
    return Item(start, end, _confidence(walker.lexicon, blank, walk), _coverage(blank, walk))


def _confidence(lexicon: Lexicon, blank: Blank, walk: Walk) -> float:
    """The weakest share along a walk. Spellings of one piece with and without a space count together."""
    shares = [
        blank.share(position, _spelled_alike(lexicon, id) if place == 0 else (id,))
        for place, (position, id) in enumerate(walk.steps)
    ]
    if walk.stop < len(blank.rows):
        shares.append(blank.share(walk.stop, lexicon.enders))
    return min(shares)


def _coverage(blank: Blank, walk: Walk) -> float:
    places = {position for position, _ in walk.steps} | {walk.stop} & set(range(len(blank.rows)))
    return min(blank.mass(position) for position in places)


def _spelled_alike(lexicon: Lexicon, id: int) -> list[int]:
    bare = lexicon.spelling[id].lstrip(b" ")
    return [other for other, data in lexicon.spelling.items() if data.lstrip(b" ") == bare]
