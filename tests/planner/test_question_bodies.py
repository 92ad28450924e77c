"""Questions written as bodies, which are read back as the same questions."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings

from planner.decision import Question
from planner.dialects.question_bodies import question_body
from planner.dialects.systemone import parse
from tests.planner.bodies import Body, bodies


def again(*questions: Question) -> tuple[Question, ...]:
    """The questions, written as a body of JSON and read."""
    written = {question.id: question_body(question) for question in questions}
    body = {"model": "m", "state": "x", "questions": orjson.loads(orjson.dumps(written))}
    return parse(body).questions


def read(question: Body) -> Question:
    (found,) = parse({"model": "m", "state": "x", "questions": {"a": question}}).questions
    return found


@settings(deadline=None, max_examples=200)
@given(body=bodies())
def test_a_question_of_any_type_comes_back_as_it_was(body: Body) -> None:
    questions = parse(body).questions
    assert again(*questions) == questions


@pytest.mark.parametrize(
    ("question", "written"),
    [
        ({"type": "noul"}, {"type": "noul"}),
        ({"type": "noul", "instructions": ""}, {"type": "noul", "instructions": ""}),
        (
            {"type": "noul", "criteria": {"true": "on fire"}, "alone": True},
            {"type": "noul", "criteria": {"true": "on fire"}, "alone": True},
        ),
        (
            {"type": "choice", "criteria": {"a": None, "b": ""}, "depends_on": []},
            {"type": "choice", "criteria": {"a": None, "b": ""}},
        ),
        (
            {"type": "score", "criteria": ["low", {"at": 2}]},
            {"type": "score", "criteria": ["low", {"at": 2}]},
        ),
        ({"type": "span", "criteria": {"max_tokens": 3}}, {"type": "span", "criteria": {"max_tokens": 3}}),
        ({"type": "span", "criteria": {}}, {"type": "span"}),
        ({"type": "spans"}, {"type": "spans", "criteria": {"max_items": 16}}),
        ({"type": "object", "criteria": True}, {"type": "object", "criteria": True}),
        ({"type": "object", "criteria": {}}, {"type": "object", "criteria": {}}),
        (
            {"type": "object", "criteria": {"type": "null"}, "max_tokens": 9},
            {"type": "object", "criteria": {"type": "null"}, "max_tokens": 9},
        ),
    ],
)
def test_a_body_holds_what_the_question_says_and_no_defaults(question: Body, written: Body) -> None:
    found = read(question)
    assert question_body(found) == written
    assert again(found) == (found,)


def test_conditions_come_back_whatever_way_they_were_said() -> None:
    questions: dict[str, Any] = {
        "a": {"type": "noul"},
        "b": {"type": "score", "criteria": ["low", "high"], "depends_on": ["a"]},
        "c": {"type": "span", "ask_if": {"a": True, "b": [0, "high"]}},
        "d": {"type": "object", "criteria": True, "depends_on": ["c"], "ask_if": {"c": "yes"}},
    }
    found = parse({"model": "m", "state": "x", "questions": questions}).questions
    assert question_body(found[2])["ask_if"] == {"a": ["true"], "b": ["0", "high"]}
    assert again(*found) == found
