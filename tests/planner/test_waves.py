"""The state machine: draws, waves, losses, failures, and prompts that are too long."""

from dataclasses import replace
from typing import Any

import pytest

from planner.answers import Answers
from planner.decision import Question
from planner.errors import TooLong
from planner.plan import Plan, make_plan
from planner.reads import Failure, Read, Result, Rows, Served, Wave, result_from_bytes, result_to_bytes
from planner.vocabulary import Vocabulary
from planner.waves import first_wave, next_wave
from tests.planner.support import (
    Engine,
    choice,
    decide,
    first_label,
    first_reads,
    hashed,
    many,
    noul,
    play,
    rows,
    telling,
)

DOWN = Failure("no_engine", "no engine can take it")


def planned(vocabulary: Vocabulary, *questions: Question, **options: Any) -> Plan:
    return make_plan(decide(*questions, **options), vocabulary)


def auto(vocabulary: Vocabulary, *questions: Question, **options: Any) -> Plan:
    return planned(vocabulary, *questions, samples=None, **options)


def failing(*ids: str) -> Engine:
    """An engine that fails these reads, each with its own message."""
    return lambda read: Failure("down", read.id) if read.id in ids else first_label(read)


def seeds(wave: Wave) -> list[int]:
    return [read.seed for read in wave.reads]


def tokens(read: Read) -> int:
    """What a read needs of the context."""
    return len(read.head) + len(read.tail) + read.canvas.width


def test_every_draw_is_a_read_with_a_seed_of_its_own(vocabulary: Vocabulary) -> None:
    reads = first_reads(vocabulary, noul("a"), samples=3, seed=7)
    assert [read.seed for read in reads] == [7, 8, 9]
    assert len({tuple(read.canvas.seeded(read.seed)) for read in reads}) == 3


def test_draws_differ_in_nothing_but_noise(vocabulary: Vocabulary) -> None:
    first, second = first_reads(vocabulary, noul("a"), samples=2)
    assert replace(second, id=first.id, seed=first.seed) == first


def test_all_draws_of_a_fixed_count_come_in_one_wave(vocabulary: Vocabulary) -> None:
    played = play(planned(vocabulary, noul("a"), noul("b"), samples=32))
    assert [len(wave.reads) for wave in played.waves] == [64]
    assert played.answers.waves == 1
    assert played.answers.readings["a"].draws == 32


def test_steps_reach_every_read(vocabulary: Vocabulary) -> None:
    assert {read.steps for read in first_reads(vocabulary, noul("a"), noul("b"), steps=4)} == {4}


def test_read_ids_tell_stage_group_set_draw_and_attempt(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), choice("b", many(129), depends_on=("a",)), samples=2)
    assert [read.id for read in play(plan).reads] == [
        *("0/0/0/0/0", "0/0/0/1/0"),
        *("1/0/0/0/0", "1/0/1/0/0", "1/0/0/1/0", "1/0/1/1/0"),
    ]


def test_automatic_sampling_takes_one_draw_of_what_is_sure(vocabulary: Vocabulary) -> None:
    played = play(auto(vocabulary, noul("a")), lambda read: rows(read, [0.99, 0.01]))
    assert len(played.reads) == 1
    assert played.answers.readings["a"].draws == 1


def test_automatic_sampling_draws_again_what_is_unsure(vocabulary: Vocabulary) -> None:
    played = play(auto(vocabulary, noul("a"), seed=5), lambda read: rows(read, [0.6, 0.4]))
    assert [seeds(wave) for wave in played.waves] == [[5], [6, 7, 8]]
    assert played.answers.readings["a"].draws == 4
    assert played.answers.waves == 2


def test_auto_max_counts_the_first_draw(vocabulary: Vocabulary) -> None:
    for most in (1, 2, 6):
        played = play(auto(vocabulary, noul("a"), auto_max=most), lambda read: rows(read, [0.5, 0.5]))
        assert len(played.reads) == most


@pytest.mark.parametrize(("threshold", "draws"), [(0.0, 4), (0.562, 4), (0.563, 1)])
def test_the_threshold_is_an_entropy_in_nats(vocabulary: Vocabulary, threshold: float, draws: int) -> None:
    """A quarter and three quarters have 0.5623 nats."""
    plan = auto(vocabulary, noul("a"), auto_threshold=threshold)
    assert len(play(plan, lambda read: rows(read, [0.75, 0.25])).reads) == draws


def test_only_the_unsure_questions_are_drawn_again(vocabulary: Vocabulary) -> None:
    plan = auto(vocabulary, noul("a", "Sure?"), noul("b", "Unsure?"))
    played = play(plan, telling(vocabulary, {"Unsure?": [0.5, 0.5]}))
    assert [read.id for read in played.waves[1].reads] == ["0/1/0/1/0", "0/1/0/2/0", "0/1/0/3/0"]
    assert played.answers.readings["a"].draws == 1
    assert played.answers.readings["b"].draws == 4


def test_one_unsure_slot_draws_its_whole_canvas_again(vocabulary: Vocabulary) -> None:
    plan = auto(vocabulary, noul("a"), noul("b"), joint=True)
    played = play(plan, lambda read: rows(read, [0.99, 0.01], [0.5, 0.5]))
    assert {id: reading.draws for id, reading in played.answers.readings.items()} == {"a": 4, "b": 4}


def test_what_later_draws_say_asks_for_no_more(vocabulary: Vocabulary) -> None:
    played = play(
        auto(vocabulary, noul("a")), lambda read: rows(read, [0.5, 0.5] if read.seed else [0.99, 0.01])
    )
    assert len(played.reads) == 1


def test_automatic_draws_of_many_options_wait_for_every_id_set(vocabulary: Vocabulary) -> None:
    plan = auto(vocabulary, choice("a", many(129)))
    first, second = first_wave(plan).reads
    partial = next_wave(plan, {first.id: hashed(first)})
    assert isinstance(partial, Wave)
    assert [read.id for read in partial.reads] == [second.id]


def test_stages_take_a_wave_each(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), noul("b", depends_on=("a",)), noul("c", depends_on=("b",)))
    played = play(plan)
    assert [wave.stage for wave in played.waves] == [0, 1, 2]
    assert played.answers.waves == 3
    assert [(read.stage, read.wave) for read in played.answers.reads] == [(0, 0), (1, 1), (2, 2)]


def test_a_stage_of_which_all_is_skipped_takes_no_wave(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), noul("b", ask_if={"a": ("no",)}), noul("c", depends_on=("b",)))
    assert play(plan).answers.waves == 2


def test_extra_draws_shift_the_waves_of_later_stages(vocabulary: Vocabulary) -> None:
    plan = auto(vocabulary, noul("a", "Unsure?"), noul("b", depends_on=("a",)))
    played = play(plan, telling(vocabulary, {"Unsure?": [0.5, 0.5]}))
    assert [read.wave for read in played.answers.reads] == [0, 1, 1, 1, 2]
    assert len(played.waves) == played.answers.waves == 3


def test_a_lost_result_is_asked_for_again_and_nothing_else(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), noul("b"), noul("c"))
    first, lost, third = first_wave(plan).reads
    assert next_wave(plan, {read.id: first_label(read) for read in (first, third)}) == Wave(0, (lost,))


def test_a_result_of_an_earlier_stage_that_was_lost_is_asked_before_anything_later(
    vocabulary: Vocabulary,
) -> None:
    plan = planned(vocabulary, noul("a"), noul("b", depends_on=("a",)))
    played = play(plan)
    late = {id: result for id, result in played.results.items() if id.startswith("1/")}
    step = next_wave(plan, late)
    assert isinstance(step, Wave)
    assert [read.id for read in step.reads] == ["0/0/0/0/0"]


def test_results_that_nobody_asked_for_change_nothing(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"))
    played = play(plan)
    strange: dict[str, Result] = {"9/9/9/9/9": DOWN, "0/0/0/1/0": DOWN}
    assert next_wave(plan, played.results | strange) == played.end


def test_a_failed_read_fails_the_decision(vocabulary: Vocabulary) -> None:
    assert play(planned(vocabulary, noul("a"), noul("b")), failing("0/1/0/0/0")).end == Failure(
        "down", "0/1/0/0/0"
    )


def test_a_failed_read_opens_no_later_stage(vocabulary: Vocabulary) -> None:
    played = play(planned(vocabulary, noul("a"), noul("b", depends_on=("a",))), failing("0/0/0/0/0"))
    assert len(played.waves) == 1
    assert isinstance(played.end, Failure)


def test_of_several_failures_the_first_of_the_plan_is_told(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), noul("b"), noul("c"), samples=2)
    played = play(plan, failing("0/2/0/0/0", "0/1/0/1/0"))
    assert played.end == Failure("down", "0/1/0/1/0")
    assert next_wave(plan, dict(reversed(played.results.items()))) == played.end


def test_a_failed_first_draw_asks_for_no_extra_draws(vocabulary: Vocabulary) -> None:
    assert len(play(auto(vocabulary, noul("a")), failing("0/0/0/0/0")).reads) == 1


def test_a_failed_extra_draw_fails_the_decision(vocabulary: Vocabulary) -> None:
    def engine(read: Read) -> Result:
        return DOWN if read.seed == 2 else rows(read, [0.5, 0.5])

    assert play(auto(vocabulary, noul("a")), engine).end == DOWN


def test_what_ran_is_told_read_by_read(vocabulary: Vocabulary) -> None:
    played = play(planned(vocabulary, noul("a"), noul("b"), joint=True, seed=3), hashed)
    (trace,) = played.answers.reads
    (result,) = played.results.values()
    assert isinstance(result, Rows)
    assert (trace.id, trace.questions, trace.seed, trace.draw) == ("0/0/0/0/0", ("a", "b"), 3, 0)
    assert trace.served == result.served
    assert played.answers.input_tokens == result.served.prompt_tokens


def test_each_slot_is_told_by_its_own_row_and_its_own_top_pick(vocabulary: Vocabulary) -> None:
    def engine(read: Read) -> Result:
        return replace(rows(read, [0.9, 0.1], [0.2, 0.3]), top=(read.ids[0], vocabulary.pad))

    readings = play(planned(vocabulary, noul("a"), noul("b"), joint=True), engine).answers.readings
    assert (readings["a"].is_label, readings["b"].is_label) == (True, False)
    assert (readings["a"].label_mass, readings["b"].label_mass) == pytest.approx((1.0, 0.5))
    assert readings["b"].probabilities == pytest.approx((0.4, 0.6))


def test_a_prompt_that_just_fits_the_context_is_read(vocabulary: Vocabulary) -> None:
    (read,) = first_reads(vocabulary, noul("a"))
    (fits,) = first_reads(replace(vocabulary, context=tokens(read)), noul("a"))
    assert fits == read


@pytest.mark.parametrize("joint", [False, True])
def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(
    vocabulary: Vocabulary, joint: bool
) -> None:
    (read,) = first_reads(vocabulary, noul("a"), joint=joint)
    tight = replace(vocabulary, context=tokens(read) - 1)
    with pytest.raises(TooLong) as refused:
        first_wave(planned(tight, noul("a"), joint=joint))
    assert refused.value.loc == ("state",)
    assert refused.value.kind == "max_tokens_exceeded"
    assert f"needs {tokens(read)} tokens" in refused.value.message
    assert f"holds {tokens(read) - 1}" in refused.value.message


def test_a_later_prompt_that_outgrows_the_context_is_refused_too(vocabulary: Vocabulary) -> None:
    questions = noul("a", "Late?"), noul("b", "Refund?", depends_on=("a",))
    first, later = play(planned(vocabulary, *questions)).reads
    plan = planned(replace(vocabulary, context=tokens(later) - 1), *questions)
    assert first_wave(plan).reads == (first,)
    with pytest.raises(TooLong):
        next_wave(plan, {first.id: first_label(first)})


@pytest.mark.parametrize(
    "result", [Rows(((-0.5, -2.0), (-0.1, -7.25)), (3, 4), (), Served("e", "m", 1.5, 2, 3)), DOWN]
)
def test_a_result_survives_the_store(result: Result) -> None:
    assert result_from_bytes(result_to_bytes(result)) == result


def test_planning_again_gives_the_same_wave(vocabulary: Vocabulary) -> None:
    one, other = (first_wave(planned(vocabulary, noul("a"), choice("b", many(40)))) for _ in range(2))
    assert one == other
    assert one.to_bytes() == other.to_bytes()


def test_a_decision_ends_with_answers(vocabulary: Vocabulary) -> None:
    assert isinstance(play(planned(vocabulary, noul("a"))).end, Answers)
