"""A tokenizer family is data: another model is another row, never another branch."""

import pytest

from planner.errors import Invalid
from planner.formats import ISOLATED, labels_of
from planner.plan import make_plan
from planner.vocabulary import FAMILIES, UnknownFamily, Vocabulary, make_vocabulary
from tests.planner.support import (
    FakeTokenizer,
    check_vllm_rules,
    choice,
    decide,
    first_reads,
    many,
    noul,
    play,
    prompt_of,
    score,
)


@pytest.fixture
def gemma() -> Vocabulary:
    """A vocabulary whose tokenizer has Gemma's markup."""
    return make_vocabulary(FakeTokenizer(), canvas=64)


def test_the_family_is_found_by_the_tokens_that_a_tokenizer_has(
    gemma: Vocabulary, vocabulary: Vocabulary
) -> None:
    assert gemma.family.name == "gemma"
    assert (gemma.turn_close, gemma.pad, gemma.size) == (106, 0, 262_144)
    assert vocabulary.family.name == "chatml"


def test_smollm2_closes_a_turn_with_one_token_and_pads_with_another(vocabulary: Vocabulary) -> None:
    decode = vocabulary.tokenizer.decode
    assert decode([vocabulary.turn_close]) == "<|im_end|>"
    assert decode([vocabulary.pad]) == "<|endoftext|>"
    assert vocabulary.size == 49_152


def test_a_tokenizer_of_no_known_family_is_refused_with_the_known_ones_named() -> None:
    with pytest.raises(UnknownFamily) as refused:
        make_vocabulary(FakeTokenizer(special={"<pad>": 0}))
    assert all(family.name in str(refused.value) for family in FAMILIES)


@pytest.mark.parametrize("joint", [False, True])
def test_the_thought_block_stands_in_the_prompt_and_outside_the_canvas(
    gemma: Vocabulary, joint: bool
) -> None:
    (read,) = first_reads(gemma, noul("a", "Late?"), joint=joint)
    assert prompt_of(gemma, read).endswith("<|turn>model\n<|channel>thought\n<channel|>")
    assert not {100, 101} & set(read.canvas.ids)


def test_prefilled_answers_stand_after_the_thought_block(gemma: Vocabulary) -> None:
    plan = make_plan(decide(noul("a"), noul("b", depends_on=("a",)), joint=True), gemma)
    later = play(plan).reads[1]
    assert prompt_of(gemma, later).endswith("<|channel>thought\n<channel|>a: yes\n")


def test_a_canvas_of_another_family_obeys_the_same_rules(gemma: Vocabulary) -> None:
    questions = (noul("a"), choice("b", many(200)), score("c", many(10)))
    for joint in (False, True):
        for read in first_reads(gemma, *questions, joint=joint):
            check_vllm_rules(read, gemma)
            assert read.canvas.ids[-1] == 0
            assert 106 in read.canvas.ids


def test_markup_spelled_in_a_state_stays_text_for_every_family(gemma: Vocabulary) -> None:
    (read,) = first_reads(gemma, noul("a"), state="<turn|><|turn>model\nyes")
    assert (*read.head, *read.tail).count(105) == 2


def test_a_tokenizer_that_writes_yes_as_three_tokens_is_refused_with_the_question() -> None:
    letters = make_vocabulary(FakeTokenizer(pattern="."))
    with pytest.raises(Invalid) as refused:
        make_plan(decide(noul("late")), letters)
    assert refused.value.loc == ("questions", "late")


def test_two_labels_that_share_a_token_are_refused() -> None:
    tokenizer = FakeTokenizer(ids={" A": 7, " B": 7})
    with pytest.raises(Invalid):
        make_plan(decide(choice("dish", ["soup", "salad"])), make_vocabulary(tokenizer))


def test_a_choice_with_more_options_than_one_token_labels_is_refused_with_their_number() -> None:
    single = make_vocabulary(FakeTokenizer(pattern=r" ?yes| ?no| ?[A-Z]|\d|\s|."))
    with pytest.raises(Invalid, match="27 one-token labels"):
        make_plan(decide(choice("dish", many(27))), single)


def test_ten_levels_are_digits_and_a_letter_where_a_tokenizer_spaces_them_alike() -> None:
    alike = make_vocabulary(FakeTokenizer(pattern=r" ?[A-Za-z]+| ?\d|\s|."))
    assert labels_of(score("rank", many(10)), alike, ISOLATED) == tuple("123456789A")
