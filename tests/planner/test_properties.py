"""What holds for every decision, whatever it asks and however its results arrive."""

import math
from collections.abc import Callable
from random import Random
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.answers import Answers
from planner.decision import Decision
from planner.dialects.dialect import Timing
from planner.dialects.systemone import parse, render
from planner.plan import Plan, make_plan
from planner.reads import (
    AnyRead,
    Failure,
    Found,
    Item,
    Result,
    Rows,
    Wave,
    Written,
    result_from_bytes,
    result_to_bytes,
)
from planner.schemas.values import is_valid
from planner.vocabulary import Vocabulary
from planner.waves import first_wave, next_wave
from tests.planner.bodies import ID, OPTIONS, Body, bodies, question_maps, states
from tests.planner.hashing import Model, any_hashed
from tests.planner.support import SERVED, TEXTS, Played, check_vllm_rules, play
from workers.pool.vllm import Call, read_body

some = settings(deadline=None, max_examples=60)

FINITE = st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.builds(
    Rows,
    logprobs=st.lists(st.lists(FINITE, max_size=4).map(tuple), max_size=3).map(tuple),
    top=st.lists(st.integers(0, 2**18), max_size=3).map(tuple),
    served=SERVED,
)
WRITTEN = st.builds(Written, TEXTS, st.integers(0, 4096), TEXTS, served=SERVED)
FOUND = st.builds(
    Found,
    st.lists(st.builds(Item, st.integers(0), st.integers(0), FINITE, FINITE), max_size=3).map(tuple),
    FINITE,
    st.integers(0, 64),
    served=SERVED,
)
FAILURES = st.builds(Failure, st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))


def faulty(plan: Plan) -> Model:
    """The hashing engine, but about one read in ten fails."""
    model = any_hashed(plan)

    def answer(read: AnyRead) -> Result:
        result = model(read)
        lost = not isinstance(result, Failure) and math.isclose(result.served.ms % 10, 3)
        return Failure("down", f"{read.id} failed") if lost else result

    return answer


def played(plan: Plan, make: Callable[[Plan], Model] = any_hashed) -> Played:
    """A plan run on an engine made for it, every result in its turn."""
    model = make(plan)
    return play(plan, model, model)


def play_loosely(plan: Plan, model: Model, chance: Random) -> Answers | Failure:
    """Run a plan while results are lost, delivered twice and out of order; a lost read is asked again."""
    asked: dict[str, AnyRead] = {}
    results: dict[str, Result] = {}
    while isinstance(step := next_wave(plan, results), Wave):
        for read in step.all:
            assert asked.setdefault(read.id, read) == read, "a read that is asked again is the same read"
        delivered = [read for read in step.all if chance.random() < 0.6]
        delivered += chance.choices(list(asked.values()), k=2)
        chance.shuffle(delivered)
        arrived = [*results.items(), *((read.id, model(read)) for read in delivered)]
        chance.shuffle(arrived)
        results = dict(arrived)
    return step


def response(decision: Decision, end: Answers | Failure) -> Any:
    """What the client sees of an outcome."""
    return end if isinstance(end, Failure) else orjson.dumps(render(decision, end, Timing(0, 0)))


@some
@given(body=bodies(), make=st.sampled_from([any_hashed, faulty]), chance=st.integers(0, 2**32).map(Random))
def test_results_in_any_order_twice_or_lost_and_asked_again_give_the_same_outcome(
    vocabulary: Vocabulary, body: Body, make: Callable[[Plan], Model], chance: Random
) -> None:
    decision = parse(body)
    plan = make_plan(decision, vocabulary)
    smooth = played(plan, make).end
    rough = play_loosely(make_plan(decision, vocabulary), make(plan), chance)
    assert rough == smooth
    assert response(decision, rough) == response(decision, smooth)


@some
@given(body=bodies())
def test_every_canvas_obeys_the_rules_of_vllm(vocabulary: Vocabulary, body: Body) -> None:
    ran = played(make_plan(parse(body), vocabulary))
    for read in ran.reads:
        check_vllm_rules(read, vocabulary)
    asked = [read for wave in ran.waves for read in wave.all]
    assert len({read.id for read in asked}) == len(asked)


@some
@given(body=bodies())
def test_every_question_is_answered_or_skipped_or_was_not_asked(vocabulary: Vocabulary, body: Body) -> None:
    decision = parse(body)
    answers = played(make_plan(decision, vocabulary)).answers
    settled = [*answers.readings, *answers.spans, *answers.objects, *answers.skipped]
    assert len(settled) == len(set(settled))
    assert answers.settled == set(settled)
    assert (
        answers.settled == decision.by_id.keys()
        if decision.options.ask is None
        else answers.settled >= {*decision.options.ask}
    )
    for id, value in answers.objects.items():
        if value.valid:
            assert is_valid(value.value, decision.by_id[id].schema)
        else:
            assert (value.value, value.attempts) == (None, 2)
    for id, reading in answers.readings.items():
        assert len(reading.probabilities) == len(decision.by_id[id].alternatives)
        assert math.isclose(math.fsum(reading.probabilities), 1)
        assert 0 <= reading.label_mass <= 1


@some
@given(body=bodies())
def test_the_waves_that_are_told_are_the_waves_that_ran(vocabulary: Vocabulary, body: Body) -> None:
    ran = played(make_plan(parse(body), vocabulary))
    wave_of = {read.id: number for number, wave in enumerate(ran.waves) for read in wave.all}
    assert {read.id: read.wave for read in ran.answers.reads} == wave_of
    assert ran.answers.waves == len(ran.waves)


def requests_by_question(vocabulary: Vocabulary, body: Body) -> dict[str, list[bytes]]:
    """The request bodies that each question of an isolated decision sends."""
    ran = played(make_plan(parse(body), vocabulary))
    sent = {read.id: read_body(read, Call("m", 0, 1), vocabulary.pad) for read in ran.reads}
    for asked in (asked for wave in ran.waves for asked in wave.generations):
        sent[asked.id] = repr((asked.message, asked.grammar, asked.most_tokens)).encode()
    found: dict[str, list[bytes]] = {}
    for trace in ran.answers.reads:
        (id,) = trace.questions
        found.setdefault(id, []).append(sent[trace.id])
    return found


def renamed(questions: dict[str, Body], names: dict[str, str]) -> dict[str, Body]:
    """The same questions under other ids."""
    return {
        names[id]: question
        | {
            "depends_on": [names[needed] for needed in question.get("depends_on", [])],
            "ask_if": {names[needed]: value for needed, value in question.get("ask_if", {}).items()},
        }
        for id, question in questions.items()
    }


@some
@given(
    questions=question_maps(),
    added=question_maps(most=3),
    options=OPTIONS,
    data=st.data(),
)
def test_renaming_reordering_and_adding_questions_changes_no_isolated_request(
    vocabulary: Vocabulary,
    questions: dict[str, Body],
    added: dict[str, Body],
    options: Body,
    data: st.DataObject,
) -> None:
    total = len(questions) + len(added)
    fresh = data.draw(st.lists(ID, min_size=total, max_size=total, unique=True))
    names = dict(zip(questions, fresh, strict=False))
    others = dict(zip(added, fresh[len(questions) :], strict=True))
    both = renamed(questions, names) | renamed(added, others)
    shuffled = {id: both[id] for id in data.draw(st.permutations(list(both)))}
    state = data.draw(states({**both}))
    # A thought is about all questions, and all answers go on from it.
    rest = {"model": "m", "state": state, **options, "joint": False, "think": 0}

    before = requests_by_question(vocabulary, {**rest, "questions": questions})
    after = requests_by_question(vocabulary, {**rest, "questions": shuffled})
    assert {names[id]: sent for id, sent in before.items()} == {
        id: sent for id, sent in after.items() if id in names.values()
    }


@some
@given(body=bodies())
def test_a_decision_survives_the_store(vocabulary: Vocabulary, body: Body) -> None:
    decision = parse(body)
    stored = Decision.from_json(decision.to_json())
    assert stored == decision
    assert stored.text == decision.text
    assert stored.to_json() == decision.to_json()
    assert first_wave(make_plan(stored, vocabulary)) == first_wave(make_plan(decision, vocabulary))


@some
@given(body=bodies())
def test_a_wave_survives_the_store(vocabulary: Vocabulary, body: Body) -> None:
    for wave in played(make_plan(parse(body), vocabulary)).waves:
        assert Wave.from_bytes(wave.to_bytes()) == wave


@settings(deadline=None, max_examples=100)
@given(ROWS | FAILURES | WRITTEN | FOUND)
def test_a_result_survives_the_store(result: Result) -> None:
    assert result_from_bytes(result_to_bytes(result)) == result
