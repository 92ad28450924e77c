"""Neighbours do not leak: on the embedded model, an answer hangs on its question and the state alone."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import httpx2
import pytest

from client.stack import Stack

STATES: tuple[Any, ...] = (
    "I was charged twice for March. Please refund one of the payments today.",
    {"ticket": 7, "text": "The printer on the third floor smokes.", "tags": ["hardware", "office"]},
    ["Bonjour", {"note": "Le colis n'est jamais arrivé."}],
)
SUBJECTS = ("the customer asks for money", "a machine is broken", "the text is in English", "it is urgent")
OPTIONS = ("billing", "technical", "sales", "délivery", "nobody", "the boss")
DECISIONS = 4


@pytest.fixture(scope="module")
def embedded() -> Iterator[Stack]:
    """The small model itself; a client that waits as long as two slow cores take."""
    with Stack(env={"CANVASS_SYNC_LIMIT_S": "60"}) as running:
        yield running


def questions_of(dice: Random) -> list[dict[str, Any]]:
    """Three to four questions of every type, in any order."""
    names = dice.sample(OPTIONS, dice.randint(2, 5))
    criteria = {name: dice.choice((None, f"About {name}")) for name in names}
    levels = ["fine", "poor", "bad"][: dice.randint(2, 3)]
    asked: list[dict[str, Any]] = [
        {"type": "noul", "instructions": f"Is it so that {dice.choice(SUBJECTS)}?"},
        {"type": "noul", "criteria": {dice.choice(("true", "false")): dice.choice(SUBJECTS)}},
        {"type": "choice", "instructions": "Who answers?", "criteria": criteria},
        {"type": "score", "instructions": "How bad?", "criteria": levels},
    ]
    return dice.sample(asked, dice.randint(3, 4))


def answers(stack: Stack, state: Any, questions: dict[str, Any]) -> dict[str, Any]:
    body = {"model": "jev-latest", "state": state, "questions": questions}
    response = httpx2.post(f"{stack.url}/v1/systemone", json=body, timeout=60)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["answers"]
    return found


@pytest.mark.parametrize("seed", range(DECISIONS))
def test_an_answer_is_the_same_alone_in_company_in_another_order_and_by_another_name(
    embedded: Stack, seed: int
) -> None:
    dice = Random(seed)
    state, asked = dice.choice(STATES), questions_of(dice)
    asked_first = {f"q{place}": one for place, one in enumerate(asked)}
    together = answers(embedded, state, asked_first)
    turned = {f"q{place}": asked[place] for place in reversed(range(len(asked)))}
    renamed = {f"{dice.random()} répondu": one for one in asked}
    expected = [together[f"q{place}"] for place in range(len(asked))]
    assert len({repr(one) for one in expected}) > 1, "answers that are all alike would show nothing"
    assert answers(embedded, state, turned) == together
    assert list(answers(embedded, state, renamed).values()) == expected
    for place in dice.sample(range(len(asked)), 2):
        assert list(answers(embedded, state, {"alone": asked[place]}).values()) == [expected[place]]
