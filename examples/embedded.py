"""A server for the examples: the one that CANVASS_URL names, or one of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from client.stack import Stack
from client.up import PATIENT


@contextmanager
def server_url() -> Iterator[str]:
    """The URL of a Canvass. One that is started here, with the embedded model, ends with the block."""
    if url := os.environ.get("CANVASS_URL"):
        yield url
        return
    print("Starting Canvass with its embedded model, SmolLM2 of 135 million parameters ...", file=sys.stderr)
    with Stack(env=PATIENT) as stack:
        yield stack.url
