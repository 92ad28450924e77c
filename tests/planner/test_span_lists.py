"""Lists: every line of a blank an item, each at a place of its own."""

import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from planner.plan import make_plan
from planner.reads import Item, Read
from planner.span_parts import merged
from planner.spans.items import decode_list
from planner.vocabulary import Vocabulary
from tests.planner.span_support import Reader, blank_of_ids, pieces, places, reader, spans, words, writing
from tests.planner.support import decide, play

CITIES = "Berlin, Paris, Berlin, Rome, Berlin."


def item(start: int, end: int, confidence: float = 0.9) -> Item:
    return Item(start, end, confidence, 1.0)


def lines(window: Reader, *said: str) -> list[str]:
    return pieces(window.text, window.lists("\n".join(said)))


def test_each_line_is_an_item(vocabulary: Vocabulary) -> None:
    text = "Two red chairs, a blue table and one lamp."
    window = reader(vocabulary, text)
    assert lines(window, "red chairs", "blue table", "lamp") == ["red chairs", "blue table", "lamp"]


def test_repeated_lines_are_successive_mentions(vocabulary: Vocabulary) -> None:
    found = reader(vocabulary, CITIES).lists("Berlin\nBerlin\nBerlin")
    assert places(found) == [(0, 6), (15, 21), (29, 35)]


def test_as_many_mentions_are_kept_as_the_text_has(vocabulary: Vocabulary) -> None:
    text = ", ".join(["Berlin"] * 12)
    found = reader(vocabulary, text).lists("\n".join(["Berlin"] * 12))
    assert places(found) == [(start, start + 6) for start in range(0, 12 * 8, 8)]


def test_a_line_repeated_more_often_than_the_text_has_it_is_no_new_item(vocabulary: Vocabulary) -> None:
    found = reader(vocabulary, CITIES).lists("\n".join(["Berlin"] * 5))
    assert places(found) == [(0, 6), (15, 21), (29, 35)]


def test_two_mentions_in_one_window_stay_two(vocabulary: Vocabulary) -> None:
    assert places(reader(vocabulary, CITIES).lists("Berlin\nParis\nBerlin")) == [(0, 6), (8, 13), (15, 21)]


def test_lines_against_the_order_of_the_text_are_found_too(vocabulary: Vocabulary) -> None:
    assert places(reader(vocabulary, CITIES).lists("Rome\nParis")) == [(23, 27), (8, 13)]


def test_a_mention_within_an_item_is_no_new_item(vocabulary: Vocabulary) -> None:
    text = "Berlin Mitte and Rome."
    assert lines(reader(vocabulary, text), "Berlin Mitte", "Berlin", "Rome") == ["Berlin Mitte", "Rome"]


def test_a_first_line_that_says_none_means_none(vocabulary: Vocabulary) -> None:
    found = reader(vocabulary, CITIES).lists("none\nBerlin")
    assert found.items == ()
    assert found.confidence > 0.9
    assert found.tokens == 1


def test_a_later_line_that_says_none_ends_the_list(vocabulary: Vocabulary) -> None:
    assert lines(reader(vocabulary, CITIES), "Berlin", "none", "Rome") == ["Berlin"]


def test_a_line_that_is_not_in_the_text_is_passed_over(vocabulary: Vocabulary) -> None:
    text = "Send red chairs, blue tables and green lamps to Rome."
    said = ("red chairs", "Rome to green blue Send", "blue tables")
    assert lines(reader(vocabulary, text), *said) == ["red chairs", "blue tables"]
    assert lines(reader(vocabulary, text), said[1], "Rome") == ["Rome"]


def test_a_list_of_nothing_that_is_in_the_text_is_empty_and_unsure(vocabulary: Vocabulary) -> None:
    text = "Send red chairs, blue tables and green lamps to Rome."
    found = reader(vocabulary, text).lists("Rome to green blue Send\nlamps Rome blue to red")
    assert found.items == ()
    assert found.confidence < 0.1


def test_empty_lines_are_no_items(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, CITIES)
    assert lines(window, "Berlin", "", "Rome") == ["Berlin", "Rome"]


def test_no_more_items_are_given_than_asked_for(vocabulary: Vocabulary) -> None:
    said = "Berlin\nParis\nBerlin\nRome"
    assert len(reader(vocabulary, CITIES).lists(said, most=3).items) == 3


def test_inserted_and_doubled_tokens_do_not_break_a_line(vocabulary: Vocabulary) -> None:
    text = "Two red chairs, a blue table and one lamp."
    window = reader(vocabulary, text)
    red, chairs, blue, table = (window.ids(word)[0] for word in ("red", "chairs", "blue", "table"))
    newline = window.lexicon(by_line=True).newlines[0]
    assert pieces(text, window.lists([red, red, chairs, newline, blue, chairs, table])) == [
        "red chairs",
        "blue table",
    ]


def test_a_newline_ends_an_item_even_where_the_text_has_white_space(vocabulary: Vocabulary) -> None:
    assert lines(reader(vocabulary, "red blue\ngreen"), "red", "blue", "green") == ["red", "blue", "green"]


def test_items_are_trimmed(vocabulary: Vocabulary) -> None:
    text = "Berlin, (Paris), Acme Inc., $5."
    said = ("Berlin,", "(Paris", "Acme Inc.,", "$5.")
    assert lines(reader(vocabulary, text), *said) == ["Berlin", "Paris", "Acme Inc.", "$5"]


def test_a_list_that_fills_its_blank_is_read_to_the_end(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, CITIES)
    lexicon = window.lexicon(by_line=True)
    ids = window.ids("Berlin\nParis\nBerlin")
    found = decode_list(CITIES, window.walker(lexicon), blank_of_ids(lexicon, ids, len(ids)), 16)
    assert places(found) == [(0, 6), (8, 13), (15, 21)]
    assert found.tokens == len(ids)


@pytest.mark.parametrize("said", ["Berlin", "Berlin\nParis"])
def test_tokens_count_all_lines(vocabulary: Vocabulary, said: str) -> None:
    window = reader(vocabulary, CITIES)
    assert window.lists(said).tokens == len(window.ids(said))


def test_a_lists_confidence_is_its_weakest_items(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, CITIES)
    lexicon = window.lexicon(by_line=True)
    ids = window.ids("Berlin\nParis")
    blank = blank_of_ids(lexicon, ids, 24)
    place = len(window.ids("Berlin")) + 1
    row = {**dict.fromkeys(lexicon.tokens, -20.0), ids[place]: math.log(0.7), ids[0]: math.log(0.3)}
    rows = [*blank.rows[:place], row, *blank.rows[place + 1 :]]
    found = decode_list(CITIES, window.walker(lexicon), replace(blank, rows=rows), 16)
    assert [item.confidence for item in found.items] == pytest.approx([0.98, 0.7], abs=0.01)
    assert found.confidence == pytest.approx(0.7, abs=0.01)


def test_one_place_found_twice_is_one_item() -> None:
    assert merged([item(3, 9, 0.5), item(3, 9, 0.8), item(3, 9, 0.6)]) == [item(3, 9, 0.8)]


def test_equal_texts_at_two_places_stay_two() -> None:
    assert merged([item(20, 26), item(3, 9), item(3, 9)]) == [item(3, 9), item(20, 26)]


def test_of_pieces_that_overlap_the_surest_stays() -> None:
    assert merged([item(3, 9, 0.5), item(3, 12, 0.8)]) == [item(3, 12, 0.8)]
    assert merged([item(3, 9, 0.8), item(5, 12, 0.5), item(12, 14, 0.1)]) == [
        item(3, 9, 0.8),
        item(12, 14, 0.1),
    ]


def test_of_pieces_equally_sure_the_longer_stays() -> None:
    assert merged([item(3, 9), item(3, 12), item(5, 9)]) == [item(3, 12)]


def test_merged_items_lie_in_text_order_whatever_the_order_they_came_in() -> None:
    items = [item(start, start + 4, 1 / (start + 1)) for start in range(0, 100, 3)]
    assert merged(items) == merged(items[::-1])
    assert [one.start for one in merged(items)] == sorted(one.start for one in merged(items))


def test_overlapping_windows_count_a_value_once_and_repeats_of_it_each(vocabulary: Vocabulary) -> None:
    """The same three words stand in every sentence, so some of them in two windows at once."""
    many = words(vocabulary, 240)
    text = " ".join(f"Red chair {' '.join(many[start : start + 8])}." for start in range(0, 240, 8))
    plan = make_plan(decide(spans(max_items=64), state=text), vocabulary)
    shared = [
        (window, following) for window, following in pairwise(plan.windows) if following.start < window.end
    ]
    assert len(shared) == len(plan.windows) - 1 > 3

    def every_mention(read: Read) -> str:
        window = plan.windows[int(read.id.split("/")[2])]
        return "\n".join(["Red chair"] * text.count("Red chair", window.start, window.end))

    items = play(plan, writing(plan, every_mention)).answers.spans["l"].items
    assert places(items) == [match.span() for match in re.finditer("Red chair", text)]
    assert len(items) == 30
