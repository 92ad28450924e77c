"""Trimming: what does not belong to a value at its ends, though the model copied it.

The policy, applied to `text[start:end]` until nothing changes:

* white space goes at both ends;
* sentence punctuation goes at the end (`.` `,` `;` `:` `!` `?`, the ellipsis, and their CJK and Arabic
  forms), but a full stop stays when it ends an abbreviation: single letters with full stops between
  (`U.S.`, `a.m.`), or a word of `ABBREVIATIONS` (`Inc.`);
* a bracket or quote goes when its partner is not in the span: `(415)` stays whole, of `(dana@x.example`
  the bracket goes;
* everything else stays: `$`, `%`, `#`, `-`.

A span of nothing else is left as it is.
"""

from __future__ import annotations

import regex

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
SAME_PAIRS = frozenset("\"'`")

_DOTTED_LETTERS = regex.compile(r"(?:^|[^\p{L}\p{N}])(?:\p{L}\.){1,}$", regex.V1)
_LAST_WORD = regex.compile(r"([\p{L}.]+)\.$", regex.V1)


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The code point range left of `text[start:end]` by the policy above."""
    low, high = start, end
    while low < high:
        if text[low].isspace() or _opens_alone(text, low, high):
            low += 1
        elif text[high - 1].isspace() or _ends_a_sentence(text, low, high) or _closes_alone(text, low, high):
            high -= 1
        else:
            return low, high
    return start, end


def _ends_a_sentence(text: str, low: int, high: int) -> bool:
    last = text[high - 1]
    if last not in SENTENCE_PUNCTUATION:
        return False
    return last != "." or not _is_abbreviation(text[low:high])


def _is_abbreviation(piece: str) -> bool:
    if _DOTTED_LETTERS.search(piece):
        return True
    word = _LAST_WORD.search(piece)
    return word is not None and word[1].lower() in ABBREVIATIONS


def _opens_alone(text: str, low: int, high: int) -> bool:
    first, rest = text[low], text[low + 1 : high]
    if first in SAME_PAIRS:
        return first not in rest
    return first in PAIRS and PAIRS[first] not in rest


def _closes_alone(text: str, low: int, high: int) -> bool:
    last, rest = text[high - 1], text[low : high - 1]
    if last in SAME_PAIRS:
        return last not in rest
    openers = [opener for opener, closer in PAIRS.items() if closer == last]
    return bool(openers) and openers[0] not in rest
