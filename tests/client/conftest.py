"""Servers for the tests of the client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.client.recorded import Asked, Recorded, Reply, Serve, in_turn, serving


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve replies in their order, the last one for good; or by a function."""
    with ExitStack() as servers:

        def started(*replies: Reply | None, by: Callable[[Asked], Reply | None] | None = None) -> Recorded:
            return servers.enter_context(serving(by or in_turn(*replies)))

        yield started
