"""What a schema or questions would be asked as: shown without an engine, and run unchanged."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from client.stack import Stack
from engine.gguf_model import find_model
from engine.tokenizer import ensure_folder
from tests.line.conftest import ask_at
from tests.planner.span_support import words
from workers.tokenizers import load_vocabulary

QUESTIONS: dict[str, Any] = {
    "last": {"type": "noul", "instructions": "Is it calm?", "depends_on": ["about"]},
    "about": {
        "type": "object",
        "instructions": "What is it about?",
        "criteria": {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
        "max_tokens": 60,
        "depends_on": ["who"],
    },
    "who": {"type": "span", "instructions": "Who?", "ask_if": {"urgent": True}},
    "urgent": {"type": "noul", "instructions": "Is it urgent?", "criteria": {"true": "on fire"}},
    "team": {
        "type": "choice",
        "instructions": "Which team?",
        "criteria": {"billing": None, "technical": "bits"},
    },
    "bad": {
        "type": "score",
        "instructions": "How bad?",
        "criteria": ["not", {"a": "bit"}, "very"],
        "alone": True,
    },
    "names": {"type": "spans", "instructions": "Which names?", "criteria": {"max_items": 3}},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "urgent": {"type": "boolean", "description": "Is it urgent?"},
        "team": {"enum": ["billing", "technical"], "description": "Which team?"},
        "note": {"type": ["string", "null"], "description": "A note"},
        "version": {"const": "v1"},
    },
    "required": ["urgent", "team", "note", "version"],
}


def compiled(stack: Stack, **body: Any) -> dict[str, Any]:
    response = httpx2.post(f"{stack.url}/v1/compile", json=body, timeout=30)
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    found: dict[str, Any] = response.json()
    assert found["object"] == "plan"
    return found


def refused(stack: Stack, body: Any) -> dict[str, Any]:
    response = httpx2.post(f"{stack.url}/v1/compile", json=body, timeout=30)
    assert response.status_code == 422, response.text
    assert response.headers["content-type"].startswith("application/problem+json")
    found: dict[str, Any] = response.json()
    return found


def test_questions_are_shown_with_their_stages_and_reads(stack: Stack) -> None:
    plan = compiled(stack, questions=QUESTIONS)
    assert plan["stages"] == [["urgent", "team", "bad", "names"], ["who"], ["about"], ["last"]]
    assert plan["reads"] == {
        "least": 7,
        "all": 8,
        "by_question": {
            "urgent": 1, "team": 1, "bad": 1, "names": 2, "who": 1, "about": 1, "last": 1,
        },
    }  # fmt: skip
    assert plan["fields"] is None


def test_the_questions_that_are_shown_ask_the_same(stack: Stack) -> None:
    shown = compiled(stack, questions=QUESTIONS)["questions"]
    assert list(shown) == list(QUESTIONS)
    assert compiled(stack, questions=shown)["questions"] == shown
    asked, again = (
        ask_at(stack.url, questions=questions, diagnostics=True) for questions in (QUESTIONS, shown)
    )
    assert asked.status_code == again.status_code == 200, again.text
    assert asked.json()["answers"] == again.json()["answers"]
    assert asked.json()["usage"] == again.json()["usage"]


def test_a_schema_is_shown_as_questions_and_fields(stack: Stack) -> None:
    plan = compiled(stack, schema=SCHEMA)
    questions = plan["questions"]
    assert {id: question["type"] for id, question in questions.items()} == {
        "/urgent": "noul",
        "/team": "choice",
        "/note~present": "noul",
        "/note": "object",
    }
    assert questions["/team"]["depends_on"] == ["/urgent"]
    assert questions["/note"]["ask_if"] == {"/note~present": ["yes"]}
    assert plan["fields"]["/version"] == {"kind": "fixed"}
    assert plan["fields"]["/note"]["present"] == "/note~present"
    assert plan["stages"] == [["/urgent"], ["/team"], ["/note~present"], ["/note"]]
    assert (plan["reads"]["least"], plan["reads"]["all"]) == (3, 4)


def test_questions_of_a_schema_can_be_posted_unchanged(stack: Stack) -> None:
    shown = compiled(stack, schema=SCHEMA)["questions"]
    response = ask_at(stack.url, questions=shown)
    assert response.status_code == 200, response.text
    filled = ask_at(stack.url, schema=SCHEMA)
    assert filled.status_code == 200, filled.text
    assert response.json()["answers"] == filled.json()["answers"]
    assert filled.json()["value"]["urgent"] is True


def test_a_state_says_how_many_reads_its_spans_take(stack: Stack) -> None:
    question = {"s": {"type": "span", "instructions": "Who?"}}
    assert compiled(stack, questions=question)["reads"]["all"] == 1
    text = " ".join(
        words(load_vocabulary(str(ensure_folder(find_model(None))), canvas=64, context=None), 160)
    )
    assert compiled(stack, questions=question, state=text)["reads"]["all"] > 1


def test_options_that_change_the_reads_are_seen(stack: Stack) -> None:
    two = {"a": {"type": "noul"}, "b": {"type": "noul", "depends_on": ["a"]}}
    assert compiled(stack, questions=two, samples=4)["reads"]["all"] == 8
    assert compiled(stack, questions=two, ask=["a"])["reads"]["by_question"] == {"a": 1}
    assert compiled(stack, questions={"a": {"type": "noul"}, "b": {"type": "noul"}}, joint=True)["reads"][
        "by_question"
    ] == {"a": 1, "b": 0}


def test_what_is_null_is_as_if_it_were_left_out(stack: Stack) -> None:
    plain = compiled(stack, schema=SCHEMA)
    assert compiled(stack, schema=SCHEMA, questions=None, state=None, model=None) == plain
    questions = {"a": {"type": "noul"}}
    assert compiled(stack, questions=questions, schema=None)["reads"]["all"] == 1


def test_any_model_will_do_since_none_is_asked(stack: Stack) -> None:
    assert compiled(stack, questions={"a": {"type": "noul"}}, model="nobody's")["reads"]["all"] == 1


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({}, "/questions", "missing"),
        ({"questions": {}}, "/questions", "too_short"),
        ({"questions": {"a": {"type": "noul"}}, "schema": SCHEMA}, "", "schema_and_questions"),
        ({"schema": 3}, "/schema", "schema_type"),
        ({"schema": {"$ref": "#"}}, "/schema", "schema_reference"),
        ({"schema": {"items": {"$ref": "#/$defs/a"}}}, "/schema/items/$ref", "schema_reference"),
        ({"schema": {"type": "integer", "minimum": 2, "maximum": 1}}, "/schema", "schema_unsatisfiable"),
        ({"schema": {"const": 1}}, "/schema", "schema_closed"),
        ({"questions": {"a": {"type": "noul", "depends_on": ["a"]}}},
         "/questions/a/depends_on", "value_error"),
        (
            {"questions": {"a/b": {"type": "object", "criteria": {"$ref": "http://x"}}}},
            "/questions/a~1b/criteria/$ref",
            "schema_reference",
        ),
        ({"questions": {"a": {"type": "span"}}, "state": " "}, "/state", "value_error"),
        ({"questions": {"a": {"type": "noul"}}, "samples": 0}, "/samples", "samples_type"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_by_its_place(stack: Stack, body: Any, pointer: str, code: str) -> None:
    problem = refused(stack, body)
    assert (problem["status"], problem["code"]) == (422, "invalid_request")
    error = problem["errors"][0]
    assert (error["pointer"], error["code"]) == (pointer, code)


@pytest.mark.parametrize("body", ["[]", '"schema"', "{", "null", ""])
def test_what_is_no_object_is_refused(stack: Stack, body: str) -> None:
    response = httpx2.post(
        f"{stack.url}/v1/compile", content=body, headers={"content-type": "application/json"}, timeout=30
    )
    assert response.status_code == 422, response.text


def test_too_many_questions_are_refused_as_they_would_be(stack: Stack) -> None:
    questions = {f"q{number}": {"type": "noul"} for number in range(401)}
    assert refused(stack, {"questions": questions})["code"] == "invalid_request"


def test_images_need_no_bytes_to_be_refused(stack: Stack) -> None:
    body = {"questions": {"a": {"type": "noul"}}, "images": ["data:image/png;base64,AAAA"]}
    assert refused(stack, body)["errors"][0]["code"] == "not_served"


def test_no_engine_is_needed(script: str) -> None:
    with Stack(engines=script) as stack:
        for engine in stack.engines:
            engine.kill()
        assert compiled(stack, schema=SCHEMA)["reads"]["all"] == 4
        assert compiled(stack, questions=QUESTIONS)["reads"]["all"] == 8
        spelled = json.dumps({"schema": SCHEMA}).encode()
        form = httpx2.post(f"{stack.url}/v1/compile", content=spelled, timeout=30)
        assert form.status_code == 200, form.text
