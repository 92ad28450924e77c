"""Files: named for what they hold, short enough to hold one idea, and free of this machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("planner", "workers", "api", "engine", "client", "examples", "tests", "bench")
NAME = re.compile(r"(__)?[a-z][a-z0-9_]*(__)?\.py")
EMPTY_NAMES = {"utils.py", "helpers.py", "misc.py", "common.py", "base.py"}
MOST_LINES = 500

FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def test_file_names_are_plain_and_say_something() -> None:
    assert [path for path in FILES if not NAME.fullmatch(path.name) or path.name in EMPTY_NAMES] == []


def test_no_file_is_too_long_for_one_idea() -> None:
    assert {str(path): n for path in FILES if (n := len(path.read_text().splitlines())) > MOST_LINES} == {}


def test_test_files_have_names_of_their_own() -> None:
    """Two test modules of one name shadow each other in a report."""
    names = [path.name for path in FILES if path.name.startswith("test_")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize("file", ["requirements.lock", "pyproject.toml", "Makefile", "Dockerfile"])
def test_no_registry_is_named(file: str) -> None:
    text = (ROOT / file).read_text()
    assert "://" not in text.replace("http://127.0.0.1", "")
    assert "--index-url" not in text


def test_the_lock_pins_every_requirement_exactly() -> None:
    lines = (ROOT / "requirements.lock").read_text().split()
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.\-]+==[A-Za-z0-9.!+]+", line)] == []
