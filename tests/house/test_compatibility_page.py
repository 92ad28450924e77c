"""docs/compatibility.md is what `make conformance` writes when all is kept."""

from __future__ import annotations

from bench.conformance.__main__ import PAGE, expected
from bench.conformance.page import page
from bench.conformance.rows import Row, Section


def test_the_page_is_the_one_of_a_good_run() -> None:
    """After a change to a suite: `python -m bench.conformance --expected`."""
    assert PAGE.read_text() == page(expected())


def test_what_is_not_kept_is_told_with_its_reason() -> None:
    row = Row("http.json", "200 bodies | are JSON", "fail", "MUST", "case: no JSON")
    told = page([Section("Title", "Intro.", (row,))])
    assert "| MUST | `http.json`: 200 bodies \\| are JSON | NO |" in told
    assert "* `http.json`: case: no JSON" in told
