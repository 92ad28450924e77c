"""Object questions through the front door: values that a model writes, checked in full."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from client.stack import Stack
from tests.line.conftest import ask_at
from tests.line.hostile import REFUSED, WRITTEN, deep
from tests.line.job_support import ASYNC, job, until
from tests.line.receivers import SECRET, receiving
from tests.line.test_images_and_thoughts import RED, url

STATE = "Dana Smith of Acme Inc. ordered two red chairs."
TOPIC = {
    "type": "object",
    "properties": {"topic": {"type": "string", "minLength": 3}},
    "required": ["topic"],
}

RULES: dict[str, Any] = {
    "rules": [
        {"phrase": "What is it about", "object": {"topic": "chairs"}},
        {
            "phrase": "Right at last",
            "state_contains": "This answer was not valid",
            "object": {"topic": "chairs"},
        },
        {"phrase": "Right at last", "object": {"topic": "ch"}},
        {"phrase": "Never right", "object": {"topic": "ch"}},
        {"phrase": "Who ordered", "span": "Dana Smith"},
        {"phrase": "Who paid", "span": None},
        {"phrase": "First name", "state_contains": "Who ordered?: Dana Smith", "object": {"topic": "Dana"}},
        {"phrase": "First name", "object": {"topic": "nobody"}},
        {"phrase": "Is it furniture", "state_contains": '"topic": "chairs"', "labels": {"yes": 0.75}},
        {"phrase": "Is it furniture", "state_contains": "no valid answer", "labels": {"yes": 0.25}},
        {"phrase": "Is it furniture", "labels": {"yes": 0.5}},
        {"phrase": "Who of them", "state_contains": '"topic": "chairs"', "span": "Acme Inc."},
        {"phrase": "Is it urgent", "labels": {"yes": 0.9}},
        {"phrase": "Is it calm", "labels": {"yes": 0.2}},
        {"phrase": "After a thought", "state_contains": "Chairs are meant", "object": {"topic": "thought"}},
        {"phrase": "After a thought", "thought": "Chairs are meant.", "object": {"topic": "rash"}},
        {
            "phrase": "In the picture",
            "image_sha256": hashlib.sha256(RED).hexdigest(),
            "object": {"topic": "red"},
        },
        *(
            {"phrase": f"Case {name}.", "object": one.text, "finish_reason": one.finish}
            for name, one in WRITTEN.items()
        ),
    ]
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose engine writes what these tests ask for."""
    script: Path = tmp_path_factory.mktemp("objects") / "script.json"
    script.write_text(json.dumps(RULES))
    env = {"CANVASS_WEBHOOK_SECRET": SECRET, "CANVASS_WEBHOOK_ALLOW": "127.0.0.1"}
    with Stack(engines=f"script:{script}", engine_args=("--max-model-len", "8192"), env=env) as running:
        until(lambda: all(engine["capabilities"]["generate"] for engine in engines(running)), 20)
        yield running


def engines(stack: Stack) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx2.get(f"{stack.url}/v1/engines").json()["data"]
    return found


def object_(instructions: str, schema: Any = TOPIC, **more: Any) -> dict[str, Any]:
    return {"type": "object", "instructions": instructions, "criteria": schema, **more}


def answered(stack: Stack, questions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    response = ask_at(stack.url, state=STATE, questions=questions, **fields)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def one(stack: Stack, question: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The answer to one question."""
    found: dict[str, Any] = answered(stack, {"o": question}, **fields)["answers"]["o"]
    return found


def test_a_value_that_is_valid_is_the_answer(stack: Stack) -> None:
    body = answered(stack, {"o": object_("What is it about?", max_tokens=40)})
    assert body["answers"]["o"] == {
        "type": "object",
        "value": {"topic": "chairs"},
        "valid": True,
        "attempts": 1,
        "finish_reason": "stop",
    }
    assert body["usage"]["output_tokens"] > 1


def test_a_value_that_is_not_valid_is_asked_for_again_with_what_was_wrong(stack: Stack) -> None:
    body = answered(stack, {"o": object_("Right at last?")}, diagnostics=True)
    answer = body["answers"]["o"]
    assert (answer["value"], answer["valid"], answer["attempts"]) == ({"topic": "chairs"}, True, 2)
    reads = body["diagnostics"]["reads"]
    assert [(read["kind"], read["attempt"]) for read in reads] == [("object", 0), ("object", 1)]


def test_a_value_that_is_never_valid_is_told_by_where_it_is_wrong(stack: Stack) -> None:
    answer = one(stack, object_("Never right?"))
    assert (answer["value"], answer["valid"], answer["attempts"]) == (None, False, 2)
    assert answer["error"]["path"] == "/topic"
    assert "3" in answer["error"]["message"]


def test_the_most_tokens_are_kept_to_and_told(stack: Stack) -> None:
    answer = one(stack, object_("What is it about?", max_tokens=2))
    assert (answer["valid"], answer["finish_reason"]) == (False, "length")
    assert "2 tokens" in answer["error"]["message"]


def test_questions_of_every_type_need_each_other(stack: Stack) -> None:
    questions = {
        "urgent": {"type": "noul", "instructions": "Is it urgent?"},
        "who": {"type": "span", "instructions": "Who ordered?", "ask_if": {"urgent": True}},
        "first": object_("First name?", depends_on=["who"]),
        "about": object_("What is it about?"),
        "them": {"type": "span", "instructions": "Who of them?", "depends_on": ["about"]},
        "sure": {"type": "noul", "instructions": "Is it furniture?", "depends_on": ["about"]},
        "found": {"type": "noul", "instructions": "Is it calm?", "ask_if": {"who": "yes"}},
    }
    answers = answered(stack, questions)["answers"]
    assert answers["who"]["text"] == "Dana Smith"
    assert answers["first"]["value"] == {"topic": "Dana"}
    assert answers["them"]["text"] == "Acme Inc."
    assert answers["sure"]["noul"] == 0.75
    assert answers["found"]["noul"] == 0.2
    assert list(answers) == list(questions)


def test_what_hangs_on_a_value_that_is_not_valid_is_told_so(stack: Stack) -> None:
    later = {"type": "noul", "instructions": "Is it furniture?", "depends_on": ["o"]}
    answers = answered(stack, {"o": object_("Never right?"), "later": later})["answers"]
    assert answers["o"]["valid"] is False
    assert answers["later"]["noul"] == 0.25


def test_a_condition_that_does_not_hold_skips_objects_and_spans(stack: Stack) -> None:
    questions = {
        "paid": {"type": "span", "instructions": "Who paid?"},
        "about": object_("What is it about?", ask_if={"paid": True}),
        "who": {"type": "span", "instructions": "Who ordered?", "ask_if": {"paid": "yes"}},
        "other": object_("What is it about?", ask_if={"paid": False}),
    }
    body = answered(stack, questions, diagnostics=True)
    assert body["answers"]["about"] is None
    assert body["answers"]["who"] is None
    assert body["answers"]["other"]["valid"] is True
    assert [read["kind"] for read in body["diagnostics"]["reads"]] == ["span", "object"]


@pytest.mark.parametrize("joint", [False, True])
def test_objects_stand_beside_joint_questions(stack: Stack, joint: bool) -> None:
    questions = {
        "urgent": {"type": "noul", "instructions": "Is it urgent?"},
        "about": object_("What is it about?", depends_on=["urgent"]),
        "sure": {"type": "noul", "instructions": "Is it furniture?", "depends_on": ["about"]},
    }
    answers = answered(stack, questions, joint=joint)["answers"]
    assert (answers["about"]["valid"], answers["sure"]["noul"]) == (True, 0.75)


def test_a_thought_goes_ahead_of_objects_too(stack: Stack) -> None:
    question = object_("After a thought?")
    assert one(stack, question)["value"] == {"topic": "rash"}
    body = answered(stack, {"o": question}, think=64, diagnostics=True)
    assert body["answers"]["o"]["value"] == {"topic": "thought"}
    assert [read["kind"] for read in body["diagnostics"]["reads"]] == ["thought", "object"]


def test_an_object_may_be_about_images(stack: Stack) -> None:
    answer = one(stack, object_("In the picture?"), images=[url(RED)])
    assert answer["value"] == {"topic": "red"}


def test_a_job_and_its_webhook_carry_the_value(stack: Stack) -> None:
    with receiving() as inbox:
        body = {
            "model": "jev-latest",
            "state": STATE,
            "questions": {"o": object_("What is it about?")},
            "webhook": inbox.url,
        }
        posted = httpx2.post(f"{stack.url}/v1/systemone", json=body, headers=ASYNC, timeout=60)
        assert posted.status_code == 202, posted.text
        done = job(stack.url, posted.json()["id"], wait=30)
        (call,) = inbox.wait(1)
    assert done["status"] == "succeeded"
    assert (done["progress"]["reads_done"], done["progress"]["reads_planned"]) == (1, 1)
    assert done["result"]["answers"]["o"]["value"] == {"topic": "chairs"}
    assert call.verified()["data"]["result"]["answers"]["o"] == done["result"]["answers"]["o"]


def test_the_states_of_a_batch_have_objects(stack: Stack) -> None:
    body = {
        "model": "jev-latest",
        "states": ["one", "two"],
        "questions": {"o": object_("What is it about?"), "p": object_("Never right?")},
    }
    posted = httpx2.post(f"{stack.url}/v1/batches", json=body, timeout=60)
    assert posted.status_code == 202, posted.text
    text = httpx2.get(f"{stack.url}/v1/batches/{posted.json()['id']}/results", timeout=120).text
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["status"] for line in lines] == ["succeeded", "succeeded"]
    for line in lines:
        assert line["result"]["answers"]["o"]["value"] == {"topic": "chairs"}
        assert line["result"]["answers"]["p"]["valid"] is False


@pytest.mark.parametrize("name", WRITTEN)
def test_a_hostile_schema_is_handled_and_nothing_invalid_is_called_valid(stack: Stack, name: str) -> None:
    case = WRITTEN[name]
    began = time.monotonic()
    answer = one(stack, object_(f"Case {name}.", case.schema))
    assert time.monotonic() - began < 20
    assert answer["valid"] is case.valid, answer
    assert answer["finish_reason"] == case.finish
    if case.valid:
        assert jsonschema_rs.Draft202012Validator(case.schema).is_valid(answer["value"])
        assert answer["value"] == json.loads(case.text)
        assert (answer["attempts"], "error" in answer) == (1, False)
    else:
        assert (answer["value"], answer["attempts"]) == (None, 2)
        assert answer["error"]["message"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_hopeless_schema_is_refused_before_anything_runs(stack: Stack, name: str) -> None:
    schema, code = REFUSED[name]
    response = ask_at(stack.url, state=STATE, questions={"o": object_("What is it about?", schema)})
    assert response.status_code == 422, response.text
    (detail, *_) = response.json()["detail"]
    assert detail["type"] == code, detail
    assert detail["loc"][:3] == ["body", "questions", "o"]
    assert len(detail["msg"]) < 1000


def test_a_number_in_a_schema_that_overflows_is_refused(stack: Stack) -> None:
    body = json.dumps(
        {
            "model": "jev-latest",
            "state": STATE,
            "questions": {"o": object_("What?", {"type": "number", "maximum": 12345})},
        }
    ).replace("12345", "1e400")
    response = httpx2.post(
        f"{stack.url}/v1/systemone", content=body, headers={"content-type": "application/json"}, timeout=30
    )
    assert response.status_code == 422, response.text


def test_a_schema_as_deep_as_may_be_is_taken(stack: Stack) -> None:
    assert ask_at(stack.url, questions={"o": object_("What?", deep(31))}).status_code == 200


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ({"type": "object", "instructions": "What?"}, "criteria"),
        (object_("What?", max_tokens=0), "max_tokens"),
        (object_("What?", max_tokens=4097), "max_tokens"),
        (object_("What?", max_tokens="9"), "max_tokens"),
        (object_("What?", depends_on=["nobody"]), "depends_on"),
        (object_("What?", depends_on=["o"]), "depends_on"),
    ],
)
def test_an_object_question_that_is_wrong_is_refused_by_its_field(
    stack: Stack, question: dict[str, Any], place: str
) -> None:
    response = ask_at(stack.url, questions={"o": question})
    assert response.status_code == 422, response.text
    assert place in response.json()["detail"][0]["loc"]


def test_a_condition_on_an_object_is_refused(stack: Stack) -> None:
    questions = {
        "o": object_("What is it about?"),
        "a": {"type": "noul", "instructions": "Is it urgent?", "ask_if": {"o": True}},
    }
    response = ask_at(stack.url, questions=questions)
    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"] == ["body", "questions", "a", "ask_if", "o"]


def test_a_prompt_that_is_too_long_for_the_writing_engine_says_so(stack: Stack) -> None:
    response = ask_at(stack.url, state="word " * 8000, questions={"o": object_("What is it about?")})
    assert response.status_code == 400, response.text
    assert response.json()["detail"]["error_type"] == "max_tokens_exceeded"
