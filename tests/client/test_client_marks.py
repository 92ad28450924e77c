"""Where the pieces of span answers stand in a text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.marks import Gap, Mark, Stretch, faults, fits, marks_of, source_text, stretches


def item(text: str, start: int, **fields: Any) -> dict[str, Any]:
    return {"text": text, "start": start, "end": start + len(text), "confidence": 0.9, **fields}


def span(text: str, start: int, **fields: Any) -> dict[str, Any]:
    return {"type": "span", "found": True, **item(text, start, **fields)}


def mark(start: int, end: int, color: int = 0) -> Mark:
    return Mark(f"q{color}", color, start, end, 0.9)


def laid(source: str, marks: list[Mark], whole: int = 1000) -> list[str]:
    """The stretches as text, brackets where marks begin and end."""
    return [
        f"({part.size})"
        if isinstance(part, Gap)
        else "[" * len(part.opens) + part.text + "]" * len(part.closes)
        for part in stretches(source, marks, whole)
    ]


@pytest.mark.parametrize(
    ("state", "source"),
    [
        ("plain", "plain"),
        ({"text": "inside", "other": 1}, "inside"),
        ({"text": 7, "name": "Zoë"}, '{"text": 7, "name": "Zoë"}'),
        (["a", "ü"], '["a", "ü"]'),
    ],
)
def test_the_source_is_the_string_or_the_text_field_or_the_json(state: Any, source: str) -> None:
    assert source_text(state) == source


def test_a_piece_fits_where_the_text_has_it_in_code_points_and_in_utf_16() -> None:
    source = "🔔 ring"
    assert fits(source, item("ring", 2))
    assert fits(source, item("ring", 2, start_utf16=3, end_utf16=7))
    assert not fits(source, item("ring", 2, start_utf16=2, end_utf16=6))


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": "ring", "start": 3, "end": 7},
        {"text": "g", "start": -1, "end": 6},
        {"text": "", "start": 2, "end": 2},
        {"text": "ring", "start": 2, "end": 60},
        {"text": "ring", "start": None, "end": None},
        {"text": "ring", "start": 2.0, "end": 6},
        {"text": None, "start": 2, "end": 6},
        {},
    ],
)
def test_a_piece_that_is_not_there_is_a_fault_and_no_mark(wrong: dict[str, Any]) -> None:
    answers = {"q": {"type": "spans", "found": True, "items": [wrong, item("ring", 2)]}}
    assert len(faults("🔔 ring", answers)) == 1
    assert [mark.start for mark in marks_of("🔔 ring", answers)] == [2]


def test_what_was_not_found_or_is_no_span_makes_no_mark_but_counts_as_a_colour() -> None:
    missing = {"type": "span", "found": False, "text": None, "start": None, "end": None}
    answers = {"n": {"type": "noul", "noul": 0.5}, "skipped": None, "a": missing, "b": span("ring", 2)}
    assert [(mark.question, mark.color) for mark in marks_of("🔔 ring", answers)] == [("b", 1)]
    assert faults("🔔 ring", answers) == []


def test_a_text_is_cut_at_its_marks() -> None:
    assert laid("one two three", [mark(4, 7)]) == ["one ", "[two]", " three"]


def test_overlapping_marks_are_cut_where_either_begins_or_ends() -> None:
    assert laid("one two three", [mark(0, 7, 0), mark(4, 13, 1)]) == ["[one ", "[two]", " three]"]
    (shared,) = (
        part
        for part in stretches("one two", [mark(0, 7, 0), mark(4, 7, 1)], 1000)
        if isinstance(part, Stretch) and part.text == "two"
    )
    assert [mark.color for mark in shared.marks] == [1, 0]
    assert [mark.color for mark in shared.closes] == [1, 0]


def test_the_same_piece_under_two_questions_is_one_stretch_with_two_marks() -> None:
    assert laid("one two", [mark(0, 3, 0), mark(0, 3, 1)]) == ["[[one]]", " two"]


def test_a_long_text_is_shown_around_its_marks_and_the_gaps_are_counted() -> None:
    source = "word " * 100 + "HERE" + " word" * 100
    before, left, here, right, after = laid(source, [mark(500, 504)], whole=200)
    assert here == "[HERE]"
    assert left.startswith("word ")
    assert right.endswith(" word")
    assert (before, after) == (f"({500 - len(left)})", f"({500 - len(right)})")


def test_neighbourhoods_that_touch_are_one() -> None:
    source = "word " * 400
    assert (
        sum(isinstance(part, Gap) for part in stretches(source, [mark(900, 904), mark(1000, 1004)], 9)) == 2
    )


def test_a_long_text_without_marks_is_shown_by_its_beginning() -> None:
    assert laid("word " * 100, [], whole=50) == ["word " * 10, "(450)"]


def test_a_cut_parts_no_letter_from_its_marks() -> None:
    source = "e\u0301" * 400
    kept = [part for part in stretches(source, [mark(400, 402)], 10) if isinstance(part, Stretch)]
    assert kept[0].text[0] == "e"
    assert kept[-1].text[-1] == "\u0301"


@given(st.data())
def test_nothing_of_a_text_is_lost_or_moved(data: st.DataObject) -> None:
    source = data.draw(st.text(alphabet="ab \n\u0301🔔", max_size=400))
    places = st.integers(0, max(0, len(source) - 1))
    pairs = data.draw(st.lists(st.tuples(places, places), max_size=6)) if len(source) > 1 else []
    marks = [mark(min(pair), max(pair), n) for n, pair in enumerate(pairs) if pair[0] != pair[1]]
    place, opened, closed = 0, 0, 0
    for part in stretches(source, marks, data.draw(st.sampled_from([10, 1000]))):
        if isinstance(part, Gap):
            place += part.size
            continue
        assert source[place : place + len(part.text)] == part.text
        assert all(one.start <= place and place + len(part.text) <= one.end for one in part.marks)
        place, opened, closed = place + len(part.text), opened + len(part.opens), closed + len(part.closes)
    assert place == len(source)
    assert opened == closed == len(marks)
