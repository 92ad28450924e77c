"""Rules of the caller: named checks of a value, run where the value is, and kept beside its audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Check = Callable[[Any], bool | str | None]
"""A rule: it takes the validated value. It holds with True or None, and not with False or a text (why)."""

Checks = Mapping[str, Check] | Sequence[Check]
"""Checks by name, or functions that are named as they are."""

OnCheckFailure = Literal["raise", "record"]
"""Whether a check that does not hold raises `CheckFailed`, or is only told in `Decision.checks`."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check said: whether it holds, and if not, why (empty where it did not say)."""

    name: str
    passed: bool
    message: str = ""


def run_checks(checks: Checks | None, value: Any) -> tuple[CheckResult, ...]:
    """The result of each check, in their order."""
    return tuple(_checked(name, check, value) for name, check in _named(checks).items())


def _named(checks: Checks | None) -> Mapping[str, Check]:
    """Checks by name. Functions of one name, as lambdas are, are told apart by a number."""
    if isinstance(checks, Mapping):
        return checks
    named: dict[str, Check] = {}
    for check in checks or ():
        name = own = str(getattr(check, "__name__", type(check).__name__))
        count = 1
        while name in named:
            count += 1
            name = f"{own} {count}"
        named[name] = check
    return named


def _checked(name: str, check: Check, value: Any) -> CheckResult:
    try:
        said = check(value)
    except Exception as error:  # noqa: BLE001 - a rule that breaks is one that was not seen to hold
        return CheckResult(name, False, str(error) or type(error).__name__)
    if isinstance(said, str):
        return CheckResult(name, False, said)
    return CheckResult(name, said is None or bool(said))
