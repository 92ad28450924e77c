"""A schema in place of questions: compiled, asked and assembled, every row of the compiler's table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest
from pydantic import BaseModel

from client.stack import Stack
from tests.line.compiled_models import (
    ROWS,
    RULES,
    STATE,
    Loops,
    Nouls,
    Optionals,
    Ordered,
    Scores,
    Spans,
    Unions,
    Written,
)
from tests.line.conftest import ask_at
from tests.line.hostile import REFUSED, WRITTEN, deep
from tests.line.job_support import ASYNC, job, until
from tests.line.receivers import SECRET, receiving
from tests.line.test_images_and_thoughts import RED, url

MORE: list[dict[str, Any]] = [
    {"phrase": "In the picture", "image_sha256": hashlib.sha256(RED).hexdigest(), "labels": {"yes": 0.97}},
    {"phrase": "In the picture", "labels": {"yes": 0.03}},
    {"phrase": "After a thought", "state_contains": "Chairs are meant", "labels": {"yes": 0.8}},
    {"phrase": "After a thought", "thought": "Chairs are meant.", "labels": {"yes": 0.3}},
    {"phrase": "Half a text", "object": '"half a te', "finish_reason": "length"},
    *(
        {"phrase": f"Case {name}.", "object": one.text, "finish_reason": one.finish}
        for name, one in WRITTEN.items()
    ),
]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    script: Path = tmp_path_factory.mktemp("compiled") / "script.json"
    script.write_text(json.dumps({"rules": [*MORE, *RULES]}))
    env = {"CANVASS_WEBHOOK_SECRET": SECRET, "CANVASS_WEBHOOK_ALLOW": "127.0.0.1"}
    with Stack(engines=f"script:{script}", engine_args=("--max-model-len", "8192"), env=env) as running:
        until(lambda: generates(running), 20)
        yield running


def generates(stack: Stack) -> bool:
    (engine,) = httpx2.get(f"{stack.url}/v1/engines").json()["data"]
    return bool(engine["capabilities"]["generate"])


def filled(stack: Stack, schema: Any, **fields: Any) -> dict[str, Any]:
    response = ask_at(stack.url, **{"state": STATE, "schema": schema, **fields})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def value_of(stack: Stack, model: type[BaseModel], **fields: Any) -> dict[str, Any]:
    """The response whose value is a valid one of a model."""
    body = filled(stack, model.model_json_schema(), **fields)
    assert (body["valid"], body["errors"]) == (True, []), body["errors"]
    model.model_validate(body["value"])
    return body


def field(description: str, **schema: Any) -> dict[str, Any]:
    """A schema with one field."""
    return {
        "type": "object",
        "properties": {"x": {**schema, "description": description}},
        "required": ["x"],
    }


@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_the_table_comes_to_its_value(stack: Stack, name: str) -> None:
    model, value, kinds = ROWS[name]
    body = value_of(stack, model)
    assert body["value"] == value
    assert list(body["value"]) == list(value)
    assert {path: body["fields"][path]["kind"] for path in kinds} == kinds


@pytest.mark.parametrize("name", ROWS)
def test_the_plan_that_is_shown_is_the_plan_that_runs(stack: Stack, name: str) -> None:
    schema = ROWS[name].model.model_json_schema()
    response = httpx2.post(f"{stack.url}/v1/compile", json={"schema": schema, "state": STATE}, timeout=30)
    assert response.status_code == 200, response.text
    plan = response.json()
    body = filled(stack, schema, diagnostics=True)
    assert list(plan["questions"]) == list(body["answers"])
    repeated = [read for read in body["diagnostics"]["reads"] if read["attempt"]]
    ran = len(body["diagnostics"]["reads"]) - len(repeated)
    assert plan["reads"]["least"] <= ran <= plan["reads"]["all"]
    if None not in body["answers"].values():
        assert ran == plan["reads"]["all"]
    for path, told in plan["fields"].items():
        kind = body["fields"][path]["kind"]
        assert kind in (told["kind"], "skipped"), path
    by_hand = ask_at(stack.url, state=STATE, questions=plan["questions"], diagnostics=True)
    assert by_hand.status_code == 200, by_hand.text
    assert by_hand.json()["answers"] == body["answers"]


def test_evidence_of_a_choice_and_a_score(stack: Stack) -> None:
    fields = value_of(stack, Scores)["fields"]
    bad = fields["/bad"]
    assert bad["probabilities"] == {"1": 0.0, "2": 0.5, "3": 0.3, "4": 0.0, "5": 0.2}
    assert (bad["type"], bad["question"], bad["confidence"]) == ("score", "/bad", 0.5)
    assert bad["expectation"] == pytest.approx(2 * 0.5 + 3 * 0.3 + 5 * 0.2)
    assert (bad["attempts"], bad["tokens"]) == (1, 1)
    assert (bad["engine"], bad["model"]) == (stack.engine_urls[0], "script")
    assert fields["/warm"]["expectation"] == pytest.approx(2 * 0.8 - 2 * 0.2)


def test_evidence_of_spans_tells_where_they_are(stack: Stack) -> None:
    fields = value_of(stack, Spans)["fields"]
    who = fields["/who"]
    assert (STATE[who["start"] : who["end"]], who["type"], who["found"]) == ("Ada", "span", True)
    assert 0 < who["confidence"] <= 1
    assert [STATE[one["start"] : one["end"]] for one in fields["/things"]["items"]] == [
        "red chair",
        "blue table",
    ]
    assert fields["/payer"]["found"] is False


def test_evidence_of_what_is_there_at_all(stack: Stack) -> None:
    fields = value_of(stack, Optionals)["fields"]
    assert fields["/discount"]["probabilities"] == {"yes": 0.2, "no": 0.8}
    assert fields["/rebate"]["present"]["probability"] == 0.8
    assert fields["/rebate"]["type"] == "score"


def test_only_the_branch_that_was_picked_is_asked(stack: Stack) -> None:
    body = value_of(stack, Unions, diagnostics=True)
    asked = {id for read in body["diagnostics"]["reads"] for id in read["questions"]}
    assert not any("purrs" in id for id in asked)
    assert body["fields"]["/pet/purrs"]["reason"]


def test_items_beyond_the_count_are_not_asked(stack: Stack) -> None:
    body = value_of(stack, Loops, diagnostics=True)
    asked = {id for read in body["diagnostics"]["reads"] for id in read["questions"]}
    assert {id for id in asked if id.startswith("/bought/")} == {
        "/bought/0/colour",
        "/bought/0/good",
        "/bought/1/colour",
        "/bought/1/good",
    }


def test_fields_that_stand_alone_share_the_first_wave(stack: Stack) -> None:
    body = value_of(stack, Ordered, diagnostics=True)
    waves = {read["questions"][0]: read["wave"] for read in body["diagnostics"]["reads"]}
    assert waves == {"/first": 0, "/alone": 0, "/marked": 0, "/later": 1}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "boolean", "description": "Is it urgent?"}, True),
        ({"enum": ["sales", "support"], "description": "Which team?"}, "sales"),
        ({"type": "integer", "minimum": 1, "maximum": 5, "description": "How bad?"}, 2),
        ({"type": "string", "description": "A title"}, "Two pieces"),
        ({"type": ["boolean", "null"], "description": "Is it calm?"}, None),
        ({"description": "Anything"}, {"free": [True, None]}),
    ],
)
def test_the_root_may_be_one_field(stack: Stack, schema: Any, value: Any) -> None:
    body = filled(stack, schema)
    assert (body["valid"], body["value"]) == (True, value), body["errors"]
    assert "" in body["fields"]


def test_a_piece_that_is_not_in_the_text_is_an_error_of_its_field(stack: Stack) -> None:
    schema = Spans.model_json_schema()
    schema["properties"]["who"]["description"] = "Who paid?"
    body = filled(stack, schema)
    assert (body["value"], body["valid"]) == (None, False)
    (error,) = body["errors"]
    assert (error["path"], error["code"]) == ("/who", "not_found")
    assert body["fields"]["/things"]["found"] is True


def test_what_cannot_be_written_is_an_error_of_its_field_and_the_rest_is_told(stack: Stack) -> None:
    schema = Written.model_json_schema()
    schema["properties"]["title"]["description"] = "Half a text"
    body = filled(stack, schema)
    assert (body["value"], body["valid"]) == (None, False)
    (error,) = body["errors"]
    assert (error["path"], error["code"]) == ("/title", "invalid_object")
    told = body["fields"]["/title"]
    assert (told["valid"], told["attempts"], told["finish_reason"]) == (False, 2, "length")
    assert body["answers"]["/price"]["value"] == 12.5


def test_a_value_whose_parts_are_there_and_whole_is_not_valid_is_no_value(stack: Stack) -> None:
    """A piece of the text is as long as it is: whether it may be is checked when all is there."""
    piece = {"type": "string", "maxLength": 2, "description": "Who ordered?", "x-canvass": {"span": True}}
    schema = {
        "type": "object",
        "properties": {"who": piece, "urgent": {"type": "boolean", "description": "Is it urgent?"}},
        "required": ["who", "urgent"],
    }
    body = filled(stack, schema)
    assert (body["value"], body["valid"]) == (None, False)
    (error,) = body["errors"]
    assert (error["path"], error["code"]) == ("/who", "invalid")
    assert body["fields"]["/urgent"]["confidence"] == 0.9
    piece["maxLength"] = 3
    assert filled(stack, schema)["value"] == {"who": "Ada", "urgent": True}


def test_a_schema_and_questions_together_are_refused(stack: Stack) -> None:
    questions = {"a": {"type": "noul"}}
    response = ask_at(stack.url, schema=Nouls.model_json_schema(), questions=questions)
    assert response.status_code == 422, response.text


def test_a_job_and_its_webhook_carry_the_value(stack: Stack) -> None:
    with receiving() as inbox:
        body = {
            "model": "jev-latest",
            "state": STATE,
            "schema": Nouls.model_json_schema(),
            "webhook": inbox.url,
        }
        posted = httpx2.post(f"{stack.url}/v1/systemone", json=body, headers=ASYNC, timeout=60)
        assert posted.status_code == 202, posted.text
        done = job(stack.url, posted.json()["id"], wait=30)
        (call,) = inbox.wait(1)
    assert done["result"]["value"] == {"urgent": True, "calm": False}
    assert call.verified()["data"]["result"] == done["result"]


def test_the_states_of_a_batch_are_filled_in(stack: Stack) -> None:
    body = {
        "model": "jev-latest",
        "states": [STATE, {"custom_id": "b", "state": "Another."}],
        "schema": Nouls.model_json_schema(),
        "schema_version": "v1",
    }
    posted = httpx2.post(f"{stack.url}/v1/batches", json=body, timeout=60)
    assert posted.status_code == 202, posted.text
    text = httpx2.get(f"{stack.url}/v1/batches/{posted.json()['id']}/results", timeout=120).text
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["status"] for line in lines] == ["succeeded", "succeeded"]
    for line in lines:
        assert (line["result"]["valid"], line["result"]["value"]) == (True, {"urgent": True, "calm": False})
        assert line["result"]["fields"]["/urgent"]["confidence"] == 0.9


def test_a_batch_with_a_schema_that_cannot_be_is_refused(stack: Stack) -> None:
    body = {"model": "jev-latest", "states": ["a"], "schema": {"$ref": "#"}}
    response = httpx2.post(f"{stack.url}/v1/batches", json=body, timeout=30)
    assert response.status_code == 422, response.text
    assert response.json()["errors"][0]["code"] == "schema_reference"


def test_a_thought_goes_ahead_of_the_fields(stack: Stack) -> None:
    schema = field("After a thought?", type="boolean")
    assert filled(stack, schema)["value"] == {"x": False}
    assert filled(stack, schema, think=64)["value"] == {"x": True}


def test_fields_may_be_about_images(stack: Stack) -> None:
    schema = field("In the picture?", type="boolean")
    assert filled(stack, schema)["value"] == {"x": False}
    assert filled(stack, schema, images=[url(RED)])["value"] == {"x": True}


def test_a_span_cannot_be_found_in_a_picture_and_says_where(stack: Stack) -> None:
    response = ask_at(stack.url, state=STATE, schema=Spans.model_json_schema(), images=[url(RED)])
    assert response.status_code == 422, response.text


def test_samples_are_evidence_too(stack: Stack) -> None:
    body = value_of(stack, Nouls, samples=3)
    assert body["fields"]["/urgent"]["tokens"] == 3


@pytest.mark.parametrize("name", REFUSED)
def test_a_hopeless_schema_is_refused_by_its_place(stack: Stack, name: str) -> None:
    schema, code = REFUSED[name]
    response = ask_at(stack.url, state=STATE, schema=schema)
    assert response.status_code == 422, response.text
    detail = response.json()["detail"][0]
    assert detail["type"] == ("schema_type" if name == "no schema" else code)
    assert detail["loc"][:2] == ["body", "schema"]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_hostile_schema_is_filled_in_or_refused_and_nothing_invalid_is_valid(
    stack: Stack, name: str
) -> None:
    inner = WRITTEN[name].schema
    if not isinstance(inner, dict):
        inner = {}
    for schema in (
        {**inner, "description": f"Case {name}."},
        {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/it", "description": f"Case {name}."}},
            "required": ["x"],
            "$defs": {"it": json.loads(json.dumps(inner).replace('"$ref": "#"', '"$ref": "#/$defs/it"'))},
        },
    ):
        response = ask_at(stack.url, state=STATE, schema=schema)
        assert response.status_code in (200, 422), response.text
        if response.status_code == 422:
            assert response.json()["detail"][0]["loc"][:2] == ["body", "schema"]
            continue
        body = response.json()
        assert body["valid"] is not bool(body["errors"])
        if body["valid"]:
            assert jsonschema_rs.Draft202012Validator(schema).is_valid(body["value"])
        else:
            assert body["value"] is None


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        (deep(40), "schema_too_deep"),
        ({"const": 3}, "schema_closed"),
        (
            {
                "type": "object",
                "properties": {str(number): {"type": "boolean"} for number in range(401)},
            },
            "schema_too_large",
        ),
        (field("What?", type="string") | {"x": 1e308 * 10}, None),
        ({"properties": {"x": {"type": "string", "x-canvass": {"max_tokens": 0}}}}, "schema_mark"),
    ],
)
def test_what_is_too_much_or_nothing_is_refused(stack: Stack, schema: Any, code: str | None) -> None:
    content = json.dumps({"model": "jev-latest", "state": STATE, "schema": schema}).replace(
        "Infinity", "1e400"
    )
    response = httpx2.post(
        f"{stack.url}/v1/systemone", content=content, headers={"content-type": "application/json"}, timeout=30
    )
    assert response.status_code == 422, response.text
    if code is not None:
        assert response.json()["detail"][0]["type"] == code
