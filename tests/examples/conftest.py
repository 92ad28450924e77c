"""One stack on the small model for all examples."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from client.stack import Stack
from client.up import PATIENT


@pytest.fixture(scope="session")
def embedded() -> Iterator[Stack]:
    """Canvass with its embedded model, as the examples start it for themselves."""
    with Stack(env=PATIENT) as running:
        yield running
