"""Rules of the caller: named checks of a value, run where the value is, and kept beside its audit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Check = Callable[[Any], bool | str | None]
"""A rule: it takes the validated value. It holds with True or None, and not with False or a text (why)."""

Checks = Mapping[str, Check] | Sequence[Check]
"""Checks by name, or functions that are named as they are."""

OnCheckFailure = Literal["raise", "record"]
"""Whether a check that does not hold raises `CheckFailed`, or is only told in `Decision.checks`."""


MOST_NAME = 200
"""Characters of a check's name: an audit takes no more, and what was cut could no longer be told apart."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check said: whether it holds, and if not, why (empty where it did not say)."""

    name: str
    passed: bool
    message: str = ""


def run_checks(checks: Checks | None, value: Any) -> tuple[CheckResult, ...]:
    """The result of each check, in their order. Raises as `named`."""
    return tuple(_checked(name, check, value) for name, check in named(checks).items())


def named(checks: Checks | None) -> Mapping[str, Check]:
    """Checks by name. Functions of one name, as lambdas are, are told apart by a number.

    Raises ValueError for a name that is empty or has more than `MOST_NAME` characters, TypeError for checks
    that can be gone through only once.
    """
    if checks is not None and not isinstance(checks, Collection):
        raise TypeError(f"checks are a mapping or a list of functions, not {type(checks).__name__}")
    found = checks if isinstance(checks, Mapping) else _by_own_name(checks or ())
    for name in found:
        if not 1 <= len(name) <= MOST_NAME:
            shown = f"{name[:40]!r}..." if name else "an empty name"
            raise ValueError(
                f"a check's name has 1 to {MOST_NAME} characters, and this one {len(name)}: {shown}"
            )
    return found


def _by_own_name(checks: Collection[Check]) -> dict[str, Check]:
    found: dict[str, Check] = {}
    for check in checks:
        name = own = str(getattr(check, "__name__", type(check).__name__))
        count = 1
        while name in found:
            count += 1
            name = f"{own} {count}"
        found[name] = check
    return found


def _checked(name: str, check: Check, value: Any) -> CheckResult:
    try:
        said = check(value)
    except Exception as error:  # noqa: BLE001 - a rule that breaks is one that was not seen to hold
        return CheckResult(name, False, str(error) or type(error).__name__)
    if isinstance(said, str):
        return CheckResult(name, False, said)
    return CheckResult(name, said is None or bool(said))
