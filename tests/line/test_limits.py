"""Limits of what one decision may take: each refusal names the limit and the value."""

from __future__ import annotations

import redis

from client.stack import Stack
from tests.line.conftest import ask_at

URGENT = {"type": "noul", "instructions": "Is it urgent?"}


def test_a_decision_of_too_many_reads_is_refused_with_the_limit(script: str) -> None:
    questions = {f"q{number}": URGENT for number in range(4)}
    with Stack(engines=script, env={"CANVASS_MOST_READS": "10"}) as stack:
        assert ask_at(stack.url, questions=questions, samples=2).status_code == 200
        response = ask_at(stack.url, questions=questions, samples=3)
    assert response.status_code == 422
    (entry,) = response.json()["detail"]
    assert entry["loc"] == ["body", "questions"]
    assert "12 reads" in entry["msg"]
    assert "CANVASS_MOST_READS" in entry["msg"]


def test_401_questions_are_too_many(stack: Stack) -> None:
    response = ask_at(stack.url, questions={f"q{number}": URGENT for number in range(401)})
    assert response.status_code == 422
    assert response.json()["detail"][0]["type"] == "too_long"


def test_every_key_of_ours_expires(stack: Stack) -> None:
    assert ask_at(stack.url, questions={"urgent": URGENT}).status_code == 200
    with redis.Redis.from_url(stack.redis_url) as connection:
        names = [
            name for name in connection.scan_iter("canvass:*") if not name.startswith(b"canvass:celery:")
        ]
        assert names
        assert [name for name in names if connection.ttl(name) < 0] == []
