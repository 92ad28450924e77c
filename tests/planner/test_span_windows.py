"""Windows: every part of a text in a read that can spell it, and time that grows with the text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.reads import MAX_IDS
from planner.spans.boundaries import boundaries
from planner.spans.windows import OVERLAP_WORDS, Window, ids_always_asked, make_windows
from planner.vocabulary import Vocabulary, make_vocabulary
from tests.planner.span_support import Reader, words
from tests.planner.support import FakeTokenizer

THINGS = ("chair", "table", "lamp", "shelf", "carpet", "mirror", "sofa", "desk", "stool", "bench", "clock")
CITIES = ("Berlin", "Paris", "Rome", "Madrid", "Vienna", "Oslo", "Prague", "Athens", "Dublin", "Lisbon")
ACTS = ("ordered", "sold", "painted", "moved", "cleaned", "found", "lost")


def sentence(number: int) -> str:
    """One of many sentences that share few words."""
    act, thing, city = ACTS[number % 7], THINGS[number % 11], CITIES[(number * 3 + 1) % 10]
    return f"Customer {number} {act} the {thing} number A-{number * 37} near {city} station."


def story(count: int) -> str:
    """A text of several windows."""
    return " ".join(map(sentence, range(count)))


def check(text: str, vocabulary: Vocabulary) -> list[tuple[int, int]]:
    """The ranges of a text's windows, with what holds of all windows."""
    windows = make_windows(text, vocabulary)
    assert (windows[0].start, windows[-1].end) == (0, len(text))
    for window, following in pairwise(windows):
        assert window.start < following.start <= window.end < following.end
    for window in windows:
        assert len(window.ids) <= MAX_IDS
        assert set(ids_always_asked(vocabulary)) <= set(window.ids)
        assert list(window.ids) == sorted(set(window.ids))
    return [(window.start, window.end) for window in windows]


def test_a_short_text_is_one_window_of_the_whole(vocabulary: Vocabulary) -> None:
    text = f"  {sentence(1)}\n{sentence(2)}\n"
    assert check(text, vocabulary) == [(0, len(text))]


def test_a_text_that_repeats_its_words_is_one_window_however_long(vocabulary: Vocabulary) -> None:
    text = "The red chair stands here. " * 4_000
    assert check(text, vocabulary) == [(0, len(text))]


def test_windows_hold_whole_sentences_and_share_one(vocabulary: Vocabulary) -> None:
    many = words(vocabulary, 400)
    text = " ".join(f"Then {' '.join(many[start : start + 8])}." for start in range(0, 400, 8))
    starts = [match.start() for match in re.finditer("Then", text)]
    ranges = check(text, vocabulary)
    assert len(ranges) > 4
    assert all(start in starts for start, _ in ranges)
    assert all(end + 1 in starts for _, end in ranges[:-1])
    for (_, end), (start, _) in pairwise(ranges):
        assert sum(start <= place < end for place in starts) == 1


def test_two_sentences_that_no_window_holds_together_share_words(vocabulary: Vocabulary) -> None:
    many = words(vocabulary, 160)
    sentences = [" ".join(many[start : start + 40]) + "." for start in range(0, 160, 40)]
    text = " ".join(sentences)
    ranges = check(text, vocabulary)
    assert len(ranges) == 4
    for (_, end), (start, _) in pairwise(ranges):
        assert text[end - 1] == "."
        assert 0 < len(text[start:end].split()) <= OVERLAP_WORDS


def test_a_sentence_too_long_for_a_window_is_cut_at_words_with_overlap(vocabulary: Vocabulary) -> None:
    text = " ".join(words(vocabulary, 400))
    ranges = check(text, vocabulary)
    assert len(ranges) > 5
    for (_, end), (start, _) in pairwise(ranges):
        assert OVERLAP_WORDS / 2 < len(text[start:end].split()) <= OVERLAP_WORDS
        assert text[start - 1] == text[end] == " "


def test_a_long_word_is_cut_at_graphemes(vocabulary: Vocabulary) -> None:
    text = "".join(chr(0x4E00 + 7 * n) + "\u0301" for n in range(300))
    assert {start % 2 for start, _ in check(text, vocabulary)} == {0}


def test_a_grapheme_of_more_ids_than_a_read_may_ask_for_is_cut_as_well(vocabulary: Vocabulary) -> None:
    check("x" + "".join(chr(0x300 + n % 0x70) for n in range(2_000)), vocabulary)


def test_paragraph_breaks_that_the_sentence_splitter_drops_are_in_a_window(vocabulary: Vocabulary) -> None:
    text = "\n\n".join([*map(sentence, range(20)), "\r\n \r\n".join(map(sentence, range(20, 40)))])
    check(f"\n\n{text}\n\n\t", vocabulary)


def test_no_white_space_is_lost_and_none_makes_a_window(vocabulary: Vocabulary) -> None:
    text = (" " * 500).join(map(sentence, range(30)))
    assert len(check(text, vocabulary)) == len(check(story(30), vocabulary))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8"), max_size=30)
        | st.sampled_from([". ", "\n\n", " ", "。", "! ", "x" * 60, "\u0301" * 50])
        | st.integers(0, 99).map(sentence),
        max_size=60,
    ).map("".join)
)
def test_every_text_is_covered_by_windows_of_at_most_128_ids(vocabulary: Vocabulary, text: str) -> None:
    if text.strip():
        check(text, vocabulary)


@cache
def windows_of(text: str, vocabulary: Vocabulary) -> tuple[Window, ...]:
    return make_windows(text, vocabulary)


def test_a_value_is_found_wherever_it_stands_around_a_border(vocabulary: Vocabulary) -> None:
    """What stands before it grows word by word, so that the value passes over every border."""
    many = words(vocabulary, 200)
    sentences = [f"Then {' '.join(many[start : start + 8])}." for start in range(0, 200, 8)]
    before = " ".join(sentences).split()
    for count in range(100):
        text = f"{' '.join(before[:count])} Zanzibar Blue Nine. {' '.join(sentences)}"
        start = text.index("Zanzibar")
        assert len(windows_of(text, vocabulary)) > 3
        assert holds(text, vocabulary, start, start + len("Zanzibar Blue Nine")), count


def holds(text: str, vocabulary: Vocabulary, start: int, end: int) -> bool:
    """Whether a model that writes a piece gets it from some window; whatever is found is the piece."""
    found = False
    for window in windows_of(text, vocabulary):
        if window.start <= start and end <= window.end:
            (item,) = Reader(vocabulary, text, window).says(text[start:end]).items
            assert (item.start, item.end) == (start, end)
            found = True
    return found


def test_a_value_around_every_word_cut_of_a_long_sentence_is_whole_in_a_window(
    vocabulary: Vocabulary,
) -> None:
    many = words(vocabulary, 200)
    text = " ".join(many)
    for first in range(len(many) - 5):
        value = " ".join(many[first : first + 5])
        start = text.index(value)
        assert holds(text, vocabulary, start, start + len(value)), value


def test_a_value_across_the_ends_of_two_sentences_is_whole_in_a_window(vocabulary: Vocabulary) -> None:
    """A splitter takes a full stop for the end of a sentence where it ends a name."""
    many = words(vocabulary, 400)
    text = " ".join(f"Then {' '.join(many[start : start + 8])}." for start in range(0, 400, 8))
    for match in re.finditer(r"\S+\. Then \S+", text):
        assert holds(text, vocabulary, *match.span()), match[0]


def test_a_value_at_the_very_start_and_end_of_many_windows_is_found(vocabulary: Vocabulary) -> None:
    text = f"Zanzibar Blue. {story(30)} Zanzibar Red"
    assert holds(text, vocabulary, 0, len("Zanzibar Blue"))
    assert holds(text, vocabulary, len(text) - len("Zanzibar Red"), len(text))


def test_a_window_that_ends_inside_a_word_has_no_boundary_there(vocabulary: Vocabulary) -> None:
    text = "".join(words(vocabulary, 100))
    assert len(windows_of(text, vocabulary)) > 1
    for window in make_windows(text, vocabulary):
        found = boundaries(text, window.start, window.end)
        assert (found[0], found[-1]) == (window.start == 0, window.end == len(text))


@dataclass
class CountingTokenizer(FakeTokenizer):
    """Counts the texts it is given, call by call."""

    calls: list[int] = field(default_factory=list)

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        self.calls.append(len(texts))
        return super().encode_many(texts)


def test_a_text_is_tokenised_in_one_call_and_each_word_once() -> None:
    text = story(300)
    for copies in (1, 4):
        tokenizer = CountingTokenizer()
        make_windows("\n".join([text] * copies), make_vocabulary(tokenizer))
        (count,) = tokenizer.calls
        assert count < 8 * len(set(text.split()))


@pytest.mark.parametrize("part", [story(200) + "\n", "lorem ipsum dolor. ", "word " * 10, "北京市"])
def test_the_number_of_windows_grows_with_the_text_and_no_faster(vocabulary: Vocabulary, part: str) -> None:
    one, four = (make_windows(part * count, vocabulary) for count in (1, 4))
    assert len(four) <= 4 * len(one) + 4
    covered = sum(window.end - window.start for window in four)
    assert covered <= 2 * len(part * 4), "windows overlap by no more than their half"
