"""A whole stack on the script engine, and the command that holds one: real processes, real HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from client.ask import completed, parse_answer
from client.demo import EXAMPLES, example
from client.errors import ChildEnded
from client.http import decide
from client.process import wait_until
from client.redis_server import lock_folder
from client.stack import Stack
from client.up import passed_settings

ROOT = Path(__file__).parents[2]
DECISION = {
    "state": "the sky is blue",
    "questions": {"blue": {"type": "noul", "instructions": "Is it true?"}},
}


@pytest.fixture
def script(tmp_path: Path) -> str:
    file = tmp_path / "script.json"
    file.write_text(json.dumps({"rules": [{"phrase": "true", "labels": {"yes": 0.9}}]}))
    return f"script:{file}"


def answered(url: str) -> float:
    """The probability of yes that a decision comes back with."""
    body = parse_answer(decide(url, completed(DECISION, diagnostics=True)))
    assert body is not None
    return float(body["answers"]["blue"]["noul"])


def test_a_stack_serves_survives_a_killed_worker_and_leaves_nothing(script: str) -> None:
    with Stack(engines=script, workers=1) as stack:
        folder = stack.logs.parent
        assert answered(stack.url) == pytest.approx(0.9, abs=0.05)
        first = stack.workers[0]
        stack.add_worker()
        first.kill()
        assert answered(stack.url) > 0.5
        engine = stack.engines[0]
        address = stack.engine_urls[0]
        engine.kill()
        stack.restart(engine)
        assert stack.engine_urls == [address]
        assert answered(stack.url) > 0.5
        stack.check()
        pids = [child.pid for child in stack.children]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not folder.exists()


def test_up_says_when_it_is_ready_and_ends_everything_on_sigterm(script: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "client", "up", "--engines", script, "--port", "0", "--quiet"]
    (tmp_path / "index.html").write_text("home")
    up = subprocess.Popen(
        [*command, "--data", str(tmp_path / "data"), "--pages", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert up.stdout is not None
    try:
        ready = re.fullmatch(r"Canvass is ready: (http://127\.0\.0\.1:\d+)\n", up.stdout.readline())
        assert ready is not None
        assert answered(ready.group(1)) > 0.5
        assert httpx2.get(ready.group(1)).text == "home"
    finally:
        up.send_signal(signal.SIGTERM)
        rest, _ = up.communicate(timeout=30)
    assert up.returncode == 0, rest
    # Redis holds the lock as long as it lives, so a free lock says that it is gone.
    os.close(lock_folder(tmp_path / "data"))


def test_a_stack_whose_engine_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{")
    stack = Stack(engines=f"script:{wrong}")
    with pytest.raises(ChildEnded, match=r"engine-1 ended with status 1(.|\n)*wrong\.json"):
        stack.start()
    wait_until(lambda: None if any(child.running for child in stack.children) else True,
               timeout_s=5, what=lambda: "children left")  # fmt: skip


def test_up_passes_settings_on_but_not_what_it_decides_itself() -> None:
    environment = {"CANVASS_SYNC_LIMIT_S": "3", "CANVASS_PORT": "1", "CANVASS_TOKENIZER": "t", "HOME": "/h"}
    assert passed_settings(environment, stand_in=True) == {"CANVASS_SYNC_LIMIT_S": "3"}
    assert passed_settings(environment, stand_in=False)["CANVASS_TOKENIZER"] == "t"


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_a_decision(name: str) -> None:
    body = example(name)
    assert body["state"]
    assert body["questions"]
