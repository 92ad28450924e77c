"""The client's preferences about waiting: the `Prefer` header of RFC 7240."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MOST_WAIT_S = 60

_PREFERENCE = re.compile(r'\s*([\w!#$%&\'*+.^`|~-]+)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^\s;,"]*))?[^,]*(?:,|$)')


@dataclass(frozen=True, slots=True)
class Preference:
    """How long to wait for the answer before a job is handed out instead.

    `wait_s` is None when the client said nothing; `applied` goes into `Preference-Applied`.
    """

    wait_s: float | None = None
    applied: str = ""


def read_preference(headers: Iterable[str]) -> Preference:
    """The preference that some `Prefer` headers state. What is not understood is ignored, as the RFC says.

    `respond-async` alone waits for nothing; `wait=N` waits up to N seconds, 60 at most, and `respond-async`
    beside it changes nothing. The first of several `wait`s counts.
    """
    asked = [match.groups() for header in headers for match in _PREFERENCE.finditer(header)]
    wait = next((seconds for name, value in asked if (seconds := _wait(name, value)) is not None), None)
    respond_async = any(name.lower() == "respond-async" for name, _ in asked)
    applied = ["respond-async"] * respond_async + [f"wait={wait}"] * (wait is not None)
    if not applied:
        return Preference()
    return Preference(float(wait or 0), ", ".join(applied))


def _wait(name: str, value: str | None) -> int | None:
    digits = (value or "").strip('"')
    if name.lower() != "wait" or not (digits.isascii() and digits.isdigit()):
        return None
    return min(int(digits[:9]), MOST_WAIT_S)
