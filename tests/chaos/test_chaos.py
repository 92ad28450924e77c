"""The short form of `python -m bench.chaos`: every trouble and every fail-point once (docs/chaos.md)."""

from __future__ import annotations

import pytest

from bench.chaos.run import SHORT, run
from bench.chaos.troubles import TROUBLES
from workers.failpoints import POINTS

RECOVERED_WITHIN_S = 30.0
"""Generous: so short a run kills workers faster than a busy machine starts them. `make chaos` measures."""


@pytest.mark.timeout(240)
def test_no_decision_is_lost_or_wrong_while_everything_is_killed_in_turn() -> None:
    report = run(SHORT, seed=1, say=lambda line: None)
    assert report.violations == [], "\n".join(report.lines())
    assert sum(report.kept.statuses.values()) >= SHORT.decisions
    assert set(report.troubles) >= set(TROUBLES)
    assert set(report.reached) == set(POINTS)
    assert report.recovery_p99_s is not None
    assert report.recovery_p99_s < RECOVERED_WITHIN_S
