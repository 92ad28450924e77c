"""Trimming: what does not belong to a value at its ends, though the model copied it.

The policy, applied to `text[start:end]` until nothing changes:

* white space goes at both ends;
* sentence punctuation goes at the end (`.` `,` `;` `:` `!` `?`, the ellipsis, and their CJK and Arabic
  forms), but a full stop stays when it ends an abbreviation: single letters with full stops between
  (`U.S.`, `a.m.`), or a word of `ABBREVIATIONS` (`Inc.`);
* a bracket or quote goes when its partner is not in the span: `(415)` stays whole, of `(dana@x.example`
  the bracket goes; a quote behind a digit is a unit and stays (`6'2"`);
* everything else stays: `$`, `%`, `#`, `-`.

A span of nothing else is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import regex

from planner.spans.boundaries import graphemes

SENTENCE_PUNCTUATION = frozenset(".,;:!?…。，、；：！？｡､،؛؟۔।")
ABBREVIATIONS = frozenset(
    {
        "inc",
        "ltd",
        "co",
        "corp",
        "llc",
        "plc",
        "bros",
        "dept",
        "est",
        "jr",
        "sr",
        "dr",
        "mr",
        "mrs",
        "ms",
        "prof",
        "st",
        "ave",
        "blvd",
        "rd",
        "no",
        "nos",
        "vol",
        "vs",
        "etc",
        "approx",
        "fig",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
        "gmbh",
        "bzw",
        "nr",
        "str",
    }
)
PAIRS = {
    "(": ")",
    "[": "]",
    "{": "}",
    "<": ">",
    "«": "»",
    "“": "”",
    "‘": "’",
    "「": "」",
    "（": "）",
    "【": "】",
}
OPENERS = {closer: opener for opener, closer in PAIRS.items()}
SAME_PAIRS = frozenset("\"'`")

_DOTTED_LETTERS = regex.compile(r"(?:^|[^\p{L}\p{N}])(?:\p{L}\.){1,}$", regex.V1)
_LAST_WORD = regex.compile(r"([\p{L}.]+)\.$", regex.V1)


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The code point range left of `text[start:end]` by the policy above. No grapheme is cut."""
    parts = graphemes(text[start:end])
    low, high = 0, len(parts)
    while low < high:
        piece = parts[low:high]
        if piece[0].isspace() or _stands_alone(piece[0], piece[1:], PAIRS):
            low += 1
        elif piece[-1].isspace() or _ends_a_sentence(piece) or _stands_alone(piece[-1], piece[:-1], OPENERS):
            high -= 1
        else:
            return start + len("".join(parts[:low])), end - len("".join(parts[high:]))
    return start, end


def _ends_a_sentence(piece: Sequence[str]) -> bool:
    return piece[-1] in SENTENCE_PUNCTUATION and not (piece[-1] == "." and _is_abbreviation("".join(piece)))


def _is_abbreviation(piece: str) -> bool:
    if _DOTTED_LETTERS.search(piece):
        return True
    word = _LAST_WORD.search(piece)
    return word is not None and word[1].lower() in ABBREVIATIONS


def _stands_alone(mark: str, rest: Sequence[str], partners: Mapping[str, str]) -> bool:
    """Whether a bracket or quote at one end has no partner in the rest of its piece.

    A quote right behind a digit at the end is a unit: feet, inches, minutes, seconds.
    """
    if mark in "'\"" and partners is OPENERS and rest and rest[-1].isdigit():
        return False
    partner = mark if mark in SAME_PAIRS else partners.get(mark)
    return partner is not None and partner not in rest
