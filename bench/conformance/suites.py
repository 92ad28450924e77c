"""The suites of tests that hold a front door to what its clients rely on. A test's name is what it holds."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from bench.conformance.rows import Outcome, Row, Section

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests about one kind of client: files below tests/line/, or `FILE::TEST` for one test of a file."""

    title: str
    intro: str
    tests: tuple[str, ...]


SUITES = (
    Suite(
        "System One: the official client",
        "`typesafe-sdk`, sync and async, with nothing changed but its base URL.",
        (
            "test_sdk.py",
            "test_repeats.py::test_over_the_sync_limit_a_retry_of_the_sdk_finds_its_running_decision",
        ),
    ),
    Suite(
        "OpenAI Decisions, structured chat and tool calls: the official client",
        "`openai`, sync and async.",
        ("test_decisions_door.py", "test_chat_door.py", "test_tool_calls.py"),
    ),
    Suite(
        "Every door: plain HTTP",
        "What no client library shows.",
        (
            "test_systemone.py",
            "test_wire_property.py",
            "test_neighbours.py",
            "test_images_and_thoughts.py",
            "test_limits.py",
            "test_passthrough.py",
            "test_pages.py",
        ),
    ),
)


def expected(suite: Suite) -> Section:
    """The section of a suite whose tests all pass."""
    outcomes: dict[tuple[str, str], Outcome] = dict.fromkeys(_names(suite), "pass")
    return _section(suite, outcomes)


def judged(suite: Suite) -> Section:
    """The section of a suite, its tests run. They start their own stacks."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        nodes = [f"tests/line/{test}" for test in suite.tests]
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *nodes]
        subprocess.run(command, cwd=ROOT, check=False)
        cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
        outcomes = _outcomes(cases)
    return _section(suite, {name: outcomes.get(name, "untested") for name in _names(suite)})


def _section(suite: Suite, outcomes: dict[tuple[str, str], Outcome]) -> Section:
    rows = tuple(
        Row(f"{file}::{name}", name.removeprefix("test_").replace("_", " "), outcome)
        for (file, name), outcome in outcomes.items()
    )
    return Section(suite.title, suite.intro, rows)


def _names(suite: Suite) -> list[tuple[str, str]]:
    """File and name of each test, in order."""
    found = []
    for test in suite.tests:
        file, _, only = test.partition("::")
        names = [only] if only else _tests_in(ROOT / "tests/line" / file)
        found += [(file, name) for name in names]
    return found


def _tests_in(file: Path) -> list[str]:
    nodes = ast.parse(file.read_text()).body
    return [
        node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def _outcomes(cases: Iterable[ElementTree.Element]) -> dict[tuple[str, str], Outcome]:
    """By file and test: passed when each of its cases did."""
    found: dict[tuple[str, str], Outcome] = {}
    for case in cases:
        file = case.attrib["classname"].rpartition(".")[2] + ".py"
        place = (file, case.attrib["name"].partition("[")[0])
        kinds = {child.tag for child in case}
        outcome: Outcome = (
            "fail" if kinds & {"failure", "error"} else "untested" if "skipped" in kinds else "pass"
        )
        if found.get(place, "pass") == "pass":
            found[place] = outcome
    return found
