"""`python -m bench.conformance`: ask everything, print it, write docs/compatibility.md.

1 when something is not kept for no stated reason. With `--expected` nothing is asked, and the page is
written as it will be when all is kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.conformance import jev, suites
from bench.conformance.page import page
from bench.conformance.rows import WORDS, Section
from client.stack import Stack

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"


def expected() -> list[Section]:
    """Every section as it is when all is kept but what there are reasons for."""
    return [jev.section(jev.expected()), *map(suites.expected, suites.SUITES)]


def judged() -> list[Section]:
    """Every section as it is."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        # Without rules, the engine's answers follow from the prompt alone.
        script.write_text(json.dumps({"rules": []}))
        with Stack(engines=f"script:{script}", env=jev.ENV) as stack:
            rows = jev.judged(jev.reports(stack))
    return [jev.section(rows), *map(suites.judged, suites.SUITES)]


def main(arguments: Sequence[str]) -> int:
    """Ask, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.conformance", description=__doc__)
    parser.add_argument("--expected", action="store_true", help="ask nothing: write the page of a good run")
    sections = expected() if parser.parse_args(arguments).expected else judged()
    for section in sections:
        print(f"\n{section.title}")
        for row in section.rows:
            print(f"  {WORDS[row.outcome]:14} {row.level:7} {row.title}")
            if row.note:
                print(f"                         {row.note}")
    PAGE.write_text(page(sections))
    bad = [row for section in sections for row in section.rows if not row.good]
    count = sum(len(section.rows) for section in sections)
    print(f"\n{count - len(bad)} of {count} are kept or have a stated reason; written to {PAGE}")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
