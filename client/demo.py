"""`canvass demo`: a stack of its own, the example decisions, their answers and plans, and nothing left."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import orjson
from rich.console import Console
from rich.text import Text

from client.ask import completed, parse_answer
from client.cells import count, printable, short_state
from client.errors import ServerRefused, WrongOffsets
from client.http import OK, decide
from client.marks import faults, items_of, source_text, span_answers
from client.stack import Stack
from client.up import PATIENT, stop_signals, watched
from client.view import decision_view

STAND_IN = (
    "The model here is a stand-in of 135 million parameters (SmolLM2-135M-Instruct): a real model, whose "
    "answers are those of a very small one."
)
EXAMPLES = {
    "ticket.json": "A support ticket: a noul, a choice and a score, each read by itself",
    "outage.json": "Stages: depends_on and ask_if, so that later questions hang on earlier answers",
    "draws.json": "Four draws: one canvas read from four noise seeds, and how far they agree",
    "joint.json": "Joint: all questions in one canvas, so in one read",
    "invoice.json": "An invoice: three spans and a list, found in the text with their offsets",
}


def example(name: str) -> dict[str, Any]:
    """The body of an example decision, by its file's name."""
    body: dict[str, Any] = orjson.loads((files("client") / "examples" / name).read_bytes())
    return body


def run_demo(console: Console, engines: str = "llama") -> None:
    """Start a stack on a stand-in, print every example as it is answered, and end the stack.

    Raises `WrongOffsets` when a span answer is not the piece of the state's text that it says.
    """
    stopping = threading.Event()
    stack = Stack(engines=engines, env=PATIENT, stopping=stopping)
    console.print(Text(STAND_IN, style="yellow"), soft_wrap=True)
    console.print("Starting Redis, the engine, a worker and the API ...")
    with stop_signals(stopping, stack), stack:
        console.print(f"Ready: {stack.url}")
        for name, caption in EXAMPLES.items():
            body = example(name)
            answer = _ask(stack, body)
            console.rule(Text(f"{caption} ({name})"), align="left")
            console.print(Text(f"State: {printable(short_state(body['state']))}"))
            console.print(decision_view(answer, body["state"]))
            checked = grounded(body["state"], answer["answers"])
            if checked is not None:
                console.print(Text(checked, style="green"))
    console.print("Everything that was started has ended.")


def grounded(state: Any, answers: Mapping[str, Any]) -> str | None:
    """A line that says that every span answer is a piece of the text; None when there is no span question.

    Raises `WrongOffsets` otherwise.
    """
    spans = span_answers(answers)
    wrong = faults(source_text(state), answers)
    if wrong:
        raise WrongOffsets(wrong)
    pieces = count(sum(len(items_of(answer)) for answer in spans.values()), "piece")
    return f"Checked: {pieces} found, each is state[start:end] of the text." if spans else None


def _ask(stack: Stack, body: Mapping[str, Any]) -> dict[str, Any]:
    """One decision, asked while an eye is kept on the stack."""
    content = watched(stack, lambda: decide(stack.url, completed(dict(body), diagnostics=True)))
    answer = parse_answer(content)
    if answer is None:
        raise ServerRefused(OK, "The API answered 200 with a body that is no decision.")
    return answer
