"""Fail-points: what arms them, when they kill, and that the table names every place that has one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from workers.failpoints import POINTS, VARIABLE, parse

ROOT = Path(__file__).parents[2]
FLOORS = ("planner", "workers", "api")
REACHING = """
from workers.failpoints import reach
for time in range(1, 6):
    print(time, flush=True)
    reach("read")
"""


def reached(armed: str) -> tuple[int, int]:
    """How often a process came to a point, and how it ended."""
    ended = subprocess.run(
        [sys.executable, "-c", REACHING], env={VARIABLE: armed}, cwd=ROOT, capture_output=True, text=True
    )
    return len(ended.stdout.split()), ended.returncode


@pytest.mark.parametrize(
    ("armed", "times", "status"),
    [("", 5, 0), ("read", 1, -9), ("read:3", 3, -9), ("read:6", 5, 0), ("read:1.0", 1, -9), ("kept", 5, 0)],
)
def test_a_process_dies_the_time_it_is_told(armed: str, times: int, status: int) -> None:
    assert reached(armed) == (times, status)


def test_several_points_can_be_armed_at_once() -> None:
    fuses = parse("claimed:7, kept:0.25")
    assert fuses["claimed"].left == 7
    assert fuses["kept"].probability == 0.25


@pytest.mark.parametrize("wrong", ["nowhere", "read:0", "read:1.5", "read:0.0", "read:x", "read:-1"])
def test_what_arms_nothing_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"fail-point|how many times|invalid literal"):
        parse(wrong)


def test_the_table_names_every_point_with_the_file_that_reaches_it() -> None:
    found = {
        (name, str(path.relative_to(ROOT)))
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*.py")
        for name in re.findall(r'^\s*reach\("([^"]+)"\)', path.read_text(), re.MULTILINE)
    }
    assert found == {(name, file) for name, (file, _) in POINTS.items()}
