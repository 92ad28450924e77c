"""Draws: reads that differ in their seed alone, which an engine may be able to make in one request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from planner.reads import Read

MOST_DRAWS = 32
"""Most draws that one request asks for."""


def in_draws(reads: Sequence[Read], most: int) -> list[tuple[Read, ...]]:
    """Reads in groups of up to `most` that are draws of one canvas; any other read is a group of its own.

    Groups with the same label ids come one after the other: an engine that looks at the labels alone is
    fastest when all that it reads at once have the same ones.
    """
    groups: defaultdict[tuple[object, ...], list[Read]] = defaultdict(list)
    for read in reads:
        alone = () if read.kind == "label" else (read.id,)
        groups[(read.ids, id(read.head), read.tail, read.canvas, read.steps, *alone)].append(read)
    ordered = sorted(groups.values(), key=lambda group: group[0].ids)
    return [tuple(group[start : start + most]) for group in ordered for start in range(0, len(group), most)]
