"""A window's text as the decoder walks it: bytes, white space folded, occurrences indexed once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from planner.spans.boundaries import boundaries

_WHITE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class SearchText:
    """Text in which every run of white space is one space, as UTF-8.

    `origin[k]` is the code point offset in the original where byte `k` stands (-1 inside a code
    point, and one entry for the end); `may_start` and `may_end` tell of each byte offset whether a
    span may start or end there.
    """

    data: bytes
    origin: tuple[int, ...]
    may_start: tuple[bool, ...]
    may_end: tuple[bool, ...]

    def has(self, token: bytes) -> bool:
        """Whether a token can spell a piece of the text, its white space aside."""
        return folded(token).strip(b" ") in self.data


def make_search_text(text: str, start: int, end: int) -> SearchText:
    """The search text of `text[start:end]`; its origins are offsets into the whole `text`."""
    window = text[start:end]
    data = bytearray()
    origin: list[int] = []
    white = [False]
    place = 0
    for match in (*_WHITE.finditer(window), None):
        stop = match.start() if match else len(window)
        for offset in range(place, stop):
            encoded = window[offset].encode()
            data += encoded
            origin += [start + offset, *[-1] * (len(encoded) - 1)]
            white += [False] * len(encoded)
        if match:
            data += b" "
            origin.append(start + stop)
            white.append(True)
            place = match.end()
    origin.append(end)
    allowed = boundaries(text, start, end)
    spaced = bytes(data)
    may_start = [
        at >= 0 and allowed[at - start] and spaced[k : k + 1] not in (b" ", b"")
        for k, at in enumerate(origin)
    ]
    may_end = [at >= 0 and allowed[at - start] and k > 0 and not white[k] for k, at in enumerate(origin)]
    return SearchText(spaced, tuple(origin), tuple(may_start), tuple(may_end))


def folded(token: bytes) -> bytes:
    """A token's bytes with every run of white space as one space, as the search text has it.

    A token that is part of a character stays as it is.
    """
    try:
        return _WHITE.sub(" ", token.decode()).encode()
    except UnicodeDecodeError:
        return token


def occurrences(data: bytes, token: bytes) -> Iterable[int]:
    """Every offset at which a token stands, overlapping ones too."""
    place = data.find(token)
    while place >= 0:
        yield place
        place = data.find(token, place + 1)
