"""Stages: what is asked together, what waits, what is skipped, and what is refused."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.decision import Decision, Question
from planner.errors import Invalid
from planner.plan import make_plan
from planner.stages import make_stages
from planner.vocabulary import Vocabulary
from tests.planner.support import choice, decide, noul, play, score, telling


def ids(decision: Decision) -> list[list[str]]:
    """The ids of every stage."""
    return [[question.id for question in stage] for stage in make_stages(decision)]


def refusal(decision: Decision) -> Invalid:
    """How a decision is refused."""
    with pytest.raises(Invalid) as refused:
        make_stages(decision)
    return refused.value


def chain(length: int) -> list[Question]:
    """Questions that each need the one before."""
    return [noul("0"), *(noul(str(n), depends_on=(str(n - 1),)) for n in range(1, length))]


def test_questions_that_need_nothing_are_one_stage() -> None:
    assert ids(decide(noul("a"), noul("b"))) == [["a", "b"]]


def test_a_question_comes_one_stage_after_the_last_of_what_it_needs() -> None:
    questions = [
        noul("d", depends_on=("b", "c")),
        noul("a"),
        noul("b", depends_on=("a",)),
        noul("c"),
    ]
    assert ids(decide(*questions)) == [["a", "c"], ["b"], ["d"]]


def test_a_condition_is_a_dependency() -> None:
    assert ids(decide(noul("b", ask_if={"a": ("yes",)}), noul("a"))) == [["a"], ["b"]]


def test_ask_takes_the_named_questions_with_all_they_depend_on() -> None:
    decision = decide(*chain(4), noul("x"), noul("y", ask_if={"x": ("no",)}), ask=("2", "x"))
    assert ids(decision) == [["0", "x"], ["1"], ["2"]]


def test_a_chain_of_400_questions_needs_no_recursion() -> None:
    assert ids(decide(*reversed(chain(400)))) == [[str(number)] for number in range(400)]


def test_a_chain_of_400_conditions_is_planned_and_answered(vocabulary: Vocabulary) -> None:
    links = [noul(str(n), ask_if={str(n - 1): ("no",)} if n else {}) for n in range(400)]
    answers = play(make_plan(decide(*links), vocabulary)).answers
    assert list(answers.readings) == ["0"]
    assert len(answers.skipped) == 399


def test_a_cycle_is_refused_with_its_ring() -> None:
    ring = [noul("a", depends_on=("c",)), noul("b", depends_on=("a",)), noul("c", ask_if={"b": ("yes",)})]
    error = refusal(decide(noul("free"), *ring))
    assert error.loc[0] == "questions"
    assert error.loc[1] in {"a", "b", "c"}
    assert error.message.endswith("a -> c -> b -> a")


def test_a_question_that_needs_itself_is_refused() -> None:
    assert refusal(decide(noul("a", depends_on=("a",)))).message.endswith("a -> a")


def test_a_cycle_of_400_questions_needs_no_recursion() -> None:
    first, *rest = chain(400)
    assert "wait for each other" in refusal(decide(noul(first.id, depends_on=("399",)), *rest)).message


def test_a_cycle_is_refused_even_where_nobody_asks_for_it() -> None:
    ring = (noul("a", depends_on=("b",)), noul("b", depends_on=("a",)))
    assert "wait for each other" in refusal(decide(*ring, noul("c"), ask=("c",))).message


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_a_planted_cycle_is_always_refused(data: st.DataObject) -> None:
    names = [f"q{number}" for number in range(data.draw(st.integers(1, 8)))]
    edges = data.draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=12))
    ring: Sequence[str] = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    planted = [*edges, *zip(ring, [*ring[1:], ring[0]], strict=True)]
    conditions = data.draw(st.sets(st.sampled_from(planted)))
    questions = [
        noul(
            name,
            depends_on=tuple(b for a, b in planted if a == name and (a, b) not in conditions),
            ask_if={b: ("yes",) for a, b in planted if a == name and (a, b) in conditions},
        )
        for name in data.draw(st.permutations(names))
    ]
    assert "wait for each other" in refusal(decide(*questions)).message


@pytest.mark.parametrize(
    ("decision", "loc"),
    [
        (decide(noul("a", depends_on=("a", "b"))), ("questions", "a", "depends_on", 1)),
        (decide(noul("a"), noul("b", ask_if={"c": ("yes",)})), ("questions", "b", "ask_if", "c")),
        (decide(noul("a"), ask=("a", "b")), ("ask", 1)),
    ],
)
def test_an_unknown_id_is_refused_where_it_stands(decision: Decision, loc: tuple[str | int, ...]) -> None:
    assert refusal(decision).loc == loc


@pytest.mark.parametrize(
    ("needed", "word"),
    [
        (noul("a"), "maybe"),
        (noul("a"), "Yes"),
        (choice("a", ["x", "y"]), "A"),
        (choice("a", ["x", "y"]), "X"),
        (score("a", ["low", "high"]), "2"),
        (score("a", ["low", "high"]), "-1"),
        (score("a", ["low", "high"]), "medium"),
    ],
)
def test_a_condition_on_what_is_no_answer_is_refused_with_the_answers_there_are(
    needed: Question, word: str
) -> None:
    error = refusal(decide(needed, noul("b", ask_if={"a": (word,)})))
    assert error.loc == ("questions", "b", "ask_if", "a")
    assert error.given == word
    assert all(repr(alternative.name) in error.message for alternative in needed.alternatives)


@pytest.mark.parametrize(
    ("needed", "probabilities", "word", "asked"),
    [
        (noul("a", "?"), [0.9, 0.1], "yes", True),
        (noul("a", "?"), [0.9, 0.1], "true", True),
        (noul("a", "?"), [0.9, 0.1], "no", False),
        (noul("a", "?"), [0.1, 0.9], "false", True),
        (choice("a", ["x", "y"], "?"), [0.1, 0.9], "y", True),
        (choice("a", ["x", "y"], "?"), [0.9, 0.1], "y", False),
        (score("a", ["low", "high"], "?"), [0.1, 0.9], "1", True),
        (score("a", ["low", "high"], "?"), [0.1, 0.9], "high", True),
        (score("a", ["low", "high"], "?"), [0.1, 0.9], "low", False),
        (score("a", ["1", "0"], "?"), [0.9, 0.1], "0", True),
        (score("a", ["1", "0"], "?"), [0.9, 0.1], "1", False),
        (score("a", ["same", "other", "same"], "?"), [0.8, 0.1, 0.1], "same", True),
        (score("a", ["same", "other", "same"], "?"), [0.1, 0.1, 0.8], "same", True),
    ],
)
def test_a_question_is_asked_when_the_answer_is_the_one_named(
    vocabulary: Vocabulary, needed: Question, probabilities: list[float], word: str, asked: bool
) -> None:
    plan = make_plan(decide(needed, noul("b", ask_if={"a": (word,)})), vocabulary)
    answers = play(plan, telling(vocabulary, {"?": probabilities})).answers
    assert ("b" in answers.readings) is asked
    assert ("b" in answers.skipped) is not asked


def test_any_of_several_answers_opens_a_question(vocabulary: Vocabulary) -> None:
    questions = choice("a", ["x", "y", "z"], "?"), noul("b", ask_if={"a": ("x", "y")})
    answers = play(
        make_plan(decide(*questions), vocabulary), telling(vocabulary, {"?": [0.1, 0.8, 0.1]})
    ).answers
    assert set(answers.readings) == {"a", "b"}


def test_all_conditions_must_hold(vocabulary: Vocabulary) -> None:
    questions = noul("a", "A"), noul("b", "B"), noul("c", ask_if={"a": ("yes",), "b": ("yes",)})
    answers = play(make_plan(decide(*questions), vocabulary), telling(vocabulary, {"B": [0.1, 0.9]})).answers
    assert answers.skipped == {"c": "'b' is 'no', not 'yes'"}


def test_a_skip_tells_the_answer_and_what_was_wanted(vocabulary: Vocabulary) -> None:
    questions = choice("a", ["x", "y", "z"]), noul("b", ask_if={"a": ("y", "z")})
    answers = play(make_plan(decide(*questions), vocabulary)).answers
    assert answers.skipped == {"b": "'a' is 'x', not 'y' or 'z'"}


def test_a_skip_passes_on_to_the_questions_that_wait_for_it(vocabulary: Vocabulary) -> None:
    questions = [
        noul("a"),
        noul("b", ask_if={"a": ("no",)}),
        noul("c", ask_if={"b": ("yes", "no")}),
        noul("d", depends_on=("c",)),
    ]
    answers = play(make_plan(decide(*questions), vocabulary)).answers
    assert answers.skipped == {"b": "'a' is 'yes', not 'no'", "c": "'b' was not asked"}
    assert answers.stages == (("a",), (), (), ("d",))


def test_questions_outside_ask_are_neither_answered_nor_skipped(vocabulary: Vocabulary) -> None:
    answers = play(make_plan(decide(*chain(3), noul("x"), ask=("1",)), vocabulary)).answers
    assert set(answers.readings) == {"0", "1"}
    assert answers.skipped == {}
