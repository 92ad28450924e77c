"""The battery as a script of the stand-in engine (engine/README.md) that answers everything right. Pure."""

from __future__ import annotations

from typing import Any

from client.battery.material import Asked, Case
from client.cells import as_text
from client.marks import state_text

SHARE = 0.9
"""The probability that a right label gets."""

_OPENING = 80  # code points of a state that tell it from every other


def script_rules(cases: list[Case]) -> dict[str, Any]:
    """A script file's content: a rule for every question of every case."""
    return {"rules": [_rule(case, asked) for case in cases for asked in case.asked]}


def _rule(case: Case, asked: Asked) -> dict[str, Any]:
    return {
        "phrase": as_text(asked.question["instructions"]),
        "state_contains": state_text(case.state)[:_OPENING],
        **_answer(asked),
    }


def _answer(asked: Asked) -> dict[str, Any]:
    """The answer of a question in the script's words.

    A span has a label too, for the read that chooses between windows: a window that holds the tokens of
    the value, though not the value, finds something of its own.
    """
    expected = asked.expected
    if asked.type == "spans":
        return {"spans": expected}
    if asked.type == "span":
        said = {"span": asked.written or expected}
        return said if expected is None else said | {"labels": {expected: SHARE}}
    if asked.type == "noul":
        expected = "yes" if expected else "no"
    elif asked.type == "score":
        expected = asked.question["criteria"][expected]
    return {"labels": {expected: SHARE}}
