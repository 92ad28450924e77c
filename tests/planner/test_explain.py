"""What a plan would read, told without reading: it is what runs when every question is asked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from planner.dialects.systemone import parse
from planner.explain import Explained, explain
from planner.plan import make_plan
from planner.reads import AnyRead, Result
from planner.vocabulary import Vocabulary
from tests.planner.bodies import Body, bodies
from tests.planner.span_support import found, span, spans, words
from tests.planner.support import choice, decide, first_label, many, noul, object_, play, wrote

STATE = "Dana Smith of Acme Inc. ordered two red chairs."


def explained(vocabulary: Vocabulary, *questions: Any, **options: Any) -> Explained:
    return explain(make_plan(decide(*questions, **{"state": STATE, **options}), vocabulary))


def test_every_type_of_question_has_its_reads(vocabulary: Vocabulary) -> None:
    told = explained(
        vocabulary, noul("a"), choice("b", many(200)), span("c"), spans("d"), object_("e"), noul("f")
    )
    assert told.reads == {"a": 1, "b": 2, "c": 1, "d": 2, "e": 1, "f": 1}
    assert (told.least, told.all) == (8, 8)
    assert told.stages == (("a", "b", "c", "d", "e", "f"),)


def test_the_order_of_stages_is_that_of_what_needs_what(vocabulary: Vocabulary) -> None:
    told = explained(
        vocabulary,
        noul("last", depends_on=("about",)),
        object_("about", depends_on=("who",)),
        span("who", depends_on=("first",)),
        noul("first"),
    )
    assert told.stages == (("first",), ("who",), ("about",), ("last",))
    assert list(told.reads) == ["first", "who", "about", "last"]


def test_the_least_is_of_the_questions_without_a_condition(vocabulary: Vocabulary) -> None:
    told = explained(
        vocabulary,
        noul("a"),
        span("b", ask_if={"a": ("yes",)}),
        object_("c", ask_if={"b": ("yes",)}),
        noul("d", depends_on=("a",)),
    )
    assert (told.least, told.all) == (2, 4)


@pytest.mark.parametrize(("samples", "reads"), [(1, 1), (5, 5), (None, 1)])
def test_draws_are_reads_and_automatic_ones_not_yet(
    vocabulary: Vocabulary, samples: int | None, reads: int
) -> None:
    assert explained(vocabulary, noul("a"), samples=samples).reads == {"a": reads}


def test_questions_of_one_canvas_are_told_under_its_first(vocabulary: Vocabulary) -> None:
    told = explained(vocabulary, noul("a"), noul("b"), noul("c", alone=True), joint=True)
    assert told.reads == {"a": 1, "b": 0, "c": 1}
    one_by_one = explained(vocabulary, noul("a"), noul("b"), joint=True, chunk_rows=1, sequential=True)
    assert one_by_one.reads == {"a": 1, "b": 1}


def test_a_long_text_is_as_many_reads_as_it_has_windows(vocabulary: Vocabulary) -> None:
    plan = make_plan(decide(span("s"), spans("l"), state=" ".join(words(vocabulary, 160))), vocabulary)
    assert len(plan.windows) > 1
    assert explain(plan).reads == {"s": len(plan.windows), "l": 2 * len(plan.windows)}


def test_questions_that_are_not_asked_are_not_told(vocabulary: Vocabulary) -> None:
    told = explained(vocabulary, noul("a"), noul("b", depends_on=("a",)), noul("c"), ask=("b",))
    assert told.reads == {"a": 1, "b": 1}
    assert told.stages == (("a",), ("b",))


@settings(deadline=None, max_examples=60)
@given(body=bodies())
def test_what_runs_lies_between_the_least_and_all_where_nothing_is_repeated(
    vocabulary: Vocabulary, body: Body
) -> None:
    """With an engine that is sure of the first label, finds nothing and writes what is valid."""
    plan = make_plan(parse({**body, "samples": 1, "think": 0}), vocabulary)
    told = explain(plan)

    def sure(read: AnyRead) -> Result:
        return found(confidence=0.9) if read.kind in ("span", "list") else first_label(read)  # type: ignore[arg-type]

    ran = play(plan, sure, lambda asked: wrote(_valid(asked.grammar)))
    reads = sum(len(wave.all) for wave in ran.waves)
    assert {*told.reads} == {question.id for stage in plan.asked for question in stage}
    if not plan.decision.options.joint:
        assert told.least <= reads <= told.all
        if not ran.answers.skipped:
            assert reads == told.all


def _valid(grammar: str) -> str:
    """A value that is valid against the schema of any of the bodies, by its grammar."""
    for sign, text in (("topic", '{"topic": "chairs"}'), ("integer", "7"), ('"enum"', '["a"]')):
        if sign in grammar and "null" not in grammar:
            return text
    return '"chairs"'
