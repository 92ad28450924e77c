"""The examples of docs/reasoning.md run as they stand."""

from __future__ import annotations

import json
import sys

import pytest

from client.stack import Stack
from tests.line.doc_examples import blocks, printed


@pytest.fixture(scope="module")
def python(stack: Stack) -> list[str]:
    return [printed(sys.executable, "-c", block) for block in blocks("reasoning.md", "python", stack)]


@pytest.fixture(scope="module")
def shell(stack: Stack) -> list[dict[str, object]]:
    return [json.loads(printed("bash", "-c", block)) for block in blocks("reasoning.md", "sh", stack)]


def test_a_model_is_decided(python: list[str]) -> None:
    assert python[0].splitlines() == [
        "billing printer 3 True",
        "{'billing': 0.777778, 'technical': 0.222222} 2.8",
        "3 generated",
    ]


def test_a_conversation_and_many_states_are_decided(python: list[str]) -> None:
    first, *others = python[1].splitlines()
    assert first == "True 0.9"
    assert sorted(others) == sorted(f"{number} True" for number in range(20))


def test_a_decision_is_submitted_and_waited_for(python: list[str]) -> None:
    assert python[2] == "True succeeded True\n"


def test_an_audit_has_the_reads_and_the_checks(python: list[str]) -> None:
    heading, *others = python[3].splitlines()
    assert heading.startswith("decision")
    assert others == ["read ['/bad']", "read ['/voucher']", "check no voucher for little"]


def test_a_plan_is_compiled_without_running(shell: list[dict[str, object]]) -> None:
    assert shell[0]["stages"] == [["/urgent"], ["/reply"]]
    assert shell[0]["reads"] == {"least": 2, "all": 2, "by_question": {"/urgent": 1, "/reply": 1}}


def test_a_schema_is_answered_with_a_value(shell: list[dict[str, object]]) -> None:
    assert shell[1]["value"] == {"urgent": True, "reply": "Help is on its way."}
    assert shell[1]["valid"] is True
    assert shell[1]["errors"] == []


def test_an_object_question_stands_beside_others(shell: list[dict[str, object]]) -> None:
    answers = shell[2]["answers"]
    assert isinstance(answers, dict)
    assert answers["reply"]["valid"] is True


def test_the_plan_that_is_shown_is_the_one_that_is_made(stack: Stack) -> None:
    """After a change: put what the command prints into the page."""
    (block,) = blocks("reasoning.md", "console", stack)
    command, _, shown = block.removeprefix("$ canvass ").partition("\n")
    told = printed(sys.executable, "-m", "client", *command.split())
    assert _lines(told) == _lines(shown)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]
