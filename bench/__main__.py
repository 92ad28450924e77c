"""`python -m bench [NAME ...]`: measure, print each figure beside its target, keep them by name."""

from __future__ import annotations

import sys

from bench.figures import MEASUREMENTS, Figure
from bench.latest import keep


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
    keep({figure.name: figure.value for figure in figures})
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
