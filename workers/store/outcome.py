"""How a decision ended, and how that is told."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from planner.reads import Failure


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished decision: its terminal status, and the body its door answers with.

    The body of one that did not succeed is `{"code", "message"}`.
    """

    status: str
    body: bytes

    def failure(self) -> Failure | None:
        """What went wrong, or None for a success."""
        return None if self.status == "succeeded" else Failure(**orjson.loads(self.body))

    @property
    def is_gone(self) -> bool:
        """Whether nothing is known of the decision: it never was, or is no longer kept."""
        return self is GONE


CANCELED = Outcome("canceled", orjson.dumps({"code": "canceled", "message": "canceled on request"}))
GONE = Outcome("failed", orjson.dumps({"code": "gone", "message": "the decision is no longer kept"}))
EXPIRED = Outcome("expired", orjson.dumps({"code": "expired", "message": "the decision's deadline passed"}))


def failed(failure: Failure) -> Outcome:
    """The outcome of a decision that could not be answered."""
    if failure.code == "expired":
        return EXPIRED
    return Outcome("failed", orjson.dumps({"code": failure.code, "message": failure.message}))


def read_message(message: bytes) -> tuple[str, Outcome]:
    """The decision id and outcome of what `finish` published."""
    head, _, body = message.partition(b"\n")
    id, status = head.decode().split(" ")
    return id, Outcome(status, body)
