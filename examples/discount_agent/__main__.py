"""`python -m examples.discount_agent MESSAGE --user ID`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from client import Canvass, CanvassError
from client.errors import StackError
from examples.discount_agent.agent import NoOffer, answer
from examples.discount_agent.report import lines_of
from examples.discount_agent.runs import Run
from examples.discount_agent.seed import seed
from examples.discount_agent.stores import Stores, UnknownCustomer
from examples.embedded import server_url

FOLDER = Path(".canvass") / "discount_agent"


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer one message; the exit status. The server is CANVASS_URL's, or one that is started for it."""
    parser = argparse.ArgumentParser(prog="python -m examples.discount_agent", description=__doc__)
    parser.add_argument("message", help="what the customer wrote")
    parser.add_argument("--user", type=int, required=True, help="the customer's number: 17, 23 or 42")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help=f"where the stores and runs are kept ({FOLDER})"
    )
    given = parser.parse_args(arguments)
    seed(given.folder, datetime.now(UTC).date())
    run = Run(given.folder / "runs", given.user)
    try:
        with Stores(given.folder) as stores, server_url() as url, Canvass(url) as canvass:
            for line in lines_of(answer(canvass, stores, run, given.message, given.user)):
                print(line)
    except (UnknownCustomer, NoOffer, CanvassError, StackError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        # Where there was no server to ask, nothing began.
        if run.file.exists():
            print(f"Kept      {run.file} ({len(run.lines())} lines)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
