"""Engines that several tests read from; the others start their own."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.support import Server, start


@pytest.fixture
def engine() -> Iterator[Callable[..., Server]]:
    """Starts engines with the given arguments; they end with the test."""
    started: list[Server] = []

    def begin(*arguments: str) -> Server:
        started.append(start(*arguments))
        return started[-1]

    yield begin
    for server in started:
        _end(server)


@pytest.fixture
def scripted(engine: Callable[..., Server], tmp_path: Path) -> Callable[..., Server]:
    """Starts an engine on a script of these rules."""

    def begin(rules: list[dict[str, Any]], *arguments: str, default: str = "random") -> Server:
        file = tmp_path / "script.json"
        file.write_text(json.dumps({"rules": rules, "default": default}))
        return engine("--backend", f"script:{file}", *arguments)

    return begin


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A script engine without rules: it answers anything that is valid."""
    file = tmp_path_factory.mktemp("plain") / "script.json"
    file.write_text("{}")
    server = start("--backend", f"script:{file}", "--max-model-len", "512")
    yield server
    _end(server)


@pytest.fixture(scope="session")
def llama() -> Iterator[Server]:
    """The small model, with engine-side draws."""
    server = start("--backend", "llama", "--engine-samples", "4")
    yield server
    _end(server)


def _end(server: Server) -> None:
    server.process.terminate()
    server.process.wait(timeout=10)
    if server.process.stdout:
        server.process.stdout.close()
