"""When a webhook is attempted, and which answers end it. Pure.

Times count from the first attempt, each with up to a tenth more by chance, so that the receivers of an
outage do not come back all at once. A Retry-After is honoured: the next attempt is the first of the table
that is not before it, or comes at it when it asks for more than the table's last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Literal

MINUTE, HOUR = 60.0, 3600.0

TIMES_S = (0.0, 5.0, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR)
"""Seconds after the first attempt (API.md, section 4)."""

JITTER = 0.1
"""The greatest part of its time that an attempt may be late by chance."""

MOST_RETRY_AFTER_S = 4 * HOUR
"""The longest pause that a receiver may ask for: with it, the last attempt comes before the delivery's
record ends (CANVASS_WEBHOOK_RETENTION_S, 30 h)."""

State = Literal["pending", "delivered", "failed", "gone"]


@dataclass(frozen=True, slots=True)
class Next:
    """What follows an attempt: the delivery's state, and while `pending` the time (seconds since 1970) and
    the place in TIMES_S of the next attempt.
    """

    state: State
    at: float | None = None
    place: int | None = None


def after_attempt(
    status: int | None,
    *,
    place: int,
    first: float,
    now: float,
    chance: float,
    retry_after_s: float | None = None,
    pace: float = 1.0,
) -> Next:
    """What follows an attempt that was answered with an HTTP status (None: not answered).

    `place` is the attempt's in TIMES_S, `first` the time of the first attempt, `chance` is in [0, 1),
    `pace` a factor on the table's times.
    """
    if status is not None and 200 <= status < 300:
        return Next("delivered")
    if status == HTTPStatus.GONE:
        return Next("gone")
    last = len(TIMES_S) - 1
    if place >= last:
        return Next("failed")
    earliest = now + min(retry_after_s or 0.0, MOST_RETRY_AFTER_S)
    for later in range(place + 1, len(TIMES_S)):
        at = first + TIMES_S[later] * pace * (1 + JITTER * chance)
        if at >= earliest or (place == 0 and not retry_after_s):
            # The quick second attempt is made however long the first one hung.
            return Next("pending", max(at, earliest), later)
    return Next("pending", earliest, last)


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """The pause that a Retry-After header asks for, in seconds from `now`; None without a valid one."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:12])
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now)
