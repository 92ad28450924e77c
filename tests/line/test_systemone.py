"""System One through the front door: what a client gets for what it asks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
import zstandard

from client.stack import Stack

Ask = Callable[..., httpx2.Response]

URGENT = {"type": "noul", "instructions": "Is it urgent?"}
TEAM = {
    "type": "choice",
    "instructions": "Which team?",
    "criteria": {"billing": "Money", "technical": None, "sales": {"when": "they buy"}},
}
BAD = {"type": "score", "instructions": "How bad?", "criteria": ["fine", "poor", "awful"]}


def test_each_question_type_gets_its_answer(ask: Ask) -> None:
    response = ask(questions={"urgent": URGENT, "team": TEAM, "bad": BAD})
    assert response.status_code == 200
    body = response.json()
    assert set(body) == {"model", "answers", "usage"}
    assert body["model"] == "script"
    answers = body["answers"]
    assert answers["urgent"] == {"type": "noul", "noul": 0.9, "x_label_mass": 1.0}
    assert answers["team"]["choice"] == "billing"
    assert answers["team"]["probabilities"] == {"billing": 0.7, "technical": 0.2, "sales": 0.1}
    assert answers["team"]["confidence"] == pytest.approx((0.7 - 1 / 3) / (2 / 3), abs=1e-6)
    assert answers["bad"]["score"] == pytest.approx(1.8, abs=1e-6)
    assert answers["bad"]["legend"] == {"0": "fine", "1": "poor", "2": "awful"}
    assert answers["bad"]["probabilities"] == {"0": 0.0, "1": 0.2, "2": 0.8}


def test_the_response_names_its_request_and_counts_its_tokens(ask: Ask) -> None:
    response = ask(questions={"urgent": URGENT})
    assert response.headers["x-typesafe-request-id"].startswith("dec_")
    usage = response.json()["usage"]
    assert usage["input_tokens"] > 20
    assert usage["output_tokens"] == 1


def test_a_choice_may_have_255_options(ask: Ask) -> None:
    criteria = {f"option {number}": None for number in range(255)}
    answer = ask(
        questions={"many": {"type": "choice", "instructions": "Which of many?", "criteria": criteria}}
    )
    found = answer.json()["answers"]["many"]
    assert found["choice"] == "option 200"
    assert list(found["probabilities"]) == list(criteria)
    assert found["probabilities"]["option 3"] == pytest.approx(0.3, abs=1e-4)


def test_later_stages_see_earlier_answers_and_skip_what_does_not_apply(ask: Ask) -> None:
    body = ask(
        questions={
            "team": TEAM,
            "bad": {**BAD, "ask_if": {"team": "billing"}},
            "calm": {"type": "noul", "instructions": "Is it calm?", "ask_if": {"team": ["sales"]}},
            "urgent": {**URGENT, "depends_on": ["calm"]},
        },
        diagnostics=True,
    ).json()
    assert body["answers"]["calm"] is None
    assert body["answers"]["bad"]["score"] == pytest.approx(1.8, abs=1e-6)
    told = body["diagnostics"]
    assert told["stages"] == [["team"], ["bad"], ["urgent"]]
    assert told["skipped"] == {"calm": "'team' is 'billing', not 'sales'"}
    assert told["waves"] == 3


def test_draws_are_averaged_and_their_spread_is_told(ask: Ask) -> None:
    question = {"type": "noul", "instructions": "Is it open?"}
    body = ask(questions={"open": question}, samples=16, diagnostics=True).json()
    answer = body["answers"]["open"]
    assert answer["draws"] == 16
    assert 0.4 <= answer["noul"] <= 0.6
    assert answer["stderr"] > 0
    seeds = {read["seed"] for read in body["diagnostics"]["reads"]}
    assert len(seeds) == 16


def test_automatic_sampling_draws_again_only_where_it_is_unsure(ask: Ask) -> None:
    sure = {"type": "noul", "instructions": "Is it urgent?"}
    body = ask(questions={"sure": sure}, samples="auto", auto_threshold=0.5, diagnostics=True).json()
    assert body["answers"]["sure"]["noul"] == 0.9
    assert len(body["diagnostics"]["reads"]) == 1
    body = ask(
        questions={"sure": sure}, samples="auto", auto_threshold=0.1, auto_max=3, diagnostics=True
    ).json()
    assert [read["wave"] for read in body["diagnostics"]["reads"]] == [0, 1, 1]


def test_a_joint_stage_is_one_read(ask: Ask) -> None:
    body = ask(questions={"urgent": URGENT, "team": TEAM}, joint=True, diagnostics=True).json()
    assert body["answers"]["urgent"]["noul"] == 0.9
    assert body["answers"]["team"]["choice"] == "billing"
    assert [read["questions"] for read in body["diagnostics"]["reads"]] == [["urgent", "team"]]


def test_only_what_is_asked_is_answered_with_what_it_needs(ask: Ask) -> None:
    questions = {"team": TEAM, "bad": {**BAD, "depends_on": ["team"]}, "urgent": URGENT}
    body = ask(questions=questions, ask=["bad"]).json()
    assert set(body["answers"]) == {"team", "bad"}


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_may_come_compressed(stack: Stack, encoding: str) -> None:
    plain = json.dumps({"model": "jev-latest", "state": "x", "questions": {"urgent": URGENT}}).encode()
    packed = gzip.compress(plain) if encoding == "gzip" else zstandard.ZstdCompressor().compress(plain)
    response = httpx2.post(
        f"{stack.url}/v1/systemone", content=packed, headers={"content-encoding": encoding}, timeout=60
    )
    assert response.json()["answers"]["urgent"]["noul"] == 0.9


@pytest.mark.parametrize("cut", [1, 3, 10])
def test_a_compressed_body_that_is_cut_short_is_refused(stack: Stack, cut: int) -> None:
    plain = json.dumps({"model": "jev-latest", "state": "x" * 500, "questions": {"urgent": URGENT}}).encode()
    packed = zstandard.ZstdCompressor(write_checksum=True).compress(plain)[:-cut]
    response = httpx2.post(
        f"{stack.url}/v1/systemone", content=packed, headers={"content-encoding": "zstd"}, timeout=60
    )
    assert response.status_code == 400
    assert "zstd" in response.json()["detail"]["message"]


def test_models_are_listed_for_both_worlds(stack: Stack) -> None:
    body = httpx2.get(f"{stack.url}/v1/models").json()
    assert {model["name"] for model in body["models"]} == {"script", "jev-latest"}
    assert {model["id"] for model in body["data"]} == {"script", "jev-latest"}
    assert body["object"] == "list"


def test_a_served_name_is_accepted_as_well_as_an_alias(ask: Ask) -> None:
    assert ask(model="script", questions={"urgent": URGENT}).json()["model"] == "script"


def _noul(**fields: Any) -> dict[str, Any]:
    return {"type": "noul", **fields}


LEVELS = [f"level {number}" for number in range(11)]
OPTIONS = {f"option {number}": None for number in range(256)}
CYCLE = {"a": _noul(depends_on=["b"]), "b": _noul(depends_on=["a"])}

INVALID: dict[str, tuple[dict[str, Any], list[str | int]]] = {
    "no questions": ({"questions": {}}, ["body", "questions"]),
    "a question without a type": ({"questions": {"a": {}}}, ["body", "questions", "a"]),
    "a cycle": ({"questions": CYCLE}, ["body", "questions", "b", "depends_on"]),
    "an unknown dependency": (
        {"questions": {"a": _noul(depends_on=["z"])}},
        ["body", "questions", "a", "depends_on", 0],
    ),
    "an ask_if that is no answer": (
        {"questions": {"a": _noul(), "b": _noul(ask_if={"a": "maybe"})}},
        ["body", "questions", "b", "ask_if", "a"],
    ),
    "eleven levels": (
        {"questions": {"a": {"type": "score", "criteria": LEVELS}}},
        ["body", "questions", "a", "score", "criteria"],
    ),
    "256 options": (
        {"questions": {"a": {"type": "choice", "criteria": OPTIONS}}},
        ["body", "questions", "a", "choice", "criteria"],
    ),
    "levels as a map": (
        {"questions": {"a": {"type": "score", "criteria": {"low": "x"}}}},
        ["body", "questions", "a", "score", "criteria"],
    ),
    "a choice without options": (
        {"questions": {"a": {"type": "choice", "criteria": {}}}},
        ["body", "questions", "a", "choice", "criteria"],
    ),
    "an empty id": ({"questions": {"": _noul()}}, ["body", "questions", "", "[key]"]),
    "too many samples": (
        {"questions": {"a": _noul()}, "samples": 33},
        ["body", "samples"],
    ),
    "an ask of nothing known": ({"questions": {"a": _noul()}, "ask": ["z"]}, ["body", "ask", 0]),
    "a thought too long": ({"questions": {"a": _noul()}, "think": 5000}, ["body", "think"]),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_request_is_told_where_it_is_wrong(ask: Ask, name: str) -> None:
    body, loc = INVALID[name]
    response = ask(**body)
    assert response.status_code == 422
    (first, *_) = response.json()["detail"]
    assert first["loc"] == loc
    assert first["msg"]
    assert first["type"]
    assert "input" in first


def test_a_missing_state_is_told(stack: Stack) -> None:
    body = {"model": "jev-latest", "questions": {"urgent": URGENT}}
    response = httpx2.post(f"{stack.url}/v1/systemone", json=body)
    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"] == ["body", "state"]


@pytest.mark.parametrize(
    "content", [b"no json", b"", b"[1", b'{"state": "\\ud800"}', b'{"state": NaN}', b"[" * 5000 + b"]" * 5000]
)
def test_a_body_that_is_no_json_is_a_validation_error(stack: Stack, content: bytes) -> None:
    response = httpx2.post(f"{stack.url}/v1/systemone", content=content)
    assert response.status_code == 422
    assert response.json()["detail"][0]["type"] == "json_invalid"


@pytest.mark.parametrize("type", ["zork", "box"])
def test_a_question_type_that_is_not_served_is_a_usage_error(ask: Ask, type: str) -> None:
    response = ask(questions={"a": {"type": type}})
    assert response.status_code == 400
    detail = response.json()["detail"]
    assert detail["error_type"] == "api_usage_error"
    assert "questions" in detail["message"]


def test_an_unknown_model_is_a_usage_error_that_names_the_known_ones(ask: Ask) -> None:
    response = ask(model="gpt-9", questions={"urgent": URGENT})
    assert response.status_code == 400
    assert "'jev-latest'" in response.json()["detail"]["message"]


def test_a_state_over_the_context_is_refused_and_never_cut(ask: Ask) -> None:
    response = ask(state="word " * 40_000, questions={"urgent": URGENT})
    assert response.status_code == 400
    assert response.json()["detail"]["error_type"] == "max_tokens_exceeded"


def test_a_body_over_the_limit_is_refused_also_when_it_comes_compressed(stack: Stack) -> None:
    packed = gzip.compress(b" " * (17 * 2**20))
    response = httpx2.post(
        f"{stack.url}/v1/systemone", content=packed, headers={"content-encoding": "gzip"}, timeout=60
    )
    assert response.status_code == 413
    assert "CANVASS_MAX_BODY_BYTES" in response.json()["detail"]["message"]


def test_an_encoding_that_is_not_served_is_told(stack: Stack) -> None:
    response = httpx2.post(f"{stack.url}/v1/systemone", content=b"x", headers={"content-encoding": "br"})
    assert response.status_code == 415
