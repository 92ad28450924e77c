"""Engines that write under a grammar and engines that do not: who joins for what, who gets which request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from client.stack import Stack
from tests.line.conftest import ask_at
from tests.line.grammar_support import REFUSAL, refusing
from tests.line.job_support import tokens_read, until

ADMIN = {"authorization": "Bearer an-admin-key"}
TOPIC = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}
ABOUT = {"type": "object", "instructions": "What is it about?", "criteria": TOPIC}
URGENT = {"type": "noul", "instructions": "Is it urgent?"}
WHO = {"type": "span", "instructions": "Who ordered?"}
STATE = "Dana Smith of Acme Inc. ordered two red chairs."

RULES: dict[str, Any] = {
    "rules": [
        {"phrase": "What is it about", "object": {"topic": "chairs"}, "text": "It is about chairs."},
        {"phrase": "A title", "object": '"chairs"'},
        {"phrase": "Is it urgent", "labels": {"yes": 0.9}},
        {"phrase": "Who ordered", "span": "Dana Smith"},
    ]
}
SILENT = [{"phrase": "Say hello", "object": "Hello! How may I help?"}]
"""Of a server that keeps to no grammar: the canary's is answered with prose."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(scope="module")
def script(folder: Path) -> str:
    path = folder / "script.json"
    path.write_text(json.dumps(RULES))
    return f"script:{path}"


@pytest.fixture(scope="module")
def mixed(script: str) -> Iterator[Stack]:
    """One engine that reads canvases and keeps to no grammar, and a causal one that keeps to them."""
    own = (
        ("--liar", "ignore-grammar", "--model-name", "diffusion"),
        ("--liar", "ignore-canvas", "--model-name", "causal"),
    )
    with Stack(engines=script, engine_count=2, each_engine_args=own) as running:
        until(lambda: all(one["state"] == "in" for one in engines(running).values()), 20)
        until(lambda: engines(running)[running.engine_urls[1]]["capabilities"]["generate"] is True, 20)
        yield running


def engines(stack: Stack) -> dict[str, dict[str, Any]]:
    """The pool by URL."""
    listed = httpx2.get(f"{stack.url}/v1/engines").json()["data"]
    return {engine["url"]: engine for engine in listed}


def ask(stack: Stack, **questions: Any) -> httpx2.Response:
    return ask_at(stack.url, state=STATE, questions=questions, diagnostics=True)


def test_a_causal_engine_joins_to_generate_and_is_shown_as_such(mixed: Stack) -> None:
    diffusion, causal = (engines(mixed)[url] for url in mixed.engine_urls)
    assert (causal["model"], causal["state"]) == ("causal", "in")
    assert "joined to generate alone" in causal["reason"]
    assert (causal["capabilities"]["canvas"], causal["capabilities"]["generate"]) == (False, True)
    assert (diffusion["capabilities"]["canvas"], diffusion["capabilities"]["generate"]) == (True, False)


def test_each_request_goes_to_the_engine_that_can_take_it(mixed: Stack) -> None:
    reading, writing = mixed.engine_urls
    for _ in range(5):
        response = ask(mixed, urgent=URGENT, who=WHO, about=ABOUT)
        assert response.status_code == 200, response.text
        body = response.json()
        assert body["answers"]["about"]["value"] == {"topic": "chairs"}
        assert (body["answers"]["urgent"]["noul"], body["answers"]["who"]["text"]) == (0.9, "Dana Smith")
        engine_of = {read["kind"]: read["engine"] for read in body["diagnostics"]["reads"]}
        assert engine_of == {"label": reading, "span": reading, "object": writing}
        assert body["model"] == "diffusion"


def test_the_evidence_of_a_field_names_the_engine_that_wrote_it(mixed: Stack) -> None:
    schema = {
        "type": "object",
        "properties": {
            "urgent": {"type": "boolean", "description": "Is it urgent?"},
            "about": {"type": "string", "description": "A title"},
        },
        "required": ["urgent", "about"],
    }
    response = ask_at(mixed.url, state=STATE, schema=schema)
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["valid"] is True, body
    fields = body["fields"]
    reading, writing = mixed.engine_urls
    assert (fields["/urgent"]["engine"], fields["/urgent"]["model"]) == (reading, "diffusion")
    about = fields["/about"]
    assert (about["kind"], about["engine"], about["model"]) == ("generated", writing, "causal")


def test_the_model_of_a_causal_engine_takes_no_decisions(mixed: Stack) -> None:
    response = ask_at(mixed.url, state=STATE, questions={"urgent": URGENT}, model="causal")
    assert response.status_code == 400, response.text
    assert "causal" in response.json()["detail"]["message"]


def test_a_job_waits_for_the_engine_that_writes_and_others_do_not(mixed: Stack) -> None:
    """The causal engine goes away: label questions are answered, an object is when it is back."""
    causal = mixed.engines[1]
    url = mixed.engine_urls[1]
    causal.kill()
    until(lambda: engines(mixed)[url]["state"] == "out", 20)
    assert ask(mixed, urgent=URGENT).status_code == 200
    headers = {"prefer": "respond-async"}
    body = {"model": "jev-latest", "state": STATE, "questions": {"about": ABOUT}}
    posted = httpx2.post(f"{mixed.url}/v1/systemone", json=body, headers=headers, timeout=30)
    assert posted.status_code == 202, posted.text
    mixed.restart(causal)
    job = httpx2.get(f"{mixed.url}/v1/jobs/{posted.json()['id']}", params={"wait": 40}, timeout=60).json()
    assert job["status"] == "succeeded", job
    assert job["result"]["answers"]["about"]["valid"] is True


@pytest.mark.parametrize("names", [("script", "script"), ("causal", "diffusion")])
def test_a_causal_engine_gets_no_reads_where_it_comes_first(script: str, names: tuple[str, str]) -> None:
    own = (
        ("--liar", "ignore-canvas", "--model-name", names[0]),
        ("--liar", "ignore-grammar", "--model-name", names[1]),
    )
    with Stack(engines=script, engine_count=2, each_engine_args=own) as stack:
        writing, reading = stack.engine_urls
        until(lambda: engines(stack)[writing]["capabilities"]["generate"] is True, 20)
        for _ in range(5):
            response = ask(stack, urgent=URGENT, about=ABOUT)
            assert response.status_code == 200, response.text
            reads = response.json()["diagnostics"]["reads"]
            assert {read["kind"]: read["engine"] for read in reads} == {"label": reading, "object": writing}
            assert all("tried" not in read or not read["tried"] for read in reads)


def test_without_an_engine_that_writes_an_object_is_refused_before_anything_runs(script: str) -> None:
    with Stack(engines=script, engine_args=("--liar", "ignore-grammar")) as stack:
        (url,) = stack.engine_urls
        until(lambda: engines(stack)[url]["capabilities"]["canvas"] is True, 20)
        # Known a moment after it is in: until then such a decision is taken, and waits.
        until(lambda: ask(stack, about=ABOUT).status_code == 422, 30)
        before = tokens_read(stack)
        response = ask(stack, urgent=URGENT, about=ABOUT)
        assert response.status_code == 422, response.text
        (detail,) = response.json()["detail"]
        assert (detail["loc"], detail["type"]) == (["body", "questions", "about", "type"], "not_served")
        assert "grammar" in detail["msg"]
        async_one = httpx2.post(
            f"{stack.url}/v1/systemone",
            json={"model": "jev-latest", "state": STATE, "questions": {"about": ABOUT}},
            headers={"prefer": "respond-async"},
        )
        assert async_one.status_code == 422
        batch = {"model": "jev-latest", "states": ["a"], "questions": {"about": ABOUT}}
        assert httpx2.post(f"{stack.url}/v1/batches", json=batch).status_code == 422
        assert tokens_read(stack) == before
        assert engines(stack)[url]["capabilities"]["generate"] is False
        assert ask(stack, urgent=URGENT).status_code == 200
        written = ask_at(stack.url, state=STATE, schema={"type": "object", "properties": {"a": TOPIC}})
        assert written.status_code == 422, written.text
        read = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
        assert ask_at(stack.url, state=STATE, schema=read).status_code == 200


def test_an_object_that_is_not_asked_needs_no_engine_that_writes(script: str) -> None:
    with Stack(engines=script, engine_args=("--liar", "ignore-grammar")) as stack:
        until(lambda: ask(stack, about=ABOUT).status_code == 422, 30)
        questions = {"urgent": URGENT, "about": ABOUT}
        response = ask_at(stack.url, state=STATE, questions=questions, ask=["urgent"])
        assert response.status_code == 200, response.text


def test_a_server_that_writes_prose_never_passes_the_grammar_canary(script: str, folder: Path) -> None:
    """One that knows no canvas either never joins; one that reads them joins to read alone."""
    silent = folder / "silent.json"
    silent.write_text(json.dumps({"rules": [*SILENT, *RULES["rules"]]}))
    own = (("--liar", "ignore-canvas"), ())
    with Stack(engines=f"script:{silent}", engine_count=2, each_engine_args=own) as stack:
        neither, reading = stack.engine_urls
        until(lambda: "no logprobs" in engines(stack)[neither]["reason"], 20)
        until(lambda: ask(stack, about=ABOUT).status_code == 422, 30)
        assert ask(stack, urgent=URGENT).status_code == 200
        seen = engines(stack)
        assert (seen[neither]["state"], seen[neither]["reads"]) == ("out", 0)
        assert (seen[reading]["state"], seen[reading]["capabilities"]["generate"]) == ("in", False)


def test_a_grammar_that_the_engine_refuses_is_422_and_nothing_else_is_harmed(script: str) -> None:
    env = {"CANVASS_ADMIN_KEY": "an-admin-key"}
    with Stack(engines=script, env=env) as stack, refusing(stack.engine_urls[0], "forbidden") as url:
        httpx2.post(f"{stack.url}/v1/engines", json={"url": url}, headers=ADMIN)
        until(lambda: engines(stack).get(url, {}).get("capabilities", {}).get("generate") is True, 20)
        httpx2.post(f"{stack.url}/v1/engines/drain", params={"url": stack.engine_urls[0]}, headers=ADMIN)
        until(lambda: engines(stack)[stack.engine_urls[0]]["state"] == "draining", 20)
        schema = {"type": "object", "properties": {"forbidden": {"type": "string"}}}
        response = ask(stack, about={**ABOUT, "criteria": schema}, urgent=URGENT)
        assert response.status_code == 422, response.text
        detail = response.json()["detail"]
        assert REFUSAL in detail["message"]
        job = httpx2.get(f"{stack.url}/v1/jobs/{response.headers['x-typesafe-request-id']}").json()
        assert (job["status"], job["error"]["code"]) == ("failed", "grammar_refused")
        assert ask(stack, about=ABOUT, urgent=URGENT).status_code == 200
        assert engines(stack)[url]["state"] == "in"
