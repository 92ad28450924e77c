"""What is asked, and what the right answers are: both follow from a decision's number.

A state carries marks that say the number modulo a few primes, and the engines' script answers each question
by the mark that is its own. So an answer that belongs to another decision, another question or another stage
shows: neighbours differ in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

URGENT, TEAMS, LEVELS, WRITERS, PARTS = 19, 5, 7, 11, 13
"""How many different answers each question has. Primes, so that their combination says which number it is."""

TEAM_NAMES = ("billing", "sales", "support", "legal", "security")
NAMES = (
    "Dana Smith",
    "Ines Alva",
    "Omar Reyes",
    "Pia Lund",
    "Jon Frost",
    "Mia Stone",
    "Leo Marsh",
    "Eva Brook",
    "Tom Field",
    "Ada Wells",
    "Max Grove",
)

KINDS = {"labels": 10, "stages": 4, "spans": 3, "wide": 2, "draws": 1}
"""How often each kind of decision is asked."""

MIXED = tuple(name for name, weight in KINDS.items() for _ in range(weight))

WIDE = 20
"""Questions of a wide decision: with CANVASS_SHARD_READS at 8, a chord of three shards."""

DRAWS = 16
TOLERANCE = 2e-6
"""Probabilities are told with six decimals."""


def script() -> dict[str, Any]:
    """The engines' script: a rule per question and mark."""
    urgent = [_rule("Is it urgent", f"u{mark}", labels={"yes": _urgent(mark)}) for mark in range(URGENT)]
    team = [_rule("Which team", f"t{mark}", labels={TEAM_NAMES[mark]: 0.7}) for mark in range(TEAMS)]
    late = [_rule("Is it late", f"l{mark}", labels={"yes": _late(mark)}) for mark in range(LEVELS)]
    writer = [_rule("Who wrote it", f"w{mark}", span=NAMES[mark]) for mark in range(WRITERS)]
    parts = [
        _rule(f"Is part {part} there", f"p{mark}", labels={"yes": _part(mark, part)})
        for mark in range(PARTS)
        for part in range(WIDE)
    ]
    canary = {"phrase": "canary", "labels": {"yes": 0.9}, "object": {"bird": "canary"}}
    return {"rules": [canary, *urgent, *team, *late, *writer, *parts], "default": "error"}


def kind_of(number: int) -> str:
    """The kind of a decision."""
    return Random(number).choice(MIXED)


def state_of(number: int) -> str:
    """A decision's state: its number, and the marks that its answers follow from."""
    marks = {"u": URGENT, "t": TEAMS, "l": LEVELS, "w": WRITERS, "p": PARTS}
    told = " ".join(f"<{letter}{number % count}>" for letter, count in marks.items())
    return f"Letter {number} came in. {told} {NAMES[number % WRITERS]} wrote it and waits for a reply."


def body_of(number: int, kind: str) -> dict[str, Any]:
    """The body of a decision that is posted."""
    questions = _QUESTIONS[kind]
    more: dict[str, Any] = {"samples": DRAWS} if kind == "draws" else {}
    return {
        "model": "jev-latest",
        "state": state_of(number),
        "questions": questions,
        "metadata": {"number": number, "kind": kind},
        **more,
    }


def wrong_answers(number: int, kind: str, answers: Mapping[str, Any]) -> list[str]:
    """What is wrong with the answers to a decision; nothing when they are right."""
    right = _right(number, kind)
    if answers.keys() != right.keys():
        return [f"answers to {sorted(answers)}, asked were {sorted(right)}"]
    return [
        f"{id} is {answers[id]}, right is {wanted}"
        for id, wanted in right.items()
        if not _same(answers[id], wanted)
    ]


def _right(number: int, kind: str) -> dict[str, Any]:
    """Each question's right answer: a probability, a choice, a span's text, None for one that is skipped."""
    urgent, team = _urgent(number % URGENT), TEAM_NAMES[number % TEAMS]
    late = _late(number % LEVELS)
    if kind == "stages":
        routed = team if urgent > 0.5 else None
        return {"urgent": urgent, "team": routed, "late": late if routed == "legal" else None}
    if kind == "spans":
        return {"writer": (NAMES[number % WRITERS],), "urgent": urgent}
    if kind == "wide":
        parts = {f"part{part}": _part(number % PARTS, part) for part in range(WIDE)}
        return {**parts, "late": late}
    if kind == "draws":
        return {"urgent": urgent}
    return {"urgent": urgent, "team": team}


def _same(answer: Any, wanted: Any) -> bool:
    if wanted is None or answer is None:
        return answer is wanted
    if isinstance(wanted, tuple):
        return bool(answer["found"] and (answer["text"],) == wanted)
    if isinstance(wanted, str):
        return bool(answer["choice"] == wanted and abs(answer["probabilities"][wanted] - 0.7) < TOLERANCE)
    return bool(abs(answer["noul"] - wanted) < TOLERANCE)


def _urgent(mark: int) -> float:
    return round(0.04 + 0.05 * mark, 2)


def _late(mark: int) -> float:
    return round(0.1 + 0.12 * mark, 2)


def _part(mark: int, part: int) -> float:
    return round(0.03 + 0.9 * ((mark * 7 + part * 3) % 31) / 31, 2)


def _rule(phrase: str, mark: str, **answer: Any) -> dict[str, Any]:
    return {"phrase": phrase, "state_contains": f"<{mark}>", **answer}


def _noul(instructions: str, **more: Any) -> dict[str, Any]:
    return {"type": "noul", "instructions": instructions, **more}


_URGENT = _noul("Is it urgent?")
_TEAM = {
    "type": "choice",
    "instructions": "Which team?",
    "criteria": dict.fromkeys(TEAM_NAMES),
}
_QUESTIONS: Mapping[str, dict[str, Any]] = {
    "labels": {"urgent": _URGENT, "team": _TEAM},
    "stages": {
        "urgent": _URGENT,
        "team": {**_TEAM, "ask_if": {"urgent": ["true"]}},
        "late": _noul("Is it late?", ask_if={"team": ["legal"]}),
    },
    "spans": {
        "writer": {"type": "span", "instructions": "Who wrote it?"},
        "urgent": _URGENT,
    },
    "wide": {
        **{f"part{part}": _noul(f"Is part {part} there?") for part in range(WIDE)},
        "late": _noul("Is it late?", depends_on=["part0", "part1"]),
    },
    "draws": {"urgent": _URGENT},
}

BATCH_QUESTIONS = _QUESTIONS["labels"]
"""What a batch asks about each of its states."""
