"""What holds for every text and every piece of it: a model that writes the piece gets it back."""

import re

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from planner.spans.boundaries import boundaries
from planner.spans.trimming import trimmed
from planner.spans.windows import make_windows
from planner.vocabulary import Vocabulary
from tests.planner.span_support import Reader, places, spelling

ANY = st.text(st.characters(codec="utf-8"), max_size=12)
WORDS = st.sampled_from(
    [
        *("Acme", "Inc.", "U.S.", "$5", "50%", "(415)", "#A-1042", "dana@x.example", "http://x.de/?a=1#b"),
        *("cafe\u0301", "caf\u00e9", "北京市", "コーヒー", "ไทย", "مرحبا", "שלום", "٣٤", "한국어", "हिन्दी"),
        *("\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\ufeff"),
        *("it's", "x", "X", "none", "a.m.", "!?", "...", "“so”", "'", '"', "(", ")", "[]", "\x00", "a_b"),
    ]
)
WHITE = st.sampled_from([" ", " ", " ", "  ", "\t", "\n", "\r\n", "\n\n", "\xa0", "\u3000", "\u2028", ""])
TEXTS = st.lists(WORDS | ANY | WHITE, min_size=1, max_size=14).map("".join)

Place = tuple[int, int]


def folded(piece: str) -> str:
    """A piece as the model writes it: white space is one space."""
    return re.sub(r"\s+", " ", piece)


def first_place(text: str, piece: str, allowed: list[bool]) -> Place:
    """Where a piece stands first between two boundaries, whatever white space it has there."""
    pattern = re.compile(r"\s+".join(map(re.escape, folded(piece).split(" "))))
    return next(
        found.span()
        for start in range(len(text))
        if allowed[start] and (found := pattern.match(text, start)) and allowed[found.end()]
    )


@st.composite
def texts_with_a_piece(draw: st.DrawFn) -> tuple[str, Place]:
    """A text and a piece of it between two boundaries, without white space at its ends."""
    text = draw(TEXTS)
    allowed = boundaries(text)
    starts = [place for place, character in enumerate(text) if allowed[place] and not character.isspace()]
    assume(starts)
    start = draw(st.sampled_from(starts))
    ends = [
        place
        for place in range(start + 1, len(text) + 1)
        if allowed[place] and not text[place - 1].isspace()
    ]
    assume(ends)
    return text, (start, draw(st.sampled_from(ends)))


@settings(deadline=None, max_examples=6000)
@given(case=texts_with_a_piece(), seed=st.integers(0, 2**32), noise=st.floats(0.001, 0.4))
def test_a_model_that_writes_a_piece_of_the_text_gets_exactly_that_piece(
    vocabulary: Vocabulary, case: tuple[str, Place], seed: int, noise: float
) -> None:
    """Left out: pieces that the trimming policy changes, the answer "none", pieces that lie across two
    windows, and texts with bytes that SmolLM2's tokenizer has no token for (0x04, 0xF1 and 19 others).
    """
    text, (start, end) = case
    tokenizer = vocabulary.tokenizer
    assume(b"".join(map(tokenizer.token_bytes, tokenizer.encode(text))) == text.encode())
    assume(trimmed(text, start, end) == (start, end) and text[start:end] != "none")
    windows = make_windows(text, vocabulary)
    held = [window for window in windows if window.start <= start and end <= window.end]
    event(f"windows that hold it: {len(held)}")
    assume(held)
    window = held[0]
    reader = Reader(vocabulary, text, window)
    ids = spelling(vocabulary, reader.lexicon(by_line=False), text[start:end])
    assert ids is not None, "every piece between two boundaries can be spelled"
    inside = boundaries(text, window.start, window.end)
    low, high = first_place(text[window.start : window.end], text[start:end], inside)
    assert places(reader.says(ids, seed=seed, noise=noise)) == [(window.start + low, window.start + high)]
