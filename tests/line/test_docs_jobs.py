"""The examples of docs/jobs.md do what it says."""

from __future__ import annotations

import re
import sys

from client.stack import Stack
from tests.line.doc_examples import blocks, printed


def test_the_python_example_prints_a_probability(stack: Stack) -> None:
    (example,) = blocks("jobs.md", "python", stack)
    assert 0 <= float(printed(sys.executable, "-c", example)) <= 1


def test_the_shell_examples_wait_watch_and_cancel(stack: Stack) -> None:
    wait, watch, cancel = (printed("bash", "-c", block) for block in blocks("jobs.md", "sh", stack))
    assert '"noul":' in wait
    assert re.findall("event: (.*)", watch) == ["queued", "started", "stage", "done"]
    assert '"object":"job"' in cancel
