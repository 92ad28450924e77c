"""The decoder: which piece of the text a blank spells, and how sure it is of it."""

import math
from dataclasses import replace

import pytest

from planner.span_parts import SURE
from planner.spans.decoder import MOST_WAYS, SKIP_COST, Blank
from planner.spans.items import decode_span
from planner.vocabulary import Vocabulary
from tests.planner.span_support import Reader, blank_of_ids, pieces, places, reader

ORDER = "Dana Smith of Acme Inc. ordered two red chairs, order #A-1042, for $99.50."


def swapped(ids: list[int], place: int, *others: int) -> list[int]:
    """Ids with one of them replaced by others."""
    return [*ids[:place], *others, *ids[place + 1 :]]


def token(window: Reader, text: str) -> int:
    """The one id that spells a text in a window."""
    (id,) = window.ids(text)
    return id


def test_a_piece_of_the_text_is_found_with_its_offsets(vocabulary: Vocabulary) -> None:
    found = reader(vocabulary, ORDER).says("red chairs")
    assert places(found) == [(36, 46)]
    assert ORDER[36:46] == "red chairs"
    assert found.confidence == pytest.approx(0.98, abs=0.01)


def test_of_a_value_that_the_text_repeats_the_first_occurrence_is_found(vocabulary: Vocabulary) -> None:
    text = "Berlin, then Paris, then Berlin, then Paris."
    assert places(reader(vocabulary, text).says("Paris")) == [(13, 18)]
    assert places(reader(vocabulary, text).says("Paris, then Berlin")) == [(13, 31)]


def test_a_longer_context_tells_occurrences_apart(vocabulary: Vocabulary) -> None:
    text = "The red chair, the red table, the red lamp."
    assert places(reader(vocabulary, text).says("red lamp")) == [(34, 42)]


def test_a_value_inside_a_word_is_not_an_occurrence(vocabulary: Vocabulary) -> None:
    text = "A chairman has a chair."
    assert places(reader(vocabulary, text).says("chair")) == [(17, 22)]


@pytest.mark.parametrize(
    ("text", "said"),
    [("Total due: 1,000.50 EUR", "1000.50"), (ORDER, "Dana red Smith")],
)
def test_a_piece_beside_words_that_are_not_in_the_text_is_unsure(
    vocabulary: Vocabulary, text: str, said: str
) -> None:
    found = reader(vocabulary, text).says(said)
    assert found.confidence < SURE


def test_a_value_is_found_without_the_particle_written_onto_it(vocabulary: Vocabulary) -> None:
    text = "나는 서울에서 왔다"
    assert pieces(text, reader(vocabulary, text).says("서울")) == ["서울"]


def test_a_blank_that_is_full_to_its_end_needs_no_turn_close(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, ORDER)
    lexicon = window.lexicon(by_line=False)
    ids = window.ids("two red chairs")
    found = decode_span(ORDER, window.walker(lexicon), blank_of_ids(lexicon, ids, len(ids)))
    assert pieces(ORDER, found) == ["two red chairs"]
    assert found.tokens == len(ids)


def test_confidence_is_the_weakest_probability_along_the_piece_and_its_end(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, ORDER)
    lexicon = window.lexicon(by_line=False)
    ids = window.ids("two red chairs")
    for weak in range(len(ids) + 1):
        blank = blank_of_ids(lexicon, ids, 24)
        (other,) = window.ids("order")
        id = ids[weak] if weak < len(ids) else lexicon.closers[0]
        row = {**dict.fromkeys(lexicon.tokens, -20.0), id: math.log(0.6), other: math.log(0.4)}
        rows = [*blank.rows[:weak], row, *blank.rows[weak + 1 :]]
        found = decode_span(ORDER, window.walker(lexicon), replace(blank, rows=rows))
        assert pieces(ORDER, found) == ["two red chairs"]
        assert found.confidence == pytest.approx(0.6, abs=0.001)


def test_a_first_token_with_and_without_its_space_counts_together(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, "red chairs, and red tables")
    lexicon = window.lexicon(by_line=False)
    (spaced,), (bare,) = vocabulary.tokenizer.encode(" red"), vocabulary.tokenizer.encode("red")
    blank = blank_of_ids(lexicon, window.ids("red tables"), 24)
    row = {**dict.fromkeys(lexicon.tokens, -20.0), spaced: math.log(0.5), bare: math.log(0.5)}
    found = decode_span(window.text, window.walker(lexicon), replace(blank, rows=[row, *blank.rows[1:]]))
    assert found.confidence > 0.9


def test_coverage_is_the_least_mass_of_the_allowed_ids(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, ORDER)
    lexicon = window.lexicon(by_line=False)
    blank = blank_of_ids(lexicon, window.ids("Dana Smith"), 24)
    thin = [{id: value + math.log(0.5) for id, value in blank.rows[0].items()}, *blank.rows[1:]]
    (item,) = decode_span(ORDER, window.walker(lexicon), replace(blank, rows=thin)).items
    assert item.coverage == pytest.approx(0.5)
    assert item.confidence == pytest.approx(0.98, abs=0.01)


def test_a_piece_that_costs_as_little_as_none_is_none(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, ORDER)
    lexicon = window.lexicon(by_line=False)
    flat = Blank([dict.fromkeys(lexicon.tokens, -5.0)] * 24, [-5.0] * 24, lexicon)
    assert decode_span(ORDER, window.walker(lexicon), flat).items == ()


def test_an_inserted_token_costs_what_the_constant_says(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, ORDER)
    lexicon = window.lexicon(by_line=False)
    ids = [token(window, "red"), token(window, "two"), token(window, "chairs")]
    walk = window.walker(lexicon).best(blank_of_ids(lexicon, ids, 24))
    assert walk is not None
    assert walk.cost == SKIP_COST
    assert [position for position, _ in walk.steps] == [0, 2]
    assert walk.stop == 3


def test_a_value_at_the_end_of_a_text_that_repeats_itself_is_found(vocabulary: Vocabulary) -> None:
    text = "red chair, " * 9_000 + "red lamp"
    assert places(reader(vocabulary, text).says("red lamp")) == [(99_000, 99_008)]


@pytest.mark.parametrize("repeated", ["red chair, ", "a ", "北京市"])
def test_the_ways_followed_for_a_value_do_not_grow_with_the_text(
    vocabulary: Vocabulary, repeated: str
) -> None:
    for length in (3, 30_000):
        window = reader(vocabulary, repeated * length)
        lexicon = window.lexicon(by_line=False)
        walker = window.walker(lexicon)
        said = repeated.strip(" ,")
        assert pieces(
            window.text, decode_span(window.text, walker, blank_of_ids(lexicon, window.ids(said), 24))
        )
        assert MOST_WAYS - walker.patience < 200


def test_a_blank_of_nonsense_is_given_up_in_a_text_that_repeats_itself(vocabulary: Vocabulary) -> None:
    window = reader(vocabulary, "a " * 50_000)
    lexicon = window.lexicon(by_line=False)
    spaced, bare = (vocabulary.tokenizer.encode(text)[0] for text in (" none", "none"))
    walker = window.walker(lexicon)
    blank = blank_of_ids(lexicon, [spaced, *window.ids("a"), bare, bare], 24)
    assert decode_span(window.text, walker, blank).confidence < SURE
    assert walker.patience == 0
