"""The chaos run's own eyes: it sees what is wrong, and has nothing to say against what is right."""

from __future__ import annotations

from typing import Any

import pytest

from bench.chaos.ledger import Ledger
from bench.chaos.workload import KINDS, body_of, kind_of, state_of, wrong_answers

ID = "dec_1"
RIGHT: dict[str, Any] = {
    "urgent": {"type": "noul", "noul": 0.39},
    "team": {"type": "choice", "choice": "support", "probabilities": {"support": 0.7}},
}
"""The answers to number 7, asked as `labels`."""


def ledger() -> Ledger:
    """One that knows a decision, which was answered right."""
    made = Ledger()
    made.accepted(ID, 7, "labels")
    made.answer(ID, {"answers": RIGHT})
    assert made.violations == []
    return made


def test_every_kind_is_asked_and_names_its_number() -> None:
    assert {kind_of(number) for number in range(200)} == set(KINDS)
    assert "Letter 7 " in state_of(7)
    assert body_of(7, "wide")["metadata"] == {"number": 7, "kind": "wide"}


@pytest.mark.parametrize(
    "wrong",
    [
        {**RIGHT, "urgent": {"noul": 0.44}},
        {**RIGHT, "team": {**RIGHT["team"], "choice": "legal"}},
        {**RIGHT, "team": None},
        {"urgent": RIGHT["urgent"]},
    ],
)
def test_a_wrong_answer_is_seen(wrong: dict[str, Any]) -> None:
    assert wrong_answers(7, "labels", RIGHT) == []
    assert wrong_answers(7, "labels", wrong)


def test_the_answer_to_a_neighbour_is_wrong() -> None:
    assert all(wrong_answers(number, "labels", RIGHT) for number in range(100) if number != 7)


def test_a_second_ending_is_seen() -> None:
    seen = ledger()
    seen.job({"id": ID, "status": "failed", "error": {"code": "expired"}})
    seen.judge_endings()
    assert len(seen.violations) == 1


def test_a_webhook_that_never_came_or_came_under_two_ids_is_seen() -> None:
    seen = ledger()
    seen.hooked.add(ID)
    seen.judge_hooks([ID])
    assert seen.violations == [f"{ID}: its webhook never came"]
    seen = ledger()
    seen.hooked.add(ID)
    for event in ("evt_1", "evt_1"):
        seen.hook(ID, "decision.completed", event, b"{}")
    seen.judge_hooks([ID])
    assert seen.violations == []
    seen.hook(ID, "decision.completed", "evt_2", b"{}")
    seen.judge_hooks([ID])
    assert len(seen.violations) == 1


def test_an_id_that_stands_for_two_numbers_is_seen() -> None:
    seen = ledger()
    seen.accepted(ID, 8, "labels")
    assert len(seen.violations) == 1
