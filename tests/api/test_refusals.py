"""Refusals: told in JSON's words, and never more of them than one reads."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from api.doors import systemone
from api.doors.openai_errors import openai_error
from api.problems import problem
from api.refusals import MOST_ENTRIES, Refusal, refusal_of
from planner.dialects.systemone_request import SystemOneRequest

NOUL = {"type": "noul"}


def refused(**body: Any) -> Refusal:
    """The refusal of a System One body."""
    with pytest.raises(ValidationError) as error:
        SystemOneRequest.model_validate({"model": "m", "state": "x", "questions": {"q": NOUL}, **body})
    return refusal_of(error.value)


def told(refusal: Refusal) -> list[dict[str, Any]]:
    """The list that System One's clients read."""
    response = systemone.DOOR.refuse(refusal)
    assert response.status_code == 422
    entries: list[dict[str, Any]] = orjson.loads(response.body)["detail"]
    return entries


def test_a_hundred_wrong_fields_are_told_and_the_others_counted() -> None:
    refusal = refused(questions={f"q{number}": 7 for number in range(300)})
    entries = told(refusal)
    assert len(entries) == MOST_ENTRIES + 1
    assert entries[-1]["msg"] == "200 more fields are wrong"
    assert orjson.loads(problem(refusal).body)["errors"][-1]["detail"] == "200 more fields are wrong"
    assert orjson.loads(openai_error(refusal).body)["error"]["message"].endswith("; and 295 more")


def test_a_few_wrong_fields_are_all_told() -> None:
    entries = told(refused(questions={f"q{number}": 7 for number in range(3)}))
    assert [entry["loc"][2] for entry in entries] == ["q0", "q1", "q2"]


MANY: dict[str, dict[str, Any]] = {
    "depends_on": {"questions": {"q": {**NOUL, "depends_on": [0] * 400_000}}},
    "depends_on of all": {"questions": {f"q{n}": {**NOUL, "depends_on": [0] * 400} for n in range(400)}},
    "ask_if": {"questions": {"q": {**NOUL, "ask_if": {str(n): {} for n in range(400_000)}}}},
    "ask_if of all": {
        "questions": {f"q{n}": {**NOUL, "ask_if": {str(m): {} for m in range(400)}} for n in range(400)}
    },
    "ask": {"ask": [0] * 400_000},
    "questions": {"questions": {str(n): 7 for n in range(400_000)}},
    "options": {"questions": {"q": {"type": "choice", "criteria": {str(n): 7 for n in range(400_000)}}}},
    "options of all": {
        "questions": {
            f"q{n}": {"type": "choice", "criteria": {str(m): 7 for m in range(255)}} for n in range(400)
        }
    },
    "levels": {"questions": {"q": {"type": "score", "criteria": [7] * 400_000}}},
    "events": {"webhook_events_filter": [7] * 400_000},
}


@pytest.mark.parametrize("name", MANY)
def test_very_many_wrong_values_cost_little(name: str) -> None:
    since = time.perf_counter()
    response = systemone.DOOR.refuse(refused(**MANY[name]))
    assert len(response.body) < 500_000
    # It took 3 to 12 seconds.
    assert time.perf_counter() - since < 2


def test_a_list_that_is_too_long_names_the_limit_and_its_length() -> None:
    (entry,) = told(refused(questions={"q": {**NOUL, "depends_on": ["a"] * 401}}))
    assert (entry["msg"], entry["type"]) == ("List should have at most 400 items, not 401", "too_long")
    (entry,) = told(refused(questions={f"q{number}": NOUL for number in range(401)}))
    assert (entry["msg"], entry["type"]) == ("Object should have at most 400 items, not 401", "too_long")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "list": ({"questions": {"q": {**NOUL, "depends_on": "a"}}}, "Input should be a list"),
    "object": ({"questions": {"q": {**NOUL, "ask_if": 1}}}, "Input should be an object"),
    "criteria": ({"questions": {"q": {**NOUL, "criteria": 3}}}, "Input should be an object"),
    "empty": ({"ask": []}, "List should have at least 1 item after validation, not 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_told_in_jsons_words(name: str) -> None:
    body, message = WRONG[name]
    assert [entry["msg"] for entry in told(refused(**body))] == [message]


def test_a_refused_value_may_hold_whole_numbers_of_any_size() -> None:
    (entry,) = told(refused(samples=2**70))
    assert entry["input"] == pytest.approx(2**70)


@pytest.mark.parametrize("refuse", [systemone.DOOR.refuse, openai_error])
def test_when_to_come_back_is_told_in_seconds_and_milliseconds(refuse: Any) -> None:
    headers = refuse(Refusal(503, "x", "y", retry_after_s=1.25, headers={"a": "b"})).headers
    assert (headers["retry-after"], headers["retry-after-ms"], headers["a"]) == ("2", "1250", "b")
