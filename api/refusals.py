"""Refusals: every reason why a request is not answered, in one shape that each door tells in its words.

A refusal has a stable `code`, the status of native routes, and a sentence. What is wrong with single
fields stands in `entries`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import ValidationError

from api.body import BadEncoding, BadJson, BodyError, TooLarge
from planner.dialects.wording import in_json_words
from planner.errors import Invalid, TooLong
from planner.reads import Failure
from workers.store.decisions import Queue, QueueFull, TooManyOpen
from workers.store.store import StoreError

log = structlog.get_logger()

RETRY_AFTER_S = 1.0
MOST_RETRY_AFTER_S = 60.0

QUEUE_FULL = "queue_full"

MOST_ENTRIES = 100
"""Wrong fields that a refusal tells of: a small body may have hundreds of thousands."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One wrong field: its path in the body, what is wrong, the rule's name, and the value itself."""

    loc: tuple[int | str, ...]
    message: str
    kind: str
    given: Any


class Refusal(Exception):
    """Why a request is not answered. `headers` go with it, `retry_after_s` says when to come back.

    Of `entries` the first `MOST_ENTRIES` stay; `untold` counts the others.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        entries: tuple[Entry, ...] = (),
        retry_after_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.entries = entries[:MOST_ENTRIES]
        self.untold = len(entries) - len(self.entries)
        self.retry_after_s = retry_after_s
        self.headers = headers or {}


def told_entries(refusal: Refusal) -> tuple[Entry, ...]:
    """The entries of a list of wrong fields; where those are not all, a last one counts the others."""
    if not refusal.untold:
        return refusal.entries
    return (*refusal.entries, Entry((), f"{refusal.untold} more fields are wrong", "too_many_errors", None))


def headers_of(refusal: Refusal) -> dict[str, str]:
    """The headers of a refusal as official SDKs read them: when to come back, in seconds and to the
    millisecond.
    """
    headers = dict(refusal.headers)
    if (again := refusal.retry_after_s) is not None:
        headers |= {"retry-after": str(math.ceil(again)), "retry-after-ms": str(round(1000 * again))}
    return headers


class Unavailable(Refusal):
    """The decision could not be accepted: the store is away, or no engine is in. It may be sent again."""

    def __init__(self, message: str) -> None:
        super().__init__(503, "unavailable", message, retry_after_s=RETRY_AFTER_S)


class Unsettled(Unavailable):
    """Whether the decision was accepted is not known: the store did not say so in time."""


def queue_full(queue: Queue) -> Refusal:
    """The refusal of a decision for which there is no room; to come back when those that wait are through.

    In a queue that is served in order the oldest has waited about as long as a new one would have to.
    """
    again = min(MOST_RETRY_AFTER_S, max(RETRY_AFTER_S, queue.age_s))
    message = f"{queue.length} decisions wait already, as many as this server lets"
    return Refusal(503, QUEUE_FULL, message, retry_after_s=again)


REFUSED = (Refusal, BodyError, ValidationError, Invalid, TooManyOpen, QueueFull, StoreError)
"""What `refusal_of` takes: whatever a request may be refused with on its way in."""


def refusal_of(error: Exception) -> Refusal:
    """The refusal that one of REFUSED stands for."""
    match error:
        case Refusal():
            return error
        case BadJson():
            return _invalid("invalid_json", [Entry((), str(error), "json_invalid", None)])
        case TooLarge():
            return Refusal(413, "body_too_large", str(error))
        case BadEncoding():
            return Refusal(error.status, "bad_encoding", str(error))
        case BodyError():
            return Refusal(error.status, "bad_body", str(error))
        case ValidationError():
            found = error.errors(include_url=False, include_context=False)
            return _invalid("invalid_request", [entry_of(one) for one in found])
        case TooLong():
            return Refusal(400, "max_tokens_exceeded", error.message)
        case Invalid():
            return _invalid("invalid_request", [Entry(error.loc, error.message, error.kind, error.given)])
        case TooManyOpen():
            return Refusal(429, "too_many_open", str(error), retry_after_s=RETRY_AFTER_S)
        case QueueFull():
            return queue_full(error.queue)
        case StoreError():
            # Where the store is, and why it does not answer, is for the log.
            log.warning("the store does not answer", reason=str(error))
            return Unavailable("the store does not answer now")
    raise TypeError(f"{error!r} is no refusal")


def entry_of(error: Mapping[str, Any]) -> Entry:
    """The entry of one of pydantic's errors. What is too long is not told again."""
    kind = str(error["type"])
    given = None if kind == "too_long" else error.get("input")
    return Entry(tuple(error["loc"]), in_json_words(str(error["msg"])), kind, given)


_FAILURES = {
    "no_engine": 503,
    "expired": 504,
    "gone": 503,
    "canceled": 409,
    "max_tokens_exceeded": 400,
    "refused": 502,
    "grammar_refused": 422,
    "value_error": 400,
}


def refusal_of_failure(failure: Failure) -> Refusal:
    """The refusal that a decision without an answer ends in."""
    status = _FAILURES.get(failure.code, 500)
    again = RETRY_AFTER_S if status in (503, 504) else None
    return Refusal(status, failure.code, failure.message, retry_after_s=again)


def _invalid(code: str, entries: list[Entry]) -> Refusal:
    first = entries[0]
    path = ".".join(map(str, first.loc))
    return Refusal(422, code, f"{path}: {first.message}" if path else first.message, entries=tuple(entries))
