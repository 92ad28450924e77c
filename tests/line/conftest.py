"""Real stacks for the tests of the whole line: Redis, engine, workers and API as processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from client.stack import Stack

RULES: dict[str, Any] = {
    "rules": [
        {"phrase": "Is it urgent", "labels": {"yes": 0.9}},
        {"phrase": "Is it calm", "labels": {"yes": 0.2}},
        {"phrase": "Which team", "labels": {"billing": 0.7, "technical": 0.2}},
        {"phrase": "How bad", "labels": {"3": 0.8, "2": 0.2}},
        {"phrase": "Which of many", "labels": {"option 200": 0.6, "option 3": 0.3}},
        {"phrase": "Is it open", "draws": [{"yes": 0.6}, {"yes": 0.4}]},
        {"phrase": "The device it is about", "span": "printer"},
        {"phrase": "One sentence to the customer", "object": '"Help is on its way."'},
        {"phrase": "A voucher in euros", "object": "20"},
        {"id": "urgent", "labels": {"yes": 0.9}},
        {"id": "team", "labels": {"billing": 0.7, "technical": 0.2}},
    ]
}

SLOW_ENGINE = ("--latency", "400,0,1000", "--max-model-len", "4096")


@pytest.fixture(scope="session")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the script engine answers."""
    path: Path = tmp_path_factory.mktemp("script") / "script.json"
    path.write_text(json.dumps(RULES))
    return f"script:{path}"


@pytest.fixture(scope="session")
def stack(script: str) -> Iterator[Stack]:
    """One stack for all tests that leave it as they found it."""
    with Stack(engines=script, engine_args=("--max-model-len", "8192")) as running:
        yield running


@pytest.fixture(scope="session")
def slow(script: str) -> Iterator[Stack]:
    """A slow stack for jobs, two of everything: a read takes 0.4 s, a worker makes 8 of a decision at once.

    Tests leave its processes running as they found them.
    """
    env = {
        "CANVASS_SYNC_LIMIT_S": "1",
        "CANVASS_SHARD_READS": "32",
        "CANVASS_DECISION_READS_IN_FLIGHT": "8",
        "CANVASS_WORKER_THREADS": "4",
        "CANVASS_LEASE_S": "3",
    }
    with Stack(engines=script, engine_args=SLOW_ENGINE, workers=2, apis=2, env=env) as running:
        yield running


Ask = Callable[..., httpx2.Response]


def ask_at(url: str, **body: Any) -> httpx2.Response:
    """Post a System One body, with the model and a state unless it has its own."""
    whole = {"model": "jev-latest", "state": "My printer is on fire.", **body}
    return httpx2.post(f"{url}/v1/systemone", json=whole, timeout=60)


@pytest.fixture
def ask(stack: Stack) -> Ask:
    """Ask the shared stack."""

    def asking(**body: Any) -> httpx2.Response:
        return ask_at(stack.url, **body)

    return asking
