"""The client's preferences about waiting: the `Prefer` header of RFC 7240."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.request import parse_http_list

MOST_WAIT_S = 60


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
    asked = list(_preferences(headers))
    wait = next((seconds for name, value in asked if (seconds := _wait(name, value)) is not None), None)
    respond_async = any(name == "respond-async" for name, _ in asked)
    applied = ["respond-async"] * respond_async + [f"wait={wait}"] * (wait is not None)
    if not applied:
        return Preference()
    return Preference(float(wait or 0), ", ".join(applied))


def _preferences(headers: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each preference's name, in lower case, and its value; what follows a `;` are parameters."""
    for header in headers:
        for item in parse_http_list(header):
            name, _, value = item.partition(";")[0].partition("=")
            yield name.strip().lower(), value.strip().strip('"')


def _wait(name: str, value: str) -> int | None:
    if name != "wait" or not (value.isascii() and value.isdigit()):
        return None
    # No more digits than decide it: Python refuses to read some thousands of them.
    return min(int(value.lstrip("0")[:3] or 0), MOST_WAIT_S)
