"""Windows: pieces of a long text that one read can score, and the ids it asks for.

A read asks for at most 128 ids. A text that is spelled with more is cut at sentences into windows with
one sentence of overlap; a sentence that is too long by itself is cut at words, with some words of
overlap, and so are two sentences that no window holds together; a word that is too long is cut at
graphemes. Time and memory are linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex
from sentencex import get_sentence_boundaries

from planner.reads import MAX_IDS, Ids
from planner.spans.boundaries import boundaries, graphemes
from planner.spans.decoder import Lexicon
from planner.vocabulary import Vocabulary

OVERLAP_WORDS = 12
"""Words that windows share where a sentence is too much, so that a value across a cut is whole in one."""

MOST_WORD = 40
"""UTF-8 bytes of the longest word taken whole: a longer one could need more ids than a read asks for."""

_PARAGRAPH = regex.compile(r"(?:\r\n|\r|\n)\s*(?:\r\n|\r|\n)")
_RUN = re.compile(r"\S+")
_BEGINS = regex.compile(r"[^\p{P}]|[\p{Ps}\p{Pi}\"'#]", regex.V1)


@dataclass(frozen=True, slots=True)
class Window:
    """A range of the text in code points, and the ids that one read of it asks for."""

    start: int
    end: int
    ids: Ids


@dataclass(frozen=True, slots=True)
class _Word:
    """A stretch of text that is not cut, with the ids it can be spelled with.

    `is_last` tells whether a sentence ends with it.
    """

    start: int
    end: int
    ids: frozenset[int]
    is_last: bool


def make_windows(text: str, vocabulary: Vocabulary) -> tuple[Window, ...]:
    """The windows of a text, in order; every code point lies in at least one."""
    always = frozenset(ids_always_asked(vocabulary))
    room = MAX_IDS - len(always)
    words = _spelled_words(text, vocabulary)
    cuts: list[tuple[int, int]] = []
    first = stop = 0
    while stop < len(words):
        first = _overlap(words, first, stop, room) if stop else 0
        stop = _stop(words, first, stop, room)
        cuts.append((first, stop))
    # White space between two windows belongs to the first of them.
    starts = [words[first].start if first else 0 for first, _ in cuts]
    nexts = [*starts[1:], len(text)]
    return tuple(
        Window(
            start,
            max(following, words[stop - 1].end),
            tuple(sorted(always.union(*(word.ids for word in words[first:stop])))),
        )
        for start, following, (first, stop) in zip(starts, nexts, cuts, strict=False)
    )


def _stop(words: Sequence[_Word], first: int, after: int, room: int) -> int:
    """Where the window from word `first` on ends: at a sentence end behind `after` when it gets that far."""
    ids: set[int] = set()
    whole = 0
    for place in range(first, len(words)):
        ids |= words[place].ids
        if len(ids) > room and place > after:
            return whole or place
        if words[place].is_last and place >= after:
            whole = place + 1
    return len(words)


def _overlap(words: Sequence[_Word], first: int, stop: int, room: int) -> int:
    """The first word of the window that comes after words `first` to `stop`.

    One sentence back when it fits beside what comes next (a whole sentence if that fits, else a word),
    otherwise as many of the last words as fit, at most `OVERLAP_WORDS`.
    """
    ids = _next_ids(words, stop, room)
    sentence = stop - 1
    while sentence > first and not words[sentence - 1].is_last:
        sentence -= 1
    place = stop
    while place > sentence and len(ids | words[place - 1].ids) <= room:
        place -= 1
        ids |= words[place].ids
    if place == sentence > first:
        return place
    return max(place, stop - OVERLAP_WORDS, (first + stop + 1) // 2)


def _next_ids(words: Sequence[_Word], stop: int, room: int) -> frozenset[int]:
    """The ids of the sentence that begins with word `stop`, of that word alone when it is too long or cut."""
    ids = words[stop].ids
    if not words[stop - 1].is_last:
        return ids
    for place in range(stop, len(words)):
        ids |= words[place].ids
        if len(ids) > room:
            return words[stop].ids
        if words[place].is_last:
            break
    return ids


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


def lexicon_of(window: Window, vocabulary: Vocabulary, *, by_line: bool) -> Lexicon:
    """The allowed ids of a window with their bytes."""
    return Lexicon(
        tokens={id: vocabulary.tokenizer.token_bytes(id) for id in window.ids},
        closers=closers(vocabulary),
        newlines=newlines(vocabulary),
        by_line=by_line,
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


def _spelled_words(text: str, vocabulary: Vocabulary) -> list[_Word]:
    """The words of a text in order, each with its ids."""
    sentences = [list(_words(text, start, end)) for start, end in _sentences(text)]
    spelled = _spellings({text[start:end] for sentence in sentences for start, end in sentence}, vocabulary)
    return [
        _Word(start, end, spelled[text[start:end]], is_last=number == len(sentence))
        for sentence in sentences
        for number, (start, end) in enumerate(sentence, 1)
    ]


def _words(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The words of a range: runs without white space, long ones in pieces."""
    for run in _RUN.finditer(text, start, end):
        low = high = run.start()
        size = 0
        for part in _uncut(run[0]):
            length = len(part.encode())
            if size and size + length > MOST_WORD:
                yield low, high
                low, size = high, 0
            high += len(part)
            size += length
        yield low, high


def _uncut(run: str) -> Iterable[str]:
    """What a long word is not cut within: its graphemes, but for one that is too long itself."""
    if len(run.encode()) <= MOST_WORD:
        return (run,)
    return (
        part
        for grapheme in graphemes(run)
        for part in (grapheme if len(grapheme.encode()) > MOST_WORD else (grapheme,))
    )


def _units(word: str) -> list[str]:
    """The pieces of a word between the boundaries of spans."""
    places = [place for place, allowed in enumerate(boundaries(word)) if allowed]
    return [word[start:end] for start, end in pairwise(places)]


def _spellings(words: set[str], vocabulary: Vocabulary) -> dict[str, frozenset[int]]:
    """Per distinct word every id that it, or a span that starts or ends inside it, can be spelled with."""
    variants = {word: _variants(word) for word in words}
    texts = sorted({text for several in variants.values() for text in several})
    ids = dict(zip(texts, vocabulary.tokenizer.encode_many(texts), strict=True))
    return {word: frozenset(id for text in several for id in ids[text]) for word, several in variants.items()}


def _variants(word: str) -> tuple[str, ...]:
    """A word and the units of it, with and without a space before them.

    The model writes " A" where the text has "#A", and ")" where it has ").". Closing punctuation begins
    no span: inside a word it takes no space.
    """
    first, *others = _units(word)
    spaced = (unit for unit in others if _BEGINS.match(unit))
    return (word, first, *others, *(f" {text}" for text in (word, first, *spaced)))
