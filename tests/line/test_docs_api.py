"""The examples of docs/api.md run as they stand."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from client.stack import Stack
from tests.line.doc_examples import blocks, printed


def test_the_python_examples_print_answers(stack: Stack) -> None:
    systemone, images, decisions, chat = (
        printed(sys.executable, "-c", block) for block in blocks("api.md", "python", stack)
    )
    assert systemone.splitlines() == ["0.9 billing 1.8", "['script', 'jev-latest']"]
    first, *others = images.splitlines()
    assert 0 <= float(first) <= 1
    assert [json.loads(line.replace("'", '"'))["type"] for line in others] == ["noul", "noul"]
    answers = [json.loads(line) for line in decisions.splitlines()]
    assert [answer["type"] for answer in answers] == ["predicate", "choice", "score"]
    assert chat.split()[:2] == ["0.9", "billing"]


def test_the_shell_examples_print_answers(stack: Stack) -> None:
    systemone, thought, chat, call = (printed("bash", "-c", block) for block in blocks("api.md", "sh", stack))
    assert json.loads(systemone)["answers"]["urgent"]["noul"] == 0.9
    told = json.loads(thought)
    assert told["answers"]["urgent"]["noul"] == 0.9
    assert told["diagnostics"]["thought"].keys() == {"text", "tokens", "closed", "ms"}
    assert chat.count("data: {") > 3
    assert chat.endswith("data: [DONE]\n\n")
    (made,) = json.loads(call)["choices"][0]["message"]["tool_calls"]
    assert made["function"]["name"] == "get_weather"


@pytest.fixture(scope="module")
def ordinary() -> Iterator[Stack]:
    """The stack that `make up` starts: the embedded model."""
    with Stack() as running:
        yield running


@pytest.mark.parametrize("place", range(4))
def test_the_python_examples_run_on_the_embedded_model_too(ordinary: Stack, place: int) -> None:
    # Images, which it takes and does not see, among them.
    assert printed(sys.executable, "-c", blocks("api.md", "python", ordinary)[place])
