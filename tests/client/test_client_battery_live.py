"""The battery, the demonstration and `canvass ask` on the script engine: real processes, real HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from client.ask import DEFAULT_MODEL
from client.battery.command import write_script
from client.battery.material import PARTS, cases
from client.battery.report import failed
from client.battery.run import run_battery
from client.battery.server import Server
from client.cli import main
from client.demo import EXAMPLES, example, grounded, run_demo
from client.errors import WrongOffsets
from client.stack import Stack

FOUND = {"number": "R-2291", "total": "$1,184.50", "vendor": "Lindqvist Paper"}
GOODS = ["paper", "envelopes", "staplers"]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack on the battery's own script."""
    file: Path = tmp_path_factory.mktemp("battery") / "script.json"
    write_script(file, PARTS)
    with Stack(engines=f"script:{file}") as running:
        yield running


def canvass(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["canvass", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_on_its_script_the_battery_hits_everything(stack: Stack) -> None:
    results = run_battery(Server(stack.url, DEFAULT_MODEL), PARTS, lambda name: None)
    assert [result.misses for result in results if result.misses] == []
    assert failed(results, strict=True) is None
    served = {result.part: result for result in results if not result.not_served}
    assert set(PARTS) - set(served) <= {"chat"}
    for part, result in served.items():
        assert result.hits == sum(len(case.asked) for case in cases(part))
        assert result.wrong_offsets == 0
    assert served["long"].windows == 4


def test_the_command_asks_a_server_and_ends_well(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert canvass(monkeypatch, "battery", stack.url, "--strict", "--kinds", "labels,mixed") == 0
    said = capfd.readouterr().out
    assert "24 of 24" in said
    assert "31 of 31" in said


def test_ask_shows_the_windows_of_a_long_text_and_writes_its_page(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (long,) = cases("long")
    decision, page = tmp_path / "long.json", tmp_path / "long.html"
    decision.write_text(json.dumps({"state": long.state, "questions": long.questions}))
    assert canvass(monkeypatch, "ask", str(decision), "--url", stack.url, "--html", str(page)) == 0
    said = capfd.readouterr().out
    assert "⟦Ingrid Solheim⟧(captain 0.98)" in said
    assert "windows 0 to 3: attempt 0 (seed 0)" in said
    assert "32 for spans, 4 windows" in said
    assert '<mark class="c0" title="captain 0.98">Ingrid Solheim</mark>' in page.read_text()


def test_the_demonstration_marks_the_invoice_and_checks_every_offset(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    rules = [{"phrase": phrase, "span": text} for phrase, text in zip(
        ("number of this invoice", "total amount", "Which company"), FOUND.values(), strict=True
    )]  # fmt: skip
    script.write_text(json.dumps({"rules": [*rules, {"phrase": "Which goods", "spans": GOODS}]}))
    out = StringIO()
    run_demo(Console(file=out, width=150), engines=f"script:{script}")
    assert "Checked: 6 pieces found" in out.getvalue()
    assert "⟦R-2291⟧(invoice_number 0.98)" in out.getvalue()
    assert "⟦staplers⟧(goods 0.98)" in out.getvalue()


def test_the_demonstration_ends_badly_on_a_wrong_offset() -> None:
    state: dict[str, Any] = example("invoice.json")["state"]
    wrong = {"type": "span", "found": True, "text": "INVOICE", "start": 1, "end": 8}
    with pytest.raises(WrongOffsets, match="'INVOICE' does not stand at 1 to 8"):
        grounded(state, {"q": wrong})
    assert grounded(state, {"q": wrong | {"start": 0, "end": 7}}) is not None
    assert grounded(state, {"q": {"type": "noul", "noul": 0.5}}) is None


def test_the_invoice_asks_for_three_spans_and_a_list() -> None:
    assert "invoice.json" in EXAMPLES
    types = [question["type"] for question in example("invoice.json")["questions"].values()]
    assert (types.count("span"), types.count("spans")) == (3, 1)
