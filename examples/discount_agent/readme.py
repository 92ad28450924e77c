"""`python -m examples.discount_agent.readme`: put what the commands of README.md print into it.

Each runs as a reader would run it, in a folder of its own, with a Canvass of its own unless CANVASS_URL names
one.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

README = Path(__file__).with_name("README.md")
ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(r"```console\n\$ (python .*)\n((?:.*\n)*?)```\n")


def shown(text: str) -> list[tuple[str, str]]:
    """The commands of a page, each with the output that is shown under it."""
    return [(command, output) for command, output in _BLOCK.findall(text)]


def retold(text: str, run: Callable[[str], str]) -> str:
    """A page with the output of its commands as `run` gives it now."""
    return _BLOCK.sub(lambda found: f"```console\n$ {found[1]}\n{run(found[1])}```\n", text)


def output_of(command: str) -> str:
    """What a command prints, errors included, whatever its exit status."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory(prefix="canvass-readme-") as folder:
        done = subprocess.run(
            [sys.executable, *shlex.split(command)[1:]],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return done.stdout


if __name__ == "__main__":
    README.write_text(retold(README.read_text(), output_of))
