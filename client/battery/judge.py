"""Judging: whether an answer is the one expected, and whether its offsets are true. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from client.battery.material import Asked, Case
from client.marks import fits, items_of

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question as it was answered. `wrong` counts pieces that do not stand where their offsets say."""

    case: str
    id: str
    type: str
    hit: bool
    wrong: int
    said: str
    expected: str


def judged(case: Case, asked: Asked, answer: Answer) -> Outcome:
    """The outcome of one question. An answer of another type, or without its value, is a miss."""
    if asked.type in ("span", "spans"):
        items = items_of(answer)
        wrong = sum(not fits(case.source, item) for item in items)
        places = case.places(asked)
        hit = [(item.get("start"), item.get("end")) for item in items] == places and not wrong
        said: Any = [item.get("text") for item in items]
        expected: Any = [case.source[start:end] for start, end in places]
    else:
        wrong, expected = 0, asked.expected
        said = _LABELS[asked.type](answer)
        hit = said is not None and said == expected
    hit = hit and answer.get("type", asked.type) == asked.type
    return Outcome(case.name, asked.id, asked.type, hit, wrong, _told(said), _told(expected))


def _noul(answer: Answer) -> bool | None:
    return None if answer.get("noul") is None else float(answer["noul"]) >= 0.5


def _choice(answer: Answer) -> str | None:
    return answer.get("choice")


def _score(answer: Answer) -> int | None:
    """The most probable level, counted from zero: levels come in order, however they are named."""
    probabilities = list((answer.get("probabilities") or {}).values())
    return probabilities.index(max(probabilities)) if probabilities else None


_LABELS: dict[str, Callable[[Answer], Any]] = {"noul": _noul, "choice": _choice, "score": _score}


def _told(value: Any) -> str:
    """A value as the list of misses tells it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " | ".join(map(str, value)) or "nothing"
    return "no answer" if value is None else str(value)
