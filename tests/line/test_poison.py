"""A request that no engine bears: it fails by itself, and the engines stay in for everybody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from client.stack import Stack
from tests.line.conftest import ask_at
from tests.line.job_support import until

POISON = {"q": {"type": "noul", "instructions": "Is it poison?"}}
URGENT = {"q": {"type": "noul", "instructions": "Is it urgent?"}}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    path: Path = tmp_path_factory.mktemp("poison") / "script.json"
    rules = [{"phrase": "poison", "fault": "500"}, {"phrase": "urgent", "labels": {"yes": 0.9}}]
    path.write_text(json.dumps({"rules": rules}))
    with Stack(engines=f"script:{path}") as running:
        yield running


def engine(stack: Stack) -> dict[str, Any]:
    (found,) = httpx2.get(f"{stack.url}/v1/engines").json()["data"]
    return dict(found)


def outs(stack: Stack) -> int:
    """How often an engine went out."""
    return sum(path.read_text().count("engine out") for path in stack.logs.glob("worker-*.log"))


def test_a_poisoned_request_does_not_put_the_only_engine_out(stack: Stack) -> None:
    body = {"model": "jev-latest", "state": "x", "questions": POISON, "deadline_ms": 20_000}
    job = httpx2.post(f"{stack.url}/v1/systemone", json=body, headers={"Prefer": "respond-async"})
    assert job.status_code == 202
    # Nobody else's reads come back in between.
    until(lambda: engine(stack)["errors"] >= 7, within_s=20)
    assert outs(stack) == 0
    assert [ask_at(stack.url, questions=URGENT).status_code for _ in range(5)] == [200] * 5


def test_five_poisoned_requests_in_a_row_do(stack: Stack) -> None:
    for number in range(6):
        body = {"model": "jev-latest", "state": f"x {number}", "questions": POISON, "deadline_ms": 20_000}
        httpx2.post(f"{stack.url}/v1/systemone", json=body, headers={"Prefer": "respond-async"})
    until(lambda: outs(stack) > 0, within_s=15)
    until(lambda: engine(stack)["state"] == "in", within_s=30)
