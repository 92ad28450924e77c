"""The examples of docs/api.md run as they stand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from client.stack import Stack

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text()


def blocks(language: str, stack: Stack) -> list[str]:
    """The examples in a language, aimed at a stack."""
    found = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    assert all("http://127.0.0.1:8011" in block for block in found)
    return [block.replace("http://127.0.0.1:8011", stack.url) for block in found]


def printed(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_the_python_examples_print_answers(stack: Stack) -> None:
    systemone, images, decisions, chat = (
        printed(sys.executable, "-c", block) for block in blocks("python", stack)
    )
    assert systemone.splitlines() == ["0.9 billing 1.8", "['script', 'jev-latest']"]
    first, *others = images.splitlines()
    assert 0 <= float(first) <= 1
    assert [json.loads(line.replace("'", '"'))["type"] for line in others] == ["noul", "noul"]
    answers = [json.loads(line) for line in decisions.splitlines()]
    assert [answer["type"] for answer in answers] == ["predicate", "choice", "score"]
    assert chat.split()[:2] == ["0.9", "billing"]


def test_the_shell_examples_print_answers(stack: Stack) -> None:
    systemone, thought, chat = (printed("bash", "-c", block) for block in blocks("sh", stack))
    assert json.loads(systemone)["answers"]["urgent"]["noul"] == 0.9
    told = json.loads(thought)
    assert told["answers"]["urgent"]["noul"] == 0.9
    assert told["diagnostics"]["thought"].keys() == {"text", "tokens", "closed", "ms"}
    assert chat.count("data: {") > 3
    assert chat.endswith("data: [DONE]\n\n")
