"""Span reads as waves of a plan: windows, retries with their seeds, and the read that chooses."""

from collections.abc import Mapping
from typing import Any

import pytest

from planner.plan import Plan, make_plan
from planner.reads import Failure, Found, Item, Read, Result, Rows, Wave
from planner.span_parts import MOST_CANDIDATES
from planner.vocabulary import Vocabulary
from planner.waves import first_wave, next_wave
from tests.planner.span_support import found, span, spans, words
from tests.planner.support import (
    Engine,
    check_vllm_rules,
    decide,
    first_label,
    noul,
    play,
    prompt_of,
    rows,
)

SHORT = "Dana Smith of Acme Inc. ordered two red chairs."
DOWN = Failure("no_engine", "no engine can take it")


@pytest.fixture(scope="session")
def long(vocabulary: Vocabulary) -> str:
    """A text of four windows."""
    many = words(vocabulary, 160)
    return " ".join(f"Then {' '.join(many[start : start + 8])}." for start in range(0, 160, 8))


def planned(vocabulary: Vocabulary, *questions: Any, **options: Any) -> Plan:
    return make_plan(decide(*questions, **{"state": SHORT, **options}), vocabulary)


def by_window(told: Mapping[int, Found], *, other: Found | None = None, choose: int = 0) -> Engine:
    """An engine that gives each window's reads one result, and chooses the candidate of a number."""

    def answer(read: Read) -> Result:
        if read.kind == "choose":
            return rows(
                read, [0.9 if n == choose else 0.1 / (len(read.ids) - 1) for n in range(len(read.ids))]
            )
        if read.kind == "label":
            return first_label(read)
        return told.get(int(read.id.split("/")[2]), other or found(confidence=0.95))

    return answer


def by_seed(confidences: Mapping[int, float]) -> Engine:
    """An engine that finds the word at ten times its seed, as sure as told."""

    def answer(read: Read) -> Result:
        if read.kind == "label":
            return first_label(read)
        return found(Item(10 * read.seed, 10 * read.seed + 4, confidences[read.seed], 1.0))

    return answer


def ids(wave: Wave) -> list[str]:
    return [read.id for read in wave.reads]


def test_a_sure_read_is_not_repeated(vocabulary: Vocabulary) -> None:
    played = play(planned(vocabulary, span()), by_seed({0: 0.3}))
    assert [ids(wave) for wave in played.waves] == [["0/s0/0/0/0"]]
    assert played.answers.spans["s"].reads == 1


def test_an_unsure_read_is_repeated_with_the_next_seeds_at_most_three_times(vocabulary: Vocabulary) -> None:
    played = play(planned(vocabulary, span(), seed=5), by_seed({5: 0.1, 6: 0.2, 7: 0.29, 8: 0.05}))
    assert [[(read.id, read.seed) for read in wave.reads] for wave in played.waves] == [
        [("0/s0/0/0/0", 5)],
        [("0/s0/0/0/1", 6)],
        [("0/s0/0/0/2", 7)],
        [("0/s0/0/0/3", 8)],
    ]


def test_the_most_confident_attempt_is_kept(vocabulary: Vocabulary) -> None:
    reading = play(planned(vocabulary, span()), by_seed({0: 0.1, 1: 0.25, 2: 0.2, 3: 0.05})).answers.spans[
        "s"
    ]
    assert [item.start for item in reading.items] == [10]
    assert reading.reads == 4


def test_of_attempts_equally_sure_the_first_is_kept(vocabulary: Vocabulary) -> None:
    played = play(planned(vocabulary, span()), by_seed(dict.fromkeys(range(4), 0.2)))
    assert [item.start for item in played.answers.spans["s"].items] == [0]


def test_a_sure_attempt_ends_the_repeating(vocabulary: Vocabulary) -> None:
    played = play(planned(vocabulary, span()), by_seed({0: 0.1, 1: 0.8}))
    assert len(played.waves) == 2
    assert [item.start for item in played.answers.spans["s"].items] == [10]


def test_an_unsure_none_is_repeated_too(vocabulary: Vocabulary) -> None:
    played = play(planned(vocabulary, span()), lambda read: found(confidence=0.2))
    assert len(played.waves) == 4
    assert played.answers.spans["s"].items == ()


def test_a_wave_of_retries_holds_only_the_unsure_reads(vocabulary: Vocabulary, long: str) -> None:
    plan = planned(vocabulary, span("a"), span("b"), state=long)
    assert len(plan.windows) == 4
    sure, unsure = found(Item(5, 9, 0.9, 1.0)), found(Item(5, 9, 0.1, 1.0))

    def engine(read: Read) -> Result:
        return unsure if read.id.startswith("0/s1/2/0") and read.id != "0/s1/2/0/2" else sure

    played = play(plan, engine)
    assert [len(wave.reads) for wave in played.waves] == [8, 1, 1]
    assert [id for wave in played.waves[1:] for id in ids(wave)] == ["0/s1/2/0/1", "0/s1/2/0/2"]
    assert [read.attempt for read in played.answers.reads if read.wave > 0] == [1, 2]


def test_span_reads_stand_beside_the_first_stage_and_their_retries_beside_the_next(
    vocabulary: Vocabulary,
) -> None:
    questions = (noul("a"), span(), noul("b", depends_on=("a",)), noul("c", depends_on=("b",)))
    played = play(planned(vocabulary, *questions), by_seed({0: 0.1, 1: 0.1, 2: 0.9}))
    assert [ids(wave) for wave in played.waves] == [
        ["0/0/0/0/0", "0/s0/0/0/0"],
        ["1/0/0/0/0", "0/s0/0/0/1"],
        ["2/0/0/0/0", "0/s0/0/0/2"],
    ]
    assert played.answers.waves == 3
    assert {read.id: read.wave for read in played.answers.reads} == {
        id: number for number, wave in enumerate(played.waves) for id in ids(wave)
    }


def test_a_label_question_does_not_wait_for_spans(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), span(), noul("b", depends_on=("a",)))
    label, _ = first_wave(plan).reads
    step = next_wave(plan, {label.id: first_label(label)})
    assert isinstance(step, Wave)
    assert ids(step) == ["1/0/0/0/0", "0/s0/0/0/0"]


def test_windows_that_disagree_are_settled_by_one_choose_read(vocabulary: Vocabulary, long: str) -> None:
    plan = planned(vocabulary, span(), noul("n"), state=long)
    first, second = Item(5, 11, 0.5, 1.0), Item(600, 606, 0.9, 1.0)
    played = play(plan, by_window({0: found(first), 2: found(second)}, choose=0))
    assert [len(wave.reads) for wave in played.waves] == [5, 1]
    (choose,) = played.waves[1].reads
    assert (choose.id, choose.kind, len(choose.ids)) == ("0/s0/choose/0/0", "choose", 2)
    reading = played.answers.spans["s"]
    assert reading.items == (first,)
    assert reading.resolved == pytest.approx({long[5:11]: 0.9, long[600:606]: 0.1})
    assert reading.windows == 4
    assert reading.reads == 5


def test_the_choose_read_shows_each_candidate_in_its_context(vocabulary: Vocabulary, long: str) -> None:
    plan = planned(vocabulary, span(instructions="Which word?"), state=long)
    items = {0: found(Item(5, 11, 0.5, 1.0)), 2: found(Item(600, 606, 0.9, 1.0))}
    choose = play(plan, by_window(items)).waves[-1].reads[0]
    prompt = prompt_of(vocabulary, choose)
    assert "Question: Which word?" in prompt
    assert f"A: {long[5:11]} - in: {long[0:71]}" in prompt
    assert f"B: {long[600:606]} - in: {long[540:666].strip()}" in prompt
    check_vllm_rules(choose, vocabulary)


def test_at_most_eight_candidates_are_chosen_among_the_surest_in_text_order(vocabulary: Vocabulary) -> None:
    text = " ".join(words(vocabulary, 600))
    plan = planned(vocabulary, span(), state=text)
    assert len(plan.windows) > MOST_CANDIDATES
    places = [(text.rindex(" ", 0, window.end - 1) + 1, window.end - 1) for window in plan.windows]
    items = [Item(start, end, 0.9 - 0.04 * n, 1.0) for n, (start, end) in enumerate(places)]
    played = play(plan, by_window({n: found(item) for n, item in enumerate(items)}, choose=3))
    reading = played.answers.spans["s"]
    assert reading.resolved is not None
    assert list(reading.resolved) == [text[item.start : item.end] for item in items[:MOST_CANDIDATES]]
    assert sum(reading.resolved.values()) == pytest.approx(1)
    assert reading.items == (items[3],)


def test_windows_that_found_the_same_text_agree_and_the_surest_place_is_given(
    vocabulary: Vocabulary, long: str
) -> None:
    places = [match for match in range(len(long)) if long.startswith("Then", match)]
    one, other = (Item(place, place + 4, sure, 1.0) for place, sure in ((places[0], 0.5), (places[9], 0.8)))
    played = play(planned(vocabulary, span(), state=long), by_window({0: found(one), 2: found(other)}))
    assert len(played.waves) == 1
    assert played.answers.spans["s"].items == (other,)
    assert played.answers.spans["s"].resolved is None


def test_a_window_that_found_nothing_is_no_disagreement(vocabulary: Vocabulary, long: str) -> None:
    item = Item(600, 606, 0.4, 1.0)
    played = play(planned(vocabulary, span(), state=long), by_window({2: found(item)}))
    assert len(played.waves) == 1
    assert played.answers.spans["s"].items == (item,)


def test_the_choose_read_waits_for_every_retry(vocabulary: Vocabulary, long: str) -> None:
    told = {0: found(Item(5, 11, 0.1, 1.0)), 2: found(Item(600, 606, 0.9, 1.0))}
    played = play(planned(vocabulary, span(), state=long), by_window(told))
    assert [ids(wave) for wave in played.waves[1:]] == [
        ["0/s0/0/0/1"],
        ["0/s0/0/0/2"],
        ["0/s0/0/0/3"],
        ["0/s0/choose/0/0"],
    ]
    assert [read.wave for read in played.answers.reads if read.kind == "choose"] == [4]


def test_a_list_reads_every_window_twice_with_seeds_apart_and_never_again(
    vocabulary: Vocabulary, long: str
) -> None:
    plan = planned(vocabulary, spans(), state=long, seed=7)
    played = play(plan, by_window({}, other=found(Item(5, 9, 0.1, 1.0))))
    assert len(played.waves) == 1
    assert [(read.id, read.seed) for read in played.reads] == [
        (f"0/s0/{window}/{draw}/0", seed) for window in range(4) for draw, seed in ((0, 7), (1, 11))
    ]
    assert played.answers.spans["l"].reads == 8


def test_a_list_keeps_what_either_pass_and_any_window_found(vocabulary: Vocabulary, long: str) -> None:
    def engine(read: Read) -> Result:
        _, _, window, draw, _ = (part.lstrip("s") for part in read.id.split("/"))
        start = 100 * int(window) + 10 * int(draw)
        return found(Item(0, 4, 0.5 + read.seed / 100, 1.0), Item(start + 10, start + 14, 0.8, 1.0))

    items = play(planned(vocabulary, spans(), state=long), engine).answers.spans["l"].items
    assert [item.start for item in items] == [0, 10, 20, 110, 120, 210, 220, 310, 320]
    assert items[0].confidence == pytest.approx(0.54)


def test_a_list_gives_no_more_items_than_asked_for(vocabulary: Vocabulary) -> None:
    items = [Item(start, start + 2, 0.9, 1.0) for start in range(0, 40, 4)]
    played = play(planned(vocabulary, spans(max_items=3)), lambda read: found(*items))
    assert played.answers.spans["l"].items == tuple(items[:3])


def test_tokens_of_every_attempt_are_counted(vocabulary: Vocabulary) -> None:
    answers = play(planned(vocabulary, span(), noul("n")), by_seed({0: 0.1, 1: 0.9})).answers
    assert answers.spans["s"].tokens == 6
    assert answers.output_tokens == 7


@pytest.mark.parametrize("lost", ["0/s0/0/0/0", "0/s0/0/0/1", "0/s0/choose/0/0", "0/s0/2/0/0"])
def test_a_lost_result_is_asked_for_again_and_nothing_else(
    vocabulary: Vocabulary, long: str, lost: str
) -> None:
    told = {0: found(Item(5, 11, 0.1, 1.0)), 2: found(Item(600, 606, 0.9, 1.0))}
    plan = planned(vocabulary, span(), state=long)
    played = play(plan, by_window(told))
    rest = {id: result for id, result in played.results.items() if id != lost}
    step = next_wave(plan, rest)
    assert isinstance(step, Wave)
    assert ids(step) == [lost]
    assert step.reads[0] in played.reads


def test_a_failed_span_read_fails_the_decision(vocabulary: Vocabulary) -> None:
    def engine(read: Read) -> Result:
        return DOWN if read.kind == "span" else first_label(read)

    assert play(planned(vocabulary, noul("a"), span()), engine).end == DOWN


def test_results_that_nobody_asked_for_change_nothing(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, span())
    played = play(plan, by_seed({0: 0.9}))
    strange: dict[str, Result] = {"0/s0/0/0/1": DOWN, "0/s0/choose/0/0": Rows((), ()), "0/s7/0/0/0": DOWN}
    assert next_wave(plan, played.results | strange) == played.end
