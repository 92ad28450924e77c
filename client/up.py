"""`canvass up`: a stack in the foreground, until it is told to stop or a child ends by itself."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeVar

from rich.console import Console

from client.errors import StopRequested
from client.stack import Stack

PATIENT = {"CANVASS_SYNC_LIMIT_S": "600", "CANVASS_READ_TIMEOUT_S": "600"}
"""Settings of a stack that one user waits for: on two slow cores a list of a long text takes a minute."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SECRET_FILE = "webhook-secret"
_CHECK_S = 0.2
_WATCH_S = 0.05
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What `canvass up` decides by its options, so what the environment says of it has been heard already.
_DECIDED = ("CANVASS_REDIS_URL", "CANVASS_ENGINES", "CANVASS_HOST", "CANVASS_PORT")

T = TypeVar("T")


def default_data() -> Path:
    """The per-user folder of Redis's data and the logs."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "canvass"


def passed_settings(environment: Mapping[str, str], *, stand_in: bool) -> dict[str, str]:
    """The settings of the environment that API and workers get. A stand-in has a tokenizer of its own."""
    decided = (*_DECIDED, "CANVASS_TOKENIZER") if stand_in else _DECIDED
    return {
        name: value
        for name, value in environment.items()
        if name.startswith("CANVASS_") and name not in decided
    }


def kept_secret(data: Path) -> str | None:
    """The webhook secret that stacks of a data folder sign with, None before the first of them."""
    try:
        return (data / _SECRET_FILE).read_text().strip()
    except FileNotFoundError:
        return None


def webhook_settings(data: Path, host: str) -> dict[str, str]:
    """Settings that sign webhooks with the folder's secret, made when missing, and let them go to this
    machine, unless others can ask the API at `host`: they must not reach what listens here alone.
    """
    secret = kept_secret(data)
    if secret is None:
        secret = f"whsec_{b64encode(secrets.token_bytes(32)).decode()}"
        data.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(data / _SECRET_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{secret}\n")
    allowed = "127.0.0.1,localhost" if host in _LOOPBACK else ""
    return {"CANVASS_WEBHOOK_SECRET": secret, "CANVASS_WEBHOOK_ALLOW": allowed}


@contextmanager
def stop_signals(stopping: threading.Event, stack: Stack) -> Iterator[None]:
    """Turn Ctrl-C, SIGTERM and SIGHUP into the event; a second one ends the children at once."""

    def asked(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            stack.strike()
        stopping.set()

    before = {number: signal.signal(number, asked) for number in _STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watched(stack: Stack, work: Callable[[], T]) -> T:
    """What `work` returns, while an eye is kept on the stack that it asks: what ends it ends the wait.

    Raises `StackError`, or what `work` raises.
    """
    with ThreadPoolExecutor(max_workers=1) as executor:
        running = executor.submit(work)
        try:
            while not running.done():
                stack.check()
                wait([running], timeout=_WATCH_S)
        except StopRequested:
            # The API goes first, which ends the request that this executor would wait for.
            stack.stop()
            raise
    return running.result()


def stay_up(stack: Stack, stopping: threading.Event, console: Console, *, secret: str, quiet: bool) -> None:
    """Start the stack, say when it is ready, and hold it. Raises `StackError` when it does not stay up.

    `secret` signs its webhooks, and is shown.
    """
    try:
        with stop_signals(stopping, stack), stack:
            _greet(stack, console, secret=secret, quiet=quiet)
            while True:
                stack.check()
                stopping.wait(_CHECK_S)
    except StopRequested:
        if not quiet:
            console.print("Stopped.")


def _greet(stack: Stack, console: Console, *, secret: str, quiet: bool) -> None:
    kind = "stand-in engine" if stack.uses_stand_in else "engine"
    console.print(f"Canvass is ready: {stack.url}", soft_wrap=True)
    if not quiet:
        console.print(f"Model        {', '.join(stack.models) or 'unnamed'} ({kind})", soft_wrap=True)
        console.print(f"Logs         {stack.logs}", soft_wrap=True)
        console.print(f"Webhooks     signed with {secret or 'nothing, so refused'}", soft_wrap=True)
        console.print("             `canvass webhook listen` shows and verifies them", soft_wrap=True)
        console.print(f"Try          canvass ask FILE.json --url {stack.url}", soft_wrap=True)
        console.print("Ctrl-C ends all of it.")
