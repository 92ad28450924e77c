"""Chunks: how a joint stage is cut into canvases, and what each part's prompt lists."""

import re
from typing import Any

import pytest

from planner.decision import Question
from planner.errors import Invalid
from planner.plan import Chunk, make_plan, steps_of
from planner.reads import Read, Wave
from planner.vocabulary import Vocabulary
from planner.waves import first_wave
from tests.planner.support import (
    answer_of,
    check_vllm_rules,
    choice,
    decide,
    first_reads,
    many,
    noul,
    play,
    prompt_of,
)


def steps(vocabulary: Vocabulary, *questions: Question, **options: Any) -> list[list[Chunk]]:
    """The chunks of the first stage of a joint decision, by step."""
    plan = make_plan(decide(*questions, joint=True, **options), vocabulary)
    return steps_of(plan, plan.stages[0])


def asked(chunks: list[Chunk]) -> list[list[str]]:
    return [[question.id for question in chunk.questions] for chunk in chunks]


def listed(vocabulary: Vocabulary, read: Read) -> list[str]:
    """The ids that a joint prompt lists, in order."""
    return re.findall(r"^\[(?:\d+ )?(\w+)\]", prompt_of(vocabulary, read), re.MULTILINE)


def letters(names: str) -> list[Question]:
    return [noul(name) for name in names]


def test_an_isolated_stage_has_a_canvas_for_every_question(vocabulary: Vocabulary) -> None:
    assert len(first_reads(vocabulary, *letters("abc"))) == 3


def test_a_joint_stage_that_fits_is_one_canvas(vocabulary: Vocabulary) -> None:
    assert [asked(step) for step in steps(vocabulary, *letters("abc"))] == [[["a", "b", "c"]]]


def test_alone_takes_a_read_of_its_own_in_a_joint_stage(vocabulary: Vocabulary) -> None:
    (step,) = steps(vocabulary, noul("a"), noul("b", alone=True), noul("c"))
    assert asked(step) == [["a", "c"], ["b"]]
    assert [chunk.joint for chunk in step] == [True, False]


def test_a_stage_of_nothing_but_alone_questions_has_no_joint_canvas(vocabulary: Vocabulary) -> None:
    for sequential in (False, True):
        (step,) = steps(vocabulary, noul("a", alone=True), noul("b", alone=True), sequential=sequential)
        assert asked(step) == [["a"], ["b"]]


def test_chunk_rows_is_the_most_questions_of_a_canvas_and_cuts_are_even(vocabulary: Vocabulary) -> None:
    (step,) = steps(vocabulary, *letters("abcdefg"), chunk_rows=3)
    assert asked(step) == [["a", "b", "c"], ["d", "e"], ["f", "g"]]


def test_chunk_rows_of_one_reads_every_question_by_itself(vocabulary: Vocabulary) -> None:
    (step,) = steps(vocabulary, *letters("abc"), chunk_rows=1)
    assert asked(step) == [["a"], ["b"], ["c"]]


def test_chunk_rows_beyond_the_stage_change_nothing(vocabulary: Vocabulary) -> None:
    assert steps(vocabulary, *letters("abc"), chunk_rows=400) == steps(vocabulary, *letters("abc"))


def test_questions_that_overfill_a_canvas_are_cut_into_the_fewest_that_fit(vocabulary: Vocabulary) -> None:
    questions = [noul(f"the question number {number}") for number in range(10)]
    reads = first_reads(vocabulary, *questions, joint=True)
    assert len(reads) == 2
    assert "\n".join(answer_of(vocabulary, read) for read in reads).splitlines() == [
        f"the question number {number}: yes" for number in range(10)
    ]


def test_400_questions_fit_into_canvases_by_the_rules(vocabulary: Vocabulary) -> None:
    reads = first_reads(vocabulary, *(choice(f"q{number}", many(3)) for number in range(400)), joint=True)
    assert sum(len(read.canvas.free) for read in reads) == 400
    for read in reads:
        check_vllm_rules(read, vocabulary)


def test_parts_with_prompts_of_their_own_list_only_their_questions(vocabulary: Vocabulary) -> None:
    reads = first_reads(vocabulary, *letters("abcd"), joint=True, chunk_rows=2, chunk_prompt="own")
    assert [listed(vocabulary, read) for read in reads] == [["a", "b"], ["c", "d"]]


def test_parts_with_a_shared_prompt_all_list_the_whole_stage(vocabulary: Vocabulary) -> None:
    reads = first_reads(vocabulary, *letters("abcd"), joint=True, chunk_rows=2, chunk_prompt="shared")
    assert [listed(vocabulary, read) for read in reads] == [["a", "b", "c", "d"]] * 2
    assert len({read.head for read in reads}) == 1


def test_parts_of_a_shared_indexed_prompt_answer_under_the_numbers_listed(vocabulary: Vocabulary) -> None:
    questions = [noul(f"q{number}") for number in range(22)]
    reads = first_reads(vocabulary, *questions, joint=True, chunk_rows=11, chunk_prompt="shared")
    assert [answer_of(vocabulary, read).split()[0] for read in reads] == ["0yes", "11yes"]


def test_parts_run_together_unless_they_are_sequential(vocabulary: Vocabulary) -> None:
    plan = make_plan(decide(*letters("abcd"), joint=True, chunk_rows=2), vocabulary)
    assert len(play(plan).waves) == 1


def test_sequential_parts_run_in_order_with_the_earlier_answers_prefilled(vocabulary: Vocabulary) -> None:
    decision = decide(*letters("abcd"), noul("z", alone=True), joint=True, chunk_rows=2, sequential=True)
    played = play(make_plan(decision, vocabulary))
    assert [len(wave.reads) for wave in played.waves] == [2, 1]
    *_, last = played.reads
    assert prompt_of(vocabulary, last).endswith("assistant\na: yes\nb: yes\nz: yes\n")
    assert answer_of(vocabulary, last) == "c: yes\nd: yes"
    assert played.answers.waves == 2


def test_sequential_parts_list_every_question_once(vocabulary: Vocabulary) -> None:
    decision = decide(*letters("abcd"), joint=True, chunk_rows=2, sequential=True)
    *_, last = play(make_plan(decision, vocabulary)).reads
    assert listed(vocabulary, last) == ["a", "b", "c", "d"]


def test_sequential_parts_with_a_shared_prompt_list_every_question_once(vocabulary: Vocabulary) -> None:
    decision = decide(*letters("abcd"), joint=True, chunk_rows=2, sequential=True, chunk_prompt="shared")
    assert [listed(vocabulary, read) for read in play(make_plan(decision, vocabulary)).reads] == [
        ["a", "b", "c", "d"],
        ["a", "b", "c", "d"],
    ]


def test_a_sequential_shared_part_answers_under_the_numbers_listed(vocabulary: Vocabulary) -> None:
    questions = [noul(f"q{number}") for number in range(22)]
    decision = decide(*questions, joint=True, chunk_rows=11, sequential=True, chunk_prompt="shared")
    *_, last = play(make_plan(decision, vocabulary)).reads
    assert "[11 q11]" in prompt_of(vocabulary, last)
    assert answer_of(vocabulary, last).split()[0] == "11yes"


def test_a_stage_that_a_skip_would_leave_with_lines_that_do_not_fit_is_refused_at_once(
    vocabulary: Vocabulary,
) -> None:
    """Eleven questions are indexed, which shows no ids; the ten that a skip leaves are lines, which do."""
    long = "an id that is far too long for a line of a canvas of sixty-four tokens " * 4
    gated = [noul(f"{long}{number}", depends_on=("gate",)) for number in range(10)]
    skipped = noul("skipped", ask_if={"gate": ("no",)})
    with pytest.raises(Invalid, match="holds 62") as refused:
        make_plan(decide(noul("gate"), *gated, skipped, joint=True), vocabulary)
    assert refused.value.loc == ("questions", gated[0].id)


def test_long_ids_that_only_an_indexed_canvas_shows_are_answered(vocabulary: Vocabulary) -> None:
    long = "an id that is far too long for a line of a canvas of sixty-four tokens " * 4
    questions = [noul(f"{long}{number}") for number in range(11)]
    assert len(play(make_plan(decide(*questions, joint=True), vocabulary)).answers.readings) == 11


@pytest.mark.parametrize("joint", [False, True])
def test_a_wave_of_every_kind_of_read_survives_the_store(vocabulary: Vocabulary, joint: bool) -> None:
    questions = [noul("a"), choice("b", many(200)), noul("c", alone=True)]
    wave = first_wave(make_plan(decide(*questions, joint=joint, samples=2), vocabulary))
    assert Wave.from_bytes(wave.to_bytes()) == wave
