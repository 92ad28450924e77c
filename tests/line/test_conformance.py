"""jevcompat on a real stack: every MUST, and every SHOULD but those that there are reasons for."""

from __future__ import annotations

from pathlib import Path

from jevcompat import spec

from bench.conformance import jev
from client.stack import Stack


def test_every_requirement_is_kept_but_the_stated_ones(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"rules": []}')
    with Stack(engines=f"script:{script}", env=jev.ENV) as stack:
        rows = jev.judged(jev.reports(stack))
    assert rows == jev.expected()


def test_reasons_are_given_for_no_must() -> None:
    assert {spec.REQUIREMENTS[id].level for id in jev.REASONS} == {"SHOULD"}
