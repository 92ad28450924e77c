"""`canvass demo`: a stack of its own, the example decisions, their answers and plans, and nothing left."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from importlib.resources import files
from typing import Any

import orjson
from rich.console import Console
from rich.text import Text

from client.ask import completed, parse_answer
from client.errors import ServerRefused, StopRequested
from client.http import OK, decide
from client.stack import Stack
from client.up import stop_signals
from client.view import decision_view, printable, short_state

STAND_IN = (
    "The model here is a stand-in of 135 million parameters (SmolLM2-135M-Instruct): a real model, whose "
    "answers are those of a very small one."
)
EXAMPLES = {
    "ticket.json": "A support ticket: a noul, a choice and a score, each read by itself",
    "outage.json": "Stages: depends_on and ask_if, so that later questions hang on earlier answers",
    "draws.json": "Four draws: one canvas read from four noise seeds, and how far they agree",
    "joint.json": "Joint: all questions in one canvas, so in one read",
}
_CHECK_S = 0.05


def example(name: str) -> dict[str, Any]:
    """The body of an example decision, by its file's name."""
    body: dict[str, Any] = orjson.loads((files("client") / "examples" / name).read_bytes())
    return body


def run_demo(console: Console) -> None:
    """Start a stack on the stand-in, print every example as it is answered, and end the stack."""
    stopping = threading.Event()
    stack = Stack(stopping=stopping)
    console.print(Text(STAND_IN, style="yellow"), soft_wrap=True)
    console.print("Starting Redis, the engine, a worker and the API ...")
    with stop_signals(stopping, stack), stack:
        console.print(f"Ready: {stack.url}")
        for name, caption in EXAMPLES.items():
            body = example(name)
            answer = _ask(stack, body)
            console.rule(Text(f"{caption} ({name})"), align="left")
            console.print(Text(f"State: {printable(short_state(body['state']))}"))
            console.print(decision_view(answer))
    console.print("Everything that was started has ended.")


def _ask(stack: Stack, body: Mapping[str, Any]) -> dict[str, Any]:
    """One decision, while an eye is kept on the stack: what ends it ends the wait."""
    with ThreadPoolExecutor(max_workers=1) as executor:
        asked = executor.submit(decide, stack.url, completed(dict(body), diagnostics=True))
        try:
            while not asked.done():
                stack.check()
                wait([asked], timeout=_CHECK_S)
        except StopRequested:
            # The API goes first, which ends the request that this executor would wait for.
            stack.stop()
            raise
    answer = parse_answer(asked.result())
    if answer is None:
        raise ServerRefused(OK, "The API answered 200 with a body that is no decision.")
    return answer
