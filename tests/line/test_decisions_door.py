"""OpenAI's Decisions over the wire: the official client, with nothing changed but its base URL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, BadRequestError, InternalServerError, NotFoundError, OpenAI
from openai.types import Decision
from openai.types.decision import (
    AnswerAnswerResourceChoice,
    AnswerAnswerResourcePredicate,
    AnswerAnswerResourceScore,
)

from client.stack import Stack
from tests.line.job_support import ASYNC, job

QUESTIONS: list[Any] = [
    {"type": "predicate", "instructions": "Is it urgent?"},
    {
        "type": "choice",
        "name": "team",
        "instructions": "Which team?",
        "choices": [{"value": "billing", "description": "Money"}, {"value": "technical"}],
    },
    {
        "type": "score",
        "instructions": [{"type": "input_text", "text": "How bad?"}],
        "levels": [{"label": "fine"}, {"label": "poor"}, {"label": "awful"}],
    },
]
URGENT: Any = QUESTIONS[0]


@pytest.fixture
def client(stack: Stack) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{stack.url}/v1", api_key="x", max_retries=0) as found:
        yield found


def check(response: Decision) -> None:
    urgent, team, bad = response.answers
    assert isinstance(urgent, AnswerAnswerResourcePredicate)
    assert (urgent.probability, urgent.name) == (0.9, None)
    assert isinstance(team, AnswerAnswerResourceChoice)
    assert (team.choice, team.name) == ("billing", "team")
    assert [one.value for one in team.probabilities] == ["billing", "technical"]
    assert isinstance(bad, AnswerAnswerResourceScore)
    assert bad.score == pytest.approx(1.8, abs=1e-6)
    assert [(one.value, one.label) for one in bad.probabilities] == [(0, "fine"), (1, "poor"), (2, "awful")]
    assert response.model == "script"
    usage = response.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert 0 <= usage.input_tokens_details.cached_tokens <= usage.input_tokens
    assert response._request_id is not None


def test_the_sync_client_reads_every_answer_type(client: OpenAI) -> None:
    check(client.decisions.create(model="jev-latest", input="My printer is on fire.", questions=QUESTIONS))


def test_the_async_client_reads_every_answer_type(stack: Stack) -> None:
    async def ask() -> Decision:
        async with AsyncOpenAI(base_url=f"{stack.url}/v1", api_key="x") as client:
            return await client.decisions.create(
                model="script", input=[{"role": "user", "content": "Fire!"}], questions=QUESTIONS
            )

    check(asyncio.run(ask()))


def test_booleans_come_back_as_booleans(client: OpenAI) -> None:
    question: Any = {
        "type": "choice",
        "instructions": "Is it so?",
        "choices": [{"value": True}, {"value": "true"}],
    }
    (answer,) = client.decisions.create(model="jev-latest", input="", questions=[question]).answers
    assert isinstance(answer, AnswerAnswerResourceChoice)
    assert [type(one.value) for one in answer.probabilities] == [bool, str]


def test_a_conversation_with_json_and_calls_is_read(client: OpenAI) -> None:
    said: Any = [
        {"role": "developer", "content": "Be strict."},
        {"role": "user", "content": [{"type": "input_json", "data": {"ticket": 7}}]},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "on fire"},
    ]
    response = client.decisions.create(
        model="jev-latest",
        input=said,
        questions=[URGENT],
        prompt_cache_key="tenant-7",
        prompt_cache_options={"mode": "implicit", "ttl": "30m"},
        safety_identifier="user-7",
    )
    assert len(response.answers) == 1


def test_400_questions_are_answered_and_401_are_not(client: OpenAI) -> None:
    def ask(count: int) -> int:
        asked = [URGENT] * count
        return len(client.decisions.create(model="jev-latest", input="Fire", questions=asked).answers)

    assert ask(400) == 400
    with pytest.raises(BadRequestError, match=r"at most 400 items, not 401") as error:
        ask(401)
    assert (error.value.param, error.value.code) == ("questions", "too_long")


def test_a_cache_key_keeps_prompts_apart_in_the_engine(client: OpenAI) -> None:
    long = "The printer is on fire, and nobody knows why. " * 20

    def cached(key: str) -> int:
        asked = client.decisions.create(
            model="jev-latest", input=long, questions=[URGENT], prompt_cache_key=key
        )
        return asked.usage.input_tokens_details.cached_tokens

    assert [cached("one") > 100, cached("one") > 100, cached("two") > 100] == [False, True, False]


def test_extensions_go_in_the_same_body(client: OpenAI) -> None:
    response = client.decisions.create(
        model="jev-latest",
        input="Fire",
        questions=[{"type": "predicate", "instructions": "Is it open?"}],
        extra_body={"samples": 4, "diagnostics": True},
    )
    told = response.model_dump()
    assert told["answers"][0]["draws"] == 4
    assert len(told["diagnostics"]["reads"]) == 4


def test_errors_come_as_the_clients_own_types(client: OpenAI) -> None:
    with pytest.raises(NotFoundError, match="there is no model 'gpt-9'") as unknown:
        client.decisions.create(model="gpt-9", input="", questions=[URGENT])
    assert unknown.value.code == "model_not_found"
    picture: Any = [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}]
    with pytest.raises(BadRequestError, match="a data URL in base64"):
        client.decisions.create(model="jev-latest", input=picture, questions=[URGENT])
    wrong: Any = [URGENT, {"type": "choice", "instructions": "x", "choices": [{"value": "a"}, {"value": 7}]}]
    with pytest.raises(BadRequestError) as value:
        client.decisions.create(model="jev-latest", input="", questions=wrong)
    assert value.value.param == "questions[1].choices[1].value"
    assert value.value.type == "invalid_request_error"
    with pytest.raises(BadRequestError) as longer:
        client.decisions.create(model="jev-latest", input="word " * 9000, questions=[URGENT])
    assert longer.value.code == "context_length_exceeded"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b'{"model": 7}', b"[" * 3000])
def test_a_body_that_is_no_request_is_told_in_openais_words(stack: Stack, content: bytes) -> None:
    response = httpx2.post(f"{stack.url}/v1/decisions", content=content)
    assert response.status_code == 400
    assert response.json()["error"].keys() == {"message", "type", "param", "code"}


def test_a_decision_may_be_a_job(stack: Stack) -> None:
    asked = {"model": "jev-latest", "input": "Fire", "questions": [URGENT]}
    response = httpx2.post(f"{stack.url}/v1/decisions", json=asked, headers=ASYNC)
    assert (response.status_code, response.headers["preference-applied"]) == (202, "respond-async")
    done = job(stack.url, response.json()["id"], wait=20)
    assert done["result"]["answers"] == [{"type": "predicate", "name": None, "probability": 0.9}]


def test_a_retry_of_the_client_joins_the_running_decision(slow: Stack) -> None:
    """32 reads, of which 8 are made at once in 0.4 s: over the sync limit of a second."""

    def newest() -> list[str]:
        found = httpx2.get(f"{slow.url}/v1/jobs", params={"limit": 2}).json()["data"]
        return [one["id"] for one in found]

    with OpenAI(base_url=f"{slow.url}/v1", api_key="x", max_retries=5) as client:
        asked: dict[str, Any] = {"model": "jev-latest", "input": "A retried fire", "questions": [URGENT]}
        more, once = {"samples": 32}, client.with_options(max_retries=0)
        with pytest.raises(InternalServerError, match="still worked on"):
            once.decisions.create(**asked, extra_body={**more, "seed": 1})
        before = newest()[0]
        client.decisions.create(**asked, extra_body=more)
    assert newest()[1] == before
