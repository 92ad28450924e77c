"""Requests that come again: what they find instead of a second decision.

A client that sends an `Idempotency-Key` gets what its first request got: the answer, the failure, or the
job as it stands now. A failure that says to come again frees the key, so that coming again has a point. An
SDK that sends a request again by itself says so, and finds the decision of the same caller and body, if
that still runs or was answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import time
from typing import Literal

from fastapi import Request

from api.refusals import RETRY_AFTER_S, Refusal, refusal_of_failure
from workers.store.decisions import Decisions
from workers.store.names import Named, Names
from workers.store.outcome import Outcome

MOST_KEY = 255


Standing = Literal["answered", "open", "passing", "unknown"]
"""What a key's first request came to: an answer that stays; none yet; a failure that says to come again;
nothing that is known of, because it is no longer kept or was never accepted.
"""


def key_of(request: Request) -> str | None:
    """The `Idempotency-Key` of a request. Raises Refusal for one that is none."""
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= MOST_KEY:
        raise Refusal(400, "bad_idempotency_key", f"an Idempotency-Key has 1 to {MOST_KEY} characters")
    return key


async def earlier_of(
    names: Names,
    name: str,
    named: Named,
    keep_s: int,
    standing: Callable[[str], Awaitable[Standing]],
) -> str | None:
    """What a key stands for already; None when the key was free, and now stands for `named`.

    `standing` says what became of what it stands for. Raises Refusal for a key whose request had another
    body (422), or may still be waiting (409).
    """
    stale = None
    while (held := await names.take(name, named, keep_s, stale=stale)) is not None:
        if held.body != named.body:
            raise Refusal(422, "idempotency_key_reused", "this Idempotency-Key came with another body before")
        came_to = await standing(held.id)
        if held.until > time() and came_to in ("open", "unknown"):
            raise Refusal(
                409,
                "idempotency_key_in_flight",
                "the first request with this Idempotency-Key is still being answered",
                retry_after_s=RETRY_AFTER_S,
            )
        if came_to in ("answered", "open"):
            return held.id
        stale = held  # the key is free again
    return None


async def standing_of_decision(decisions: Decisions, id: str) -> Standing:
    """What became of a decision."""
    outcome = (await decisions.outcomes([id]))[id]
    if outcome is None:
        return "open"
    if outcome.is_gone:
        return "unknown"
    return "passing" if _says_come_again(outcome) else "answered"


async def told(names: Names, name: str, named: Named, keep_s: int) -> None:
    """Note that the first request with a key was told of its decision before that ended, so that one that
    comes again is no longer in flight. Raises StoreError.
    """
    await names.take(name, replace(named, until=0.0), keep_s, stale=named)


def _says_come_again(outcome: Outcome) -> bool:
    failure = outcome.failure()
    return failure is not None and refusal_of_failure(failure).retry_after_s is not None


async def decision_of_twin(names: Names, decisions: Decisions, name: str) -> str | None:
    """The decision of the same caller and body that runs or was answered, if there is one."""
    id = await names.decision(name)
    if id is None:
        return None
    outcome = (await decisions.outcomes([id]))[id]
    return id if outcome is None or outcome.status == "succeeded" else None
