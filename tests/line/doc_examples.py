"""The examples in a page of docs/, run as they stand but for the address of the server."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from client.stack import Stack

DOCS = Path(__file__).parents[2] / "docs"
ADDRESS = "http://127.0.0.1:8011"


def blocks(page: str, language: str, stack: Stack) -> list[str]:
    """The examples of a page in a language, aimed at a stack."""
    found = re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert all(ADDRESS in block for block in found)
    return [block.replace(ADDRESS, stack.url) for block in found]


def printed(*command: str) -> str:
    """What a command prints. Raises when it fails."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
