"""`python -m bench.chaos [--short] [--seed N]`: what docs/chaos.md describes; 1 when it fails."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.chaos.run import FULL, SHORT, Plan, run
from bench.latest import keep

MOST_TOLD = 30
RECOVERY_TARGET_S = 10.0


def main() -> int:
    """Run it, print what came, and keep the recovery's time where the run was a full one."""
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__)
    parser.add_argument("--short", action="store_true", help="the form that make test runs")
    parser.add_argument("--seed", type=int, default=1, help="of the troubles and the ways of asking")
    parser.add_argument("--logs", type=Path, help="folder to keep the logs in; it must be empty or new")
    given = parser.parse_args()
    plan: Plan = SHORT if given.short else FULL
    report = run(plan, seed=given.seed, data=given.logs, say=lambda line: print(line, flush=True))
    for line in report.lines():
        print(line)
    for violation in report.violations[:MOST_TOLD]:
        print(f"BROKEN  {violation}")
    print(f"{len(report.violations)} broken promises")
    slow = False
    if not given.short:
        slow = report.recovery_p99_s is None or report.recovery_p99_s > RECOVERY_TARGET_S
        told = " ".join(f"{name} {value}" for name, value in report.figures().items())
        print(f"{told}  <= {RECOVERY_TARGET_S:g} s  {'MISSED' if slow else 'met'}")
        keep(report.figures())
    return 1 if report.violations or slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
