"""The trimming policy: what is no part of a value at its ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.spans.boundaries import boundaries
from planner.spans.trimming import SENTENCE_PUNCTUATION, trimmed
from planner.vocabulary import Vocabulary
from tests.planner.span_support import pieces, reader


def trim(piece: str, before: str = "x ", after: str = " y") -> str:
    text = before + piece + after
    start, end = trimmed(text, len(before), len(before) + len(piece))
    return text[start:end]


@pytest.mark.parametrize(
    "piece",
    [
        *("$99.50", "50%", "#A-1042", "-5", "C++", "(415)", "(415) 555-0100", "f(x)", "[1]", "«so»", "“so”"),
        *("Acme Inc.", "Inc.", "U.S.", "a.m.", "e.g.", "5 p.m.", "Dr.", "No.", "St.", "Sept.", "GmbH & Co."),
        *("O'Brien", "rock 'n' roll", '"yes"', "a.example", "1.5", "3,000", "12:30", "https://a.example/?x"),
        *("6'2\"", "5'", '12"', "40° 26' 46\""),
        *("北京", "（北京）", "「はい」", "e\u0301", "\U0001f44d"),
    ],
)
def test_what_belongs_to_a_value_stays(piece: str) -> None:
    assert trim(piece) == piece


@pytest.mark.parametrize(
    ("piece", "left"),
    [
        *(("Berlin.", "Berlin"), ("Berlin,", "Berlin"), ("Berlin;", "Berlin"), ("Berlin:", "Berlin")),
        *(("Berlin!", "Berlin"), ("Berlin?!", "Berlin"), ("Berlin...", "Berlin"), ("Berlin…", "Berlin")),
        *(("北京。", "北京"), ("北京，", "北京"), ("غدا؟", "غدا"), ("غدا،", "غدا"), ("दिल्ली।", "दिल्ली")),
        *(("(Berlin", "Berlin"), ("Berlin)", "Berlin"), ("(415", "415"), ("[1", "1"), ("so”", "so")),
        *(('"Berlin', "Berlin"), ("Berlin'", "Berlin"), ("`x", "x"), ("<a@b.example", "a@b.example")),
        *((" Berlin \n", "Berlin"), ("\u00a0Berlin\u3000", "Berlin")),
        *(
            ("(U.S.", "U.S."),
            ("Acme Inc.,", "Acme Inc."),
            ("(Berlin).", "(Berlin)"),
            ('"Berlin."', '"Berlin."'),
        ),
        *((" (Berlin, ", "Berlin"), ("Berlin).", "Berlin"), ('("Berlin', "Berlin")),
    ],
)
def test_what_belongs_to_the_sentence_goes(piece: str, left: str) -> None:
    assert trim(piece) == left


def test_a_piece_of_nothing_but_punctuation_is_left_as_it_is() -> None:
    for piece in (*SENTENCE_PUNCTUATION, "...", "?!", "(", '"', ").", "' '"):
        assert trim(piece) == piece


def test_a_mark_on_a_bracket_keeps_it() -> None:
    """A grapheme is never cut, not even one that begins with a bracket."""
    assert trim("(\u0301a") == "(\u0301a"
    assert trim("a\u0600.") == "a\u0600."


def test_offsets_move_with_what_is_trimmed() -> None:
    assert trimmed("see (Dana Smith, now", 4, 16) == (5, 15)


@pytest.mark.parametrize(
    ("text", "said", "left"),
    [
        ("He lives in Berlin.", "Berlin.", "Berlin"),
        ("Call (415) now.", "(415)", "(415)"),
        ("Call (415) now.", "(415", "415"),
        ("Made in the U.S. by Acme Inc., as ever.", "the U.S.", "the U.S."),
        ("Made in the U.S. by Acme Inc., as ever.", "Acme Inc.,", "Acme Inc."),
        ("It grew 50%.", "50%.", "50%"),
        ("我住在北京。", "北京。", "北京"),
    ],
)
def test_answers_are_trimmed(vocabulary: Vocabulary, text: str, said: str, left: str) -> None:
    assert pieces(text, reader(vocabulary, text).says(said)) == [left]


@given(
    text=st.text(
        st.characters(codec="utf-8") | st.sampled_from("().,!?'\"[] \u0301\u0600\u200d"), max_size=20
    ),
    data=st.data(),
)
def test_trimming_keeps_to_boundaries_and_does_nothing_twice(text: str, data: st.DataObject) -> None:
    allowed = [place for place, is_boundary in enumerate(boundaries(text)) if is_boundary]
    start = data.draw(st.sampled_from(allowed))
    end = data.draw(st.sampled_from([place for place in allowed if place >= start]))
    low, high = trimmed(text, start, end)
    assert start <= low <= high <= end
    assert {low, high} <= set(allowed)
    assert trimmed(text, low, high) == (low, high)
