"""Structured chat over the wire, with the official client's chat call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from client.stack import Stack
from tests.line.job_support import ASYNC, job

URGENT = {"id": "urgent", "type": "noul", "instructions": "Is it urgent?"}
SCHEMA = {
    "questions": [
        URGENT,
        {"id": "team", "type": "choice", "options": ["billing", {"name": "technical", "description": "IT"}]},
        {"id": "bad", "type": "score", "instructions": "How bad?", "levels": ["fine", "poor", "awful"]},
    ]
}
STATE = "My printer is on fire."


@pytest.fixture
def client(stack: Stack) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{stack.url}/v1", api_key="x", max_retries=0) as found:
        yield found


def messages(schema: Any, state: Any = STATE, role: str = "system") -> Any:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return [{"role": role, "content": text}, {"role": "user", "content": state}]


def told(client: OpenAI, schema: Any, state: Any = STATE, role: str = "system") -> dict[str, Any]:
    """What the reply's message says."""
    said = messages(schema, state, role)
    completion = client.chat.completions.create(model="jev-latest", messages=said)
    content = completion.choices[0].message.content
    assert content is not None
    found: dict[str, Any] = json.loads(content)
    return found


@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_client_gets_a_completion_whose_content_is_the_answers(client: OpenAI, role: str) -> None:
    completion = client.chat.completions.create(model="jev-latest", messages=messages(SCHEMA, role=role))
    assert completion.object == "chat.completion"
    assert completion.id == f"chatcmpl-{completion._request_id}"
    assert completion.created > 1_700_000_000
    assert completion.model == "script"
    assert completion.usage is not None
    assert (
        completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    )
    answers = told(client, SCHEMA, role=role)["answers"]
    assert (answers["urgent"]["label"], answers["urgent"]["noul"]) == ("yes", 0.9)
    assert (answers["team"]["choice"], answers["team"]["confidence"]) == ("billing", 0.777778)
    assert answers["bad"]["level"] == 2
    assert answers["bad"]["score"] == pytest.approx(1.8, abs=1e-6)
    assert answers["bad"]["probabilities"].keys() == {"fine", "poor", "awful"}


def test_a_stage_is_one_canvas_unless_it_says_otherwise(client: OpenAI) -> None:
    assert len(told(client, SCHEMA)["diagnostics"]["reads"]) == 1
    two = {"questions": [URGENT, {**URGENT, "id": "again"}], "joint": False}
    assert len(told(client, two)["diagnostics"]["reads"]) == 2


def test_several_draws_tell_stderr_and_agreement(client: OpenAI) -> None:
    asked = {"questions": [{"id": "open", "type": "noul", "instructions": "Is it open?"}], "samples": 8}
    answer = told(client, asked)["answers"]["open"]
    assert answer["draws"] == 8
    assert answer["stderr"] > 0
    assert 0.5 <= answer["agreement"] <= 1


def test_a_json_state_and_stages_are_taken(client: OpenAI) -> None:
    later = {"id": "calm", "type": "noul", "instructions": "Is it calm?", "depends_on": ["urgent"]}
    found = told(client, {"questions": [URGENT, later]}, state='{"text": "Fire!"}')
    assert found["diagnostics"]["stages"] == [["urgent"], ["calm"]]


def test_a_decision_streams_as_one_chunk(client: OpenAI) -> None:
    stream = client.chat.completions.create(
        model="jev-latest",
        messages=messages(SCHEMA),
        stream=True,
        stream_options={"include_usage": True},
    )
    first, last = list(stream)
    content = first.choices[0].delta.content
    assert content is not None
    assert json.loads(content)["answers"]["urgent"]["noul"] == 0.9
    assert first.choices[0].finish_reason == "stop"
    assert last.usage is not None


def test_errors_are_openais_400s_with_the_path(client: OpenAI) -> None:
    def error(schema: Any, state: Any = STATE) -> BadRequestError:
        with pytest.raises(BadRequestError) as found:
            client.chat.completions.create(model="jev-latest", messages=messages(schema, state))
        return found.value

    assert error({"questions": []}).param == "questions"
    assert error({"questions": [URGENT] * 401}).code == "too_long"
    assert error({"questions": [{**URGENT, "type": "box"}]}).param == "questions[0]"
    assert error({"questions": [{**URGENT, "depends_on": ["x"]}]}).param == "questions.urgent.depends_on[0]"
    assert error(SCHEMA, state=[{"type": "image_url", "image_url": {"url": "data:,"}}]).code == "no_data_url"
    with pytest.raises(BadRequestError, match="exactly two messages"):
        client.chat.completions.create(model="jev-latest", messages=messages(SCHEMA)[:1])
    with pytest.raises(NotFoundError):
        client.chat.completions.create(model="gpt-9", messages=messages(SCHEMA))


def test_a_decision_may_be_a_job(stack: Stack) -> None:
    asked = {
        "model": "jev-latest",
        "messages": messages({**SCHEMA, "metadata": {"ticket": 7}}),
        "stream": True,
    }
    response = httpx2.post(f"{stack.url}/v1/chat/completions", json=asked, headers=ASYNC)
    assert response.status_code == 202
    done = job(stack.url, response.json()["id"], wait=20)
    assert done["metadata"] == {"ticket": 7}
    assert done["result"]["object"] == "chat.completion"


def test_ordinary_chat_and_the_raw_route_go_to_the_engine(stack: Stack, client: OpenAI) -> None:
    chat = client.chat.completions.create(
        model="script", messages=[{"role": "user", "content": "Hello"}], max_tokens=5
    )
    assert chat.choices[0].message.content == "The script has no text"
    with OpenAI(base_url=f"{stack.url}/v1/raw", api_key="x", max_retries=0) as raw:
        relayed = raw.chat.completions.create(model="jev-latest", messages=messages(SCHEMA), max_tokens=5)
    assert relayed.choices[0].message.content == "The script has no text"


def test_a_model_is_retrieved_by_the_official_client(client: OpenAI) -> None:
    for name in ("script", "jev-latest"):
        model = client.models.retrieve(name)
        assert (model.id, model.object, model.owned_by) == (name, "model", "canvass")
    with pytest.raises(NotFoundError) as refused:
        client.models.retrieve("acme/no-such-model")
    assert refused.value.code == "model_not_found"
    assert "'jev-latest'" in refused.value.message
