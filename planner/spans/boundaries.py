"""Boundaries: where in a text a span may start and end.

A span never cuts a grapheme (an emoji with its joiners, a flag, a letter with its marks), nor a word.
Scripts that write no spaces between words are bounded at every grapheme.
"""

from __future__ import annotations

import regex

_GRAPHEME = regex.compile(r"\X")
_UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]", regex.V1
)
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]", regex.V1)


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that writes no spaces between words."""
    return _UNSPACED.match(character) is not None


def boundaries(text: str) -> list[bool]:
    """For every code point offset from 0 to `len(text)`, whether a span may start or end there."""
    found = [False] * (len(text) + 1)
    before_in_word = False
    for match in _GRAPHEME.finditer(text):
        start = match.start()
        first = text[start]
        in_word = _WORD.match(first) is not None and not is_unspaced(first)
        found[start] = not (before_in_word and in_word)
        before_in_word = in_word
    found[len(text)] = True
    return found
