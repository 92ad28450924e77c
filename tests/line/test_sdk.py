"""The official SDK of System One, with nothing changed but its base URL."""

from __future__ import annotations

import asyncio

import pytest
from typesafe_sdk import (
    AsyncTypeSafeClient,
    Choice,
    ChoiceAnswer,
    Noul,
    NoulAnswer,
    Score,
    ScoreAnswer,
    SystemOneResponse,
    TypeSafeBadRequestError,
    TypeSafeClient,
    TypeSafeUnprocessableEntityError,
)

from client.stack import Stack

QUESTIONS: dict[str, Noul | Choice | Score] = {
    "urgent": Noul(instructions="Is it urgent?"),
    "team": Choice(instructions="Which team?", criteria={"billing": "Money", "technical": None}),
    "bad": Score(instructions="How bad?", criteria=["fine", "poor", "awful"]),
}
STATE = {"ticket": "My printer is on fire."}


def check(response: SystemOneResponse) -> None:
    urgent, team, bad = (response.answers[id] for id in ("urgent", "team", "bad"))
    assert isinstance(urgent, NoulAnswer)
    assert urgent.noul == 0.9
    assert isinstance(team, ChoiceAnswer)
    assert team.choice == "billing"
    assert isinstance(bad, ScoreAnswer)
    assert bad.score == pytest.approx(1.8, abs=1e-6)
    assert response.usage.input_tokens


def test_the_sync_client_reads_every_answer_type(stack: Stack) -> None:
    with TypeSafeClient(base_url=stack.url, api_key="x") as client:
        check(client.system_one(STATE, QUESTIONS))


def test_the_async_client_reads_every_answer_type(stack: Stack) -> None:
    async def ask() -> SystemOneResponse:
        async with AsyncTypeSafeClient(base_url=stack.url, api_key="x") as client:
            return await client.system_one(STATE, QUESTIONS)

    check(asyncio.run(ask()))


def test_the_client_lists_models(stack: Stack) -> None:
    with TypeSafeClient(base_url=stack.url, api_key="x") as client:
        assert "jev-latest" in {model.name for model in client.models.list().models}


def test_errors_come_as_the_clients_own_types(stack: Stack) -> None:
    with TypeSafeClient(base_url=stack.url, api_key="x") as client:
        with pytest.raises(TypeSafeBadRequestError, match="there is no model"):
            client.system_one(STATE, QUESTIONS, model="gpt-9")
        with pytest.raises(TypeSafeUnprocessableEntityError, match="maybe"):
            client.system_one(
                STATE, QUESTIONS, extra_body={"questions": {"a": {"type": "noul", "ask_if": {"a": "maybe"}}}}
            )
