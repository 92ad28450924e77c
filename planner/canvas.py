"""Canvases: a template with noise in its slots, the turn close, and padding.

The rules are vLLM's: exactly as many ids as the canvas is wide, widths in steps of 16 up to the
served canvas, every id inside the vocabulary, at least one padding row after the turn close.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from planner.vocabulary import Vocabulary

WIDTH_STEP = 16

AROUND = 2
"""Tokens that every canvas holds beside its template: the turn close and one padding row."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """The fixed text of a canvas: `ids` before noise, and the positions left `free` for it.

    Everything else is pinned. `width` is in tokens.
    """

    ids: tuple[int, ...]
    free: tuple[int, ...]
    size: int

    @property
    def width(self) -> int:
        """Tokens in the canvas."""
        return len(self.ids)

    @property
    def pinned(self) -> list[int]:
        """The positions held at their seed value.

        Sent with every read: a one-step read is the same with and without them, and they tell an
        engine that emulates canvases which positions are slots.
        """
        free = set(self.free)
        return [place for place in range(len(self.ids)) if place not in free]

    def seeded(self, seed: int) -> list[int]:
        """The ids with noise in the free positions: a uniform draw over the vocabulary by `seed`."""
        ids = list(self.ids)
        for place, noise in zip(self.free, _noise(seed, len(self.free), self.size), strict=True):
            ids[place] = noise
        return ids


@lru_cache(maxsize=4096)
def _noise(seed: int, count: int, size: int) -> tuple[int, ...]:
    """`count` token ids; a longer draw of the same seed begins with the shorter one."""
    random = Random(seed)
    return tuple(random.randrange(size) for _ in range(count))


def width_for(template_length: int) -> int:
    """The narrowest canvas, in tokens, for a template: turn close and one padding row included."""
    return -(-(template_length + AROUND) // WIDTH_STEP) * WIDTH_STEP


@lru_cache(maxsize=4096)
def make_canvas(vocabulary: Vocabulary, template_ids: tuple[int, ...], free: Sequence[int]) -> Canvas:
    """The canvas of a template whose `free` positions are read. The caller has checked its width."""
    width = width_for(len(template_ids))
    padding = (vocabulary.pad,) * (width - len(template_ids) - 1)
    return Canvas(
        ids=(*template_ids, vocabulary.turn_close, *padding), free=tuple(free), size=vocabulary.size
    )
