"""Canvass over HTTP: the SDK, the `canvass` command, and the stack that tests and benchmarks start.

    from client import Canvass

    with Canvass() as canvass:
        decision = canvass.decide(Ticket, "My printer is on fire.")
        print(decision.value, decision.of("urgent").confidence)

The SDK's names are listed in `client.sdk`. They are loaded when one of them is first asked for, so that the
command starts without them.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client.sdk import *  # noqa: F403 - exactly the names that client.sdk lists
else:

    def __getattr__(name: str) -> object:
        # `from client import stack` asks here, too, before it imports the module.
        if find_spec(f"client.{name}") is None:
            sdk = import_module("client.sdk")
            if name == "__all__" or name in sdk.__all__:
                return getattr(sdk, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
