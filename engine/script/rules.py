"""The script file: a list of rules and a default, checked when it is loaded.

`engine/README.md` documents the format. A rule is a condition and one kind of answer or more; the first
rule whose condition holds and that has an answer for the kind of slot gives it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from engine.faults import NAMES, after_answer

_CONDITIONS = ("id", "phrase", "state_contains", "image_sha256")
_LABEL_ANSWERS = ("labels", "draws")
_BLANK_ANSWERS = ("span", "spans", "emit")
_TEXT_ANSWERS = ("object", "thought", "text")
_ANSWERS = (*_LABEL_ANSWERS, *_BLANK_ANSWERS, *_TEXT_ANSWERS)
_OPTIONS = ("other", "noise", "finish_reason", "fault", "times")
_DEFAULTS = ("random", "uniform", "error")
_FAULTS = tuple(name for name in NAMES if name != "dies" and not after_answer(name))

NOISE = 0.02  # what a blank's tokens leave to the other allowed ids, unless a rule says otherwise


class ScriptError(Exception):
    """The script is wrong: the message names the rule and the key."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule. `number` counts from 1 in the file; `answers` holds the answer keys that were given."""

    number: int
    conditions: dict[str, str]
    answers: dict[str, Any]
    other: float = 0.0
    noise: float = NOISE
    finish_reason: str | None = None
    fault: str | None = None
    times: int | None = None

    def alternatives(self) -> list[dict[str, float]]:
        """The label distributions, one per kind of draw."""
        draws: list[dict[str, float]] = self.answers.get("draws") or [self.answers["labels"]]
        return draws

    def answers_slot(self, blank: bool) -> bool:
        """Whether it says what stands in a blank, or in a label slot."""
        return any(name in self.answers for name in (_BLANK_ANSWERS if blank else _LABEL_ANSWERS))

    def written(self) -> tuple[str | None, bool]:
        """The text of a blank (None for "none"), and whether it is literal (`emit`)."""
        if "emit" in self.answers:
            return self.answers["emit"], True
        if "span" in self.answers:
            return self.answers["span"], False
        return "\n".join(self.answers["spans"]) or None, False

    def matches(self, identity: str | None, question: str, prompt: str, images: tuple[str, ...]) -> bool:
        """Whether its conditions hold for a question (its id where the prompt shows one, its block)."""
        wanted = self.conditions
        return (
            ("id" not in wanted or wanted["id"] == identity)
            and wanted.get("phrase", "") in question
            and wanted.get("state_contains", "") in prompt
            and ("image_sha256" not in wanted or wanted["image_sha256"] in images)
        )


@dataclass(frozen=True, slots=True)
class Script:
    """A script file. `default` is `random`, `uniform` or `error`."""

    rules: tuple[Rule, ...]
    default: str
    model: str


def load_script(file: Path) -> Script:
    """Read and check a script file. Raises `ScriptError`."""
    try:
        value = orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise ScriptError(f"{file}: {error}") from error
    if not isinstance(value, dict) or set(value) - {"rules", "default", "model"}:
        raise ScriptError(f"{file}: must be an object with rules, default and model, nothing else")
    default = value.get("default", "random")
    if default not in _DEFAULTS:
        raise ScriptError(f"{file}: default must be one of {', '.join(_DEFAULTS)}, not {default!r}")
    rules = tuple(_rule(number, rule) for number, rule in enumerate(value.get("rules", []), 1))
    return Script(rules, default, value.get("model", "script"))


def _rule(number: int, value: Any) -> Rule:
    where = f"rule {number}"
    if not isinstance(value, dict):
        raise ScriptError(f"{where}: must be an object")
    unknown = set(value) - {*_CONDITIONS, *_ANSWERS, *_OPTIONS}
    if unknown:
        raise ScriptError(f"{where}: unknown keys {', '.join(sorted(unknown))}")
    for name, (types, words) in _TYPES.items():
        if name in value and (not isinstance(value[name], types) or isinstance(value[name], bool)):
            raise ScriptError(f"{where}: {name} must be {words}")
    if value.get("fault") not in (None, *_FAULTS):
        raise ScriptError(f"{where}: fault must be one of {', '.join(_FAULTS)}, not {value['fault']!r}")
    for labels in value.get("draws", []) + ([value["labels"]] if "labels" in value else []):
        _check_labels(labels, where)
    return Rule(
        number=number,
        conditions={name: value[name] for name in _CONDITIONS if name in value},
        answers={name: value[name] for name in _ANSWERS if name in value},
        **{name: value[name] for name in _OPTIONS if name in value},
    )


_STRING = (str, "a string")
_SHARE = ((int, float), "a number from 0 to 1")
_TYPES: dict[str, tuple[Any, str]] = {
    **dict.fromkeys((*_CONDITIONS, "emit", "thought", "text", "finish_reason", "fault"), _STRING),
    "labels": (dict, "an object of probabilities"),
    "draws": (list, "a list of objects of probabilities"),
    "span": ((str, type(None)), "a string or null"),
    "spans": (list, "a list of strings"),
    "object": ((dict, list, str), "a JSON value, or a string for raw text"),
    "other": _SHARE,
    "noise": _SHARE,
    "times": (int, "a whole number"),
}


def _check_labels(labels: Any, where: str) -> None:
    good = isinstance(labels, dict) and all(isinstance(value, (int, float)) for value in labels.values())
    if not good or any(value < 0 for value in labels.values()) or sum(labels.values()) > 1.0001:
        raise ScriptError(f"{where}: label probabilities must not be negative, and sum up to at most 1")
