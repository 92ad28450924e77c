"""Spans in every script: nothing that a reader sees as one is cut, and the text stays as it came."""

import unicodedata
from itertools import pairwise

import pytest

from planner.spans.boundaries import boundaries, graphemes
from planner.vocabulary import Vocabulary
from tests.planner.span_support import pieces, places, reader

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
THUMB = "\U0001f44d\U0001f3fd"
HEART = "\u2764\ufe0f"
GERMANY, FRANCE = "\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
NFD, NFC = "Cafe\u0301 Mu\u0308nchen", "Caf\u00e9 M\u00fcnchen"


@pytest.mark.parametrize(
    ("text", "said", "start"),
    [
        ("one  two\t\tthree", "one two three", 0),
        ("Main Street 1\n12345 Berlin", "Main Street 1 12345 Berlin", 0),
        ("Dana\r\nSmith, Acme", "Dana Smith", 0),
        ("a price of 5\u00a0000\u00a0EUR", "5 000 EUR", 11),
        ("\n\n  two words  \n", "two words", 4),
        ("one\u2028two\u3000three", "two three", 4),
        ("a\x0bb\x0cc\x85d", "b c d", 2),
    ],
)
def test_one_space_of_the_model_stands_for_any_white_space_of_the_text(
    vocabulary: Vocabulary, text: str, said: str, start: int
) -> None:
    found = reader(vocabulary, text).says(said)
    assert [piece.split() for piece in pieces(text, found)] == [said.split()]
    assert found.items[0].start == start


def test_a_model_that_copies_the_line_break_of_a_value_gets_all_of_it(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, "Ship to: Main Street 1\n12345 Berlin, today.")
    first, second = window.ids("Main Street 1"), vocabulary.tokenizer.encode("12345 Berlin")
    ids = [*first, *vocabulary.tokenizer.encode("\n"), *second]
    assert pieces(window.text, window.says(ids)) == ["Main Street 1\n12345 Berlin"]


def test_what_a_model_writes_under_a_value_is_left_out(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, "Dana lives in Berlin, Acme in Paris.")
    ids = [*window.ids("Berlin"), *vocabulary.tokenizer.encode("\n"), *window.ids("Paris")]
    assert pieces(window.text, window.says(ids)) == ["Berlin"]


@pytest.mark.parametrize("said", [FAMILY, THUMB, HEART, GERMANY, FRANCE, ENGLAND, "e\u0301", "한", "क्षि"])
def test_what_a_reader_sees_as_one_is_found_whole(vocabulary: Vocabulary, said: str) -> None:
    text = f"x {said} y"
    assert places(reader(vocabulary, text).says(said)) == [(2, 2 + len(said))]


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        (FAMILY, "\U0001f469"),
        (FAMILY, "\U0001f467"),
        (THUMB, "\U0001f44d"),
        (HEART, "\u2764"),
        (GERMANY + FRANCE, "\U0001f1ea\U0001f1eb"),
        ("cafe\u0301", "cafe"),
        ("cafe\u0301", "\u0301"),
    ],
)
def test_a_part_of_what_a_reader_sees_as_one_is_never_an_answer(
    vocabulary: Vocabulary, whole: str, part: str
) -> None:
    text = f"x {whole} y"
    window = reader(vocabulary, text)
    ids = [id for id in vocabulary.tokenizer.encode(part) if id in window.window.ids]
    assert part not in pieces(text, window.says(ids))


def test_flags_in_a_row_are_told_apart(vocabulary: Vocabulary) -> None:
    text = GERMANY + FRANCE + GERMANY
    assert places(reader(vocabulary, text).says(FRANCE)) == [(2, 4)]
    assert places(reader(vocabulary, text).says(FRANCE + GERMANY)) == [(2, 6)]


@pytest.mark.parametrize("text", [NFC, NFD])
def test_the_text_is_not_normalised(vocabulary: Vocabulary, text: str) -> None:
    for word in text.split():
        found = reader(vocabulary, text).says(word)
        assert pieces(text, found) == [word]
        assert places(found) == [(text.index(word), text.index(word) + len(word))]


def test_composed_and_decomposed_spellings_are_two_texts(vocabulary: Vocabulary) -> None:
    text = f"{NFD}, {NFC}"
    assert unicodedata.normalize("NFC", NFD) == NFC
    assert places(reader(vocabulary, text).says(NFC)) == [(text.index(NFC), len(text))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("我住在北京市，他住在上海市。", "北京市"),
        ("我住在北京市，他住在上海市。", "上海市"),
        ("我住在北京市，他住在上海市。", "他住在上海市"),
        ("東京タワーでコーヒーを飲む。", "コーヒー"),
        ("東京タワーでコーヒーを飲む。", "東京タワー"),
        ("ราคา500บาทค่ะ", "500"),
        ("ราคา500บาทค่ะ", "บาท"),
        ("서울에서 부산까지 간다.", "부산까지"),
        ("iPhone15を3台注文", "iPhone15"),
        ("iPhone15を3台注文", "3台"),
    ],
)
def test_scripts_without_spaces_are_bounded_at_every_character(
    vocabulary: Vocabulary, text: str, said: str
) -> None:
    assert places(reader(vocabulary, text).says(said)) == [(text.index(said), text.index(said) + len(said))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("السعر ٥٠٠ ريال، والتسليم غدا؟", "٥٠٠ ريال"),
        ("السعر ٥٠٠ ريال، والتسليم غدا؟", "غدا"),
        ("מחיר ההזמנה 99 ש״ח בתל אביב.", "בתל אביב"),
        ("מחיר ההזמנה 99 ש״ח בתל אביב.", "99 ש״ח"),
        ("نمی\u200cخواهم بروم", "نمی\u200cخواهم"),
        ("الرقم \u200e#A-1042\u200f هنا", "#A-1042"),
    ],
)
def test_right_to_left_text_is_indexed_in_reading_order(vocabulary: Vocabulary, text: str, said: str) -> None:
    assert places(reader(vocabulary, text).says(said)) == [(text.index(said), text.index(said) + len(said))]


def test_a_byte_order_mark_and_control_characters_are_text(vocabulary: Vocabulary) -> None:
    text = "\ufeffDana\x00Smith\x07 of\u200b Acme\x1b[0m"
    for said in ("Dana", "Smith", "Acme", "Dana\x00Smith"):
        assert places(reader(vocabulary, text).says(said)) == [
            (text.index(said), text.index(said) + len(said))
        ]


def test_boundaries_look_beyond_the_edges_of_a_range() -> None:
    text = f"chairman{FAMILY}cafe\u0301 北京"
    whole = boundaries(text)
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            found = boundaries(text, start, end)
            assert (found[0], found[-1]) == (whole[start], whole[end])
            assert len(found) == end - start + 1


def test_words_and_graphemes_hold_no_boundary_inside() -> None:
    text = f"a_1 {FAMILY}{GERMANY}{FRANCE} e\u0301x 北京 (9)"
    allowed = boundaries(text)
    assert "".join(graphemes(text)) == text
    cut = "|".join(text[start:end] for start, end in _between(allowed))
    assert cut == f"a_1| |{FAMILY}|{GERMANY}|{FRANCE}| |e\u0301x| |北|京| |(|9|)"


def _between(allowed: list[bool]) -> list[tuple[int, int]]:
    places = [place for place, is_boundary in enumerate(allowed) if is_boundary]
    return list(pairwise(places))
