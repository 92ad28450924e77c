"""Boundaries: where in a text a span may start and end.

A span never cuts a grapheme (an emoji with its joiners, a flag, a letter with its marks), nor a word.
Scripts that write no spaces between words are bounded at every grapheme, and so is Hangul, which writes
particles onto words.
"""

from __future__ import annotations

import regex

_GRAPHEME = regex.compile(r"\X")
_UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]", regex.V1
)
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]", regex.V1)

_NEAR = 16
"""Code points looked at before an edge of a range, to know the grapheme there. Even: flags are pairs."""


def boundaries(text: str, start: int = 0, end: int | None = None) -> list[bool]:
    """For every code point offset from `start` to `end`, whether a span of `text` may start or end there.

    What stands around the range counts: an edge that cuts a word or a grapheme is no boundary.
    """
    end = len(text) if end is None else end
    found = [False] * (end - start) + [True]
    before_in_word = start > 0 and _is_in_word(graphemes(text[max(0, start - _NEAR) : start])[-1])
    for match in _GRAPHEME.finditer(text, start, end):
        in_word = _is_in_word(match[0])
        found[match.start() - start] = not (before_in_word and in_word)
        before_in_word = in_word
    if end < len(text):
        found[-1] = not (before_in_word and _is_in_word(text[end]))
    for edge in {start, end} - {0, len(text)}:
        near = text[max(0, edge - _NEAR) : edge]
        found[edge - start] &= len(graphemes(near + text[edge])) > len(graphemes(near))
    return found


def graphemes(text: str) -> list[str]:
    """A text as the characters that a reader sees."""
    return _GRAPHEME.findall(text)


def _is_in_word(grapheme: str) -> bool:
    """Whether a character goes on a word that stands before it."""
    first = grapheme[0]
    return _WORD.match(first) is not None and _UNSPACED.match(first) is None
