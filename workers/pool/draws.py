"""Draws: reads that differ in their seed alone, which an engine may be able to make in one request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from planner.reads import AnyRead, Read

MOST_DRAWS = 32
"""Most draws that one request asks for."""


def in_draws(reads: Sequence[AnyRead], most: int) -> list[tuple[AnyRead, ...]]:
    """Reads in groups of up to `most` that are draws of one canvas; any other read is a group of its own.

    Groups with the same label ids come one after the other: an engine that looks at the labels alone is
    fastest when all that it reads at once have the same ones.
    """
    texts: list[tuple[AnyRead, ...]] = [(read,) for read in reads if not isinstance(read, Read)]
    groups: defaultdict[tuple[object, ...], list[Read]] = defaultdict(list)
    for read in (read for read in reads if isinstance(read, Read)):
        alone = () if read.kind == "label" else (read.id,)
        key = (read.ids, id(read.head), read.tail, read.message, read.canvas, read.steps, *alone)
        groups[key].append(read)
    ordered = sorted(groups.values(), key=lambda group: group[0].ids)
    return texts + [
        tuple(group[start : start + most]) for group in ordered for start in range(0, len(group), most)
    ]
