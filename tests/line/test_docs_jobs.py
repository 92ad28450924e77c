"""The examples of docs/jobs.md do what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from client.stack import Stack

TEXT = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text()


def blocks(language: str, stack: Stack) -> list[str]:
    """The examples in a language, aimed at a stack."""
    found = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    assert all("http://127.0.0.1:8011" in block for block in found)
    return [block.replace("http://127.0.0.1:8011", stack.url) for block in found]


def printed(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_the_python_example_prints_a_probability(stack: Stack) -> None:
    (example,) = blocks("python", stack)
    assert 0 <= float(printed(sys.executable, "-c", example)) <= 1


def test_the_shell_examples_wait_watch_and_cancel(stack: Stack) -> None:
    wait, watch, cancel = (printed("bash", "-c", block) for block in blocks("sh", stack))
    assert '"noul":' in wait
    assert re.findall("event: (.*)", watch) == ["queued", "started", "stage", "done"]
    assert '"object":"job"' in cancel
