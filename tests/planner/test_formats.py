"""Labels and slots: every alternative is one token in one place, and rows become probabilities."""

import math
from dataclasses import replace

import pytest

from planner.decision import Question
from planner.formats import (
    INDEXED,
    ISOLATED,
    LINES,
    Distribution,
    Format,
    Row,
    Slot,
    Template,
    distribution,
    labels_of,
    make_template,
)
from planner.plan import make_plan
from planner.reads import Read, Rows, id_sets
from planner.vocabulary import Vocabulary
from tests.planner.support import answer_of, choice, decide, first_reads, many, noul, play, score

FORMATS = [ISOLATED, LINES, INDEXED]
QUESTIONS = [
    noul("q"),
    *(choice("q", many(count)) for count in (1, 2, 26, 27, 128, 129, 255)),
    *(score("q", many(count)) for count in (1, 2, 9, 10)),
]
ODD_IDS = ["{", "{id}", "}{0}", "%s", "a: b", "[1]", '"', "\\n", " ", "été", "日本", "🙂", "yes", "A" * 20]


def template(vocabulary: Vocabulary, format: Format, *questions: Question) -> Template:
    rows = (
        Row(index, question.id, labels_of(question, vocabulary, format))
        for index, question in enumerate(questions)
    )
    return make_template(vocabulary, format, tuple(rows))


def spelled(vocabulary: Vocabulary, made: Template, slot: Slot, alternative: int) -> str:
    """The answer text with one alternative's token in its slot."""
    ids = list(made.ids)
    ids[slot.position] = slot.label_ids[alternative]
    return vocabulary.tokenizer.decode(ids)


def name(question: Question) -> str:
    return f"{question.type}-{len(question.alternatives)}"


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@pytest.mark.parametrize("question", QUESTIONS, ids=name)
def test_every_alternative_is_a_token_of_its_own_in_one_place(
    vocabulary: Vocabulary, question: Question, format: Format
) -> None:
    (slot,) = template(vocabulary, format, question).slots
    assert len(slot.label_ids) == len(set(slot.label_ids)) == len(question.alternatives)


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@pytest.mark.parametrize("question", QUESTIONS, ids=name)
def test_the_token_of_an_alternative_spells_its_label_in_the_answer(
    vocabulary: Vocabulary, question: Question, format: Format
) -> None:
    made = template(vocabulary, format, question)
    for place, label in enumerate(labels_of(question, vocabulary, format)):
        text = format.text([(0, "q", label)], " ")
        assert spelled(vocabulary, made, made.slots[0], place) == text


def test_a_noul_is_answered_yes_or_no(vocabulary: Vocabulary) -> None:
    assert labels_of(noul("q"), vocabulary, ISOLATED) == ("yes", "no")


def test_options_are_labelled_with_letters_in_order(vocabulary: Vocabulary) -> None:
    assert labels_of(choice("q", many(4)), vocabulary, ISOLATED) == tuple("ABCD")


def test_options_beyond_the_alphabet_go_on_with_two_letter_codes(vocabulary: Vocabulary) -> None:
    labels = labels_of(choice("q", many(255)), vocabulary, ISOLATED)
    assert labels[:26] == tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    assert {len(label) for label in labels[26:]} == {2}
    assert len(set(labels)) == 255


def test_more_options_only_add_labels(vocabulary: Vocabulary) -> None:
    most = labels_of(choice("q", many(255)), vocabulary, LINES)
    for count in (1, 26, 27, 100):
        assert labels_of(choice("q", many(count)), vocabulary, LINES) == most[:count]


def test_up_to_nine_levels_are_digits_from_one(vocabulary: Vocabulary) -> None:
    assert labels_of(score("q", many(9)), vocabulary, ISOLATED) == tuple("123456789")


def test_ten_levels_are_letters_where_digits_and_letters_are_spaced_differently(
    vocabulary: Vocabulary,
) -> None:
    assert labels_of(score("q", many(10)), vocabulary, ISOLATED) == tuple("ABCDEFGHIJ")


@pytest.mark.parametrize("question", [choice("q", ["only"]), score("q", ["only"])], ids=name)
def test_a_question_with_a_single_alternative_has_a_certain_answer(
    vocabulary: Vocabulary, question: Question
) -> None:
    reading = play(make_plan(decide(question), vocabulary)).answers.readings["q"]
    assert reading.probabilities == (1.0,)


def test_label_ids_are_asked_in_sets_of_at_most_128(vocabulary: Vocabulary) -> None:
    first, second = first_reads(vocabulary, choice("q", many(255)))
    assert (len(first.ids), len(second.ids)) == (128, 127)
    assert not set(first.ids) & set(second.ids)


def test_the_sets_of_one_draw_read_the_same_canvas_and_prompt(vocabulary: Vocabulary) -> None:
    first, second = first_reads(vocabulary, choice("q", many(129)))
    assert replace(second, id=first.id, ids=first.ids) == first


@pytest.mark.parametrize(("count", "sizes"), [(1, [1]), (128, [128]), (129, [128, 1]), (300, [128, 128, 44])])
def test_an_id_set_is_full_before_the_next_begins(count: int, sizes: list[int]) -> None:
    assert [len(ids) for ids in id_sets(range(count))] == sizes


def test_an_id_that_several_slots_share_is_asked_once() -> None:
    assert id_sets([5, 6, 5, 7, 6]) == ((5, 6, 7),)


def test_sets_merge_into_the_softmax_over_all_options(vocabulary: Vocabulary) -> None:
    def logprob(id: int) -> float:
        return -4 - (id * 2654435761 % 1000) / 100

    def engine(read: Read) -> Rows:
        return Rows((tuple(logprob(id) for id in read.ids),), (read.ids[0],))

    played = play(make_plan(decide(choice("q", many(255))), vocabulary), engine)
    (slot,) = template(vocabulary, ISOLATED, choice("q", many(255))).slots
    total = math.fsum(math.exp(logprob(id)) for id in slot.label_ids)
    expected = [math.exp(logprob(id)) / total for id in slot.label_ids]
    reading = played.answers.readings["q"]
    assert reading.probabilities == pytest.approx(expected, rel=1e-12)
    assert reading.label_mass == pytest.approx(min(1.0, total))


def test_label_probabilities_are_a_softmax_and_their_mass_is_told() -> None:
    found = distribution(Slot(3, (10, 20)), {10: math.log(0.3), 20: math.log(0.1)}, top=20)
    assert found.probabilities == pytest.approx((0.75, 0.25))
    assert found.mass == pytest.approx(0.4)
    assert found.is_label


def test_labels_that_have_no_mass_left_still_compare() -> None:
    found = distribution(Slot(0, (1, 2)), {1: -900.0, 2: -900.0 - math.log(3)}, top=7)
    assert found == Distribution(pytest.approx((0.75, 0.25)), 0.0, is_label=False)  # type: ignore[arg-type]


@pytest.mark.parametrize(("count", "separator"), [(2, "\n"), (10, "\n"), (11, " "), (15, " ")])
def test_up_to_ten_questions_are_lines_and_more_are_indexed(
    vocabulary: Vocabulary, count: int, separator: str
) -> None:
    (read,) = first_reads(vocabulary, *(noul(f"q{number}") for number in range(count)), joint=True)
    assert len(answer_of(vocabulary, read).split(separator)) == count


def test_lines_show_each_id_with_its_answer(vocabulary: Vocabulary) -> None:
    (read,) = first_reads(vocabulary, noul("late"), choice("team", many(3)), joint=True)
    assert answer_of(vocabulary, read) == "late: yes\nteam: A"


def test_an_indexed_canvas_shows_numbers_instead_of_ids(vocabulary: Vocabulary) -> None:
    (read,) = first_reads(vocabulary, *(noul(f"question-{number}") for number in range(12)), joint=True)
    assert answer_of(vocabulary, read) == " ".join(f"{number}yes" for number in range(12))


def test_indexed_slots_are_found_whatever_the_index(vocabulary: Vocabulary) -> None:
    questions = [score(f"q{number}", many(9)) for number in range(120)]
    made = template(vocabulary, INDEXED, *questions)
    expected = [f"{number}1" for number in range(120)]
    for number in (0, 9, 10, 99, 100, 119):
        changed = [*expected[:number], f"{number}9", *expected[number + 1 :]]
        assert spelled(vocabulary, made, made.slots[number], 8) == " ".join(changed)


@pytest.mark.parametrize("id", ODD_IDS)
def test_an_odd_id_on_one_line_is_written_as_it_is(vocabulary: Vocabulary, id: str) -> None:
    (read,) = first_reads(vocabulary, noul(id), choice("z", many(30)), joint=True)
    assert answer_of(vocabulary, read) == f"{id}: yes\nz: A"
    assert len(read.canvas.free) == 2


@pytest.mark.parametrize("id", ["a\nb", "\t", "\r", "\x00", "\u2028", "a\u200bb"])
def test_an_id_that_cannot_be_printed_on_a_line_makes_its_canvas_indexed(
    vocabulary: Vocabulary, id: str
) -> None:
    (read,) = first_reads(vocabulary, noul(id), noul("z"), joint=True)
    assert answer_of(vocabulary, read) == "0yes 1yes"
