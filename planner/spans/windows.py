"""Windows: pieces of a long text that one read can score, and the ids it asks for.

A read asks for at most 128 ids. A text that is spelled with more is cut at sentences into windows with
one sentence of overlap; a sentence that is too long by itself is cut at words, with some words of
overlap; a word that is too long, at graphemes. Time and memory are linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex
from sentencex import get_sentence_boundaries

from planner.reads import MAX_IDS, Ids
from planner.spans.boundaries import is_unspaced
from planner.spans.decoder import Lexicon
from planner.vocabulary import Vocabulary

OVERLAP_WORDS = 12
"""Words that the pieces of a too long sentence share, so that a value across a cut is whole in one."""

MOST_WORD = 24
"""Graphemes of the longest word taken whole; longer runs are cut into pieces of so many."""

_PARAGRAPH = regex.compile(r"(?:\r\n|\r|\n)\s*(?:\r\n|\r|\n)")
_RUN = regex.compile(r"\S+")
_GRAPHEME = regex.compile(r"\X")
_OPENING = regex.compile(r"^[\p{Ps}\p{Pi}\"'`#$]+", regex.V1)


@dataclass(frozen=True, slots=True)
class Window:
    """A range of the text in code points, and the ids that one read of it asks for."""

    start: int
    end: int
    ids: Ids


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of text that is not cut, and the ids it can be spelled with."""

    start: int
    end: int
    ids: frozenset[int]


def make_windows(text: str, vocabulary: Vocabulary) -> tuple[Window, ...]:
    """The windows of a text, in order; every code point lies in at least one."""
    always = frozenset(ids_always_asked(vocabulary))
    room = MAX_IDS - len(always)
    words = [list(_words(text, start, end)) for start, end in _sentences(text)]
    spelled = _spellings({text[start:end] for sentence in words for start, end in sentence}, vocabulary)
    windows: list[Window] = []
    held: list[_Piece] = []
    for sentence in words:
        for piece in _pieces([_Piece(a, b, spelled[text[a:b]]) for a, b in sentence], room):
            if held and len(_union([*held, piece])) > room:
                windows.append(_window(held, always))
                held = [held[-1]] if len(_union([held[-1], piece])) <= room else []
            held.append(piece)
    if held:
        windows.append(_window(held, always))
    return tuple(windows)


def ids_always_asked(vocabulary: Vocabulary) -> Ids:
    """What every span read asks for beside the text's own ids: ends of answers and lines, and "none"."""
    encode = vocabulary.tokenizer.encode
    spelled = [id for text in ("none", " none") for id in encode(text)]
    return tuple(dict.fromkeys((*closers(vocabulary), *newlines(vocabulary), *spelled)))


def closers(vocabulary: Vocabulary) -> Ids:
    """The ids that end an answer: the turn close, and EOS where it is another."""
    eos = vocabulary.tokenizer.eos_id()
    return tuple(dict.fromkeys((vocabulary.turn_close, *(() if eos is None else (eos,)))))


def newlines(vocabulary: Vocabulary) -> Ids:
    """The ids that end a line: a newline that is one token."""
    ids = vocabulary.tokenizer.encode("\n")
    return (ids[0],) if len(ids) == 1 else ()


def lexicon_of(window: Window, vocabulary: Vocabulary) -> Lexicon:
    """The allowed ids of a window with their bytes."""
    return Lexicon(
        tokens={id: vocabulary.tokenizer.token_bytes(id) for id in window.ids},
        closers=closers(vocabulary),
        newlines=newlines(vocabulary),
    )


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """The sentences of a text as code point ranges that leave nothing out.

    Paragraphs are cut first: given a long text, sentencex 1.0.32 drops the break between two of them.
    """
    place = 0
    for stop in (*(match.end() for match in _PARAGRAPH.finditer(text)), len(text)):
        paragraph, start = text[place:stop], place
        for sentence in get_sentence_boundaries("en", paragraph):
            found = text.find(sentence["text"], start, stop) if sentence["text"].strip() else -1
            if found > start:
                yield start, found
            if found >= 0:
                start = found + len(sentence["text"])
                yield found, start
        if start < stop:
            yield start, stop
        place = stop


def _words(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The words of a range: runs without white space, unspaced scripts character by character."""
    for run in _RUN.finditer(text, start, end):
        low = run.start()
        count = 0
        for grapheme in _GRAPHEME.finditer(text, run.start(), run.end()):
            alone = is_unspaced(grapheme[0][0])
            if low < grapheme.start() and (alone or count == MOST_WORD):
                yield low, grapheme.start()
                low, count = grapheme.start(), 0
            count += 1
            if alone:
                yield low, grapheme.end()
                low, count = grapheme.end(), 0
        if low < run.end():
            yield low, run.end()


def _spellings(words: set[str], vocabulary: Vocabulary) -> dict[str, frozenset[int]]:
    """Per distinct word every id it can be spelled with.

    The word with and without a space before it, and the first token of what is left of it without an
    opening bracket, quote, `#` or `$`, likewise.
    """
    ordered = sorted(words)
    bare = [_OPENING.sub("", word) for word in ordered]
    variants = [ordered, [f" {word}" for word in ordered], bare, [f" {word}" for word in bare]]
    encoded = vocabulary.tokenizer.encode_many([text for variant in variants for text in variant])
    plain, spaced, bare_plain, bare_spaced = (
        encoded[place * len(ordered) : (place + 1) * len(ordered)] for place in range(len(variants))
    )
    return {
        word: frozenset((*plain[n], *spaced[n], *bare_plain[n][:1], *bare_spaced[n][:1]))
        for n, word in enumerate(ordered)
    }


def _pieces(words: Sequence[_Piece], room: int) -> Iterator[_Piece]:
    """A sentence in one piece when it fits, else in pieces of as many words as fit, with overlap."""
    held: list[_Piece] = []
    ids: set[int] = set()
    for word in words:
        if held and len(ids | word.ids) > room:
            yield _joined(held)
            held = held[-min(OVERLAP_WORDS, len(held) // 2) :] if len(held) > 1 else []
            ids = set(_union(held))
            while held and len(ids | word.ids) > room:
                held = held[1:]
                ids = set(_union(held))
        held.append(word)
        ids |= word.ids
    if held:
        yield _joined(held)


def _joined(pieces: Sequence[_Piece]) -> _Piece:
    return _Piece(pieces[0].start, pieces[-1].end, _union(pieces))


def _union(pieces: Sequence[_Piece]) -> frozenset[int]:
    return frozenset().union(*(piece.ids for piece in pieces))


def _window(pieces: Sequence[_Piece], always: frozenset[int]) -> Window:
    held = _joined(pieces)
    return Window(held.start, held.end, tuple(sorted(held.ids | always)))
