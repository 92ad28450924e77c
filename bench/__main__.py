"""`python -m bench [NAME ...]`: measure, print each figure beside its target, keep them by name."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.figures import MEASUREMENTS, Figure

LATEST = Path(__file__).with_name("latest.json")


def main() -> int:
    """Run the measurements, or the named ones; 1 when a figure misses its target."""
    named = set(sys.argv[1:])
    unknown = named - {measure.__name__ for measure in MEASUREMENTS}
    if unknown:
        print(
            f"no measurement {', '.join(sorted(unknown))}; there are "
            f"{', '.join(measure.__name__ for measure in MEASUREMENTS)}",
            file=sys.stderr,
        )
        return 2
    figures: list[Figure] = []
    for measure in MEASUREMENTS:
        if not named or measure.__name__ in named:
            for figure in measure():
                print(_line(figure), flush=True)
                figures.append(figure)
    # Figures of other programs (bench.chaos) and of runs before stay beside these.
    kept = json.loads(LATEST.read_text()) if LATEST.exists() else {}
    kept |= {figure.name: round(figure.value, 4) for figure in figures}
    LATEST.write_text(json.dumps(kept, indent=2) + "\n")
    return 0 if all(figure.met for figure in figures) else 1


def _line(figure: Figure) -> str:
    if figure.target is None:
        target = ""
    else:
        sign = "<=" if figure.at_most else ">="
        target = f"{sign} {figure.target:g}  {'met' if figure.met else 'MISSED'}"
    return f"{figure.name:24} {figure.value:10.3f}  {target:16} {figure.what}"


if __name__ == "__main__":
    raise SystemExit(main())
