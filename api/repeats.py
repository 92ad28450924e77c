"""Requests that come again: what they find instead of a second decision.

A client that sends an `Idempotency-Key` gets what its first request got: the answer, the failure, or the
job as it stands now. A failure that says to come again frees the key, so that coming again has a point. An
SDK that sends a request again by itself says so, and finds the decision of the same caller and body, if
that still runs or was answered.
"""

from __future__ import annotations

from dataclasses import replace
from time import time

from api.refusals import RETRY_AFTER_S, Refusal, refusal_of_failure
from workers.store.decisions import Decisions
from workers.store.names import Named, Names
from workers.store.outcome import Outcome

MOST_KEY = 255


async def decision_of_key(
    names: Names, decisions: Decisions, name: str, named: Named, keep_s: int
) -> str | None:
    """The decision that a key stands for already; None when the key was free, and now stands for `named`.

    Raises Refusal for a key whose request had another body (422), or may still be waiting (409).
    """
    stale = None
    while (held := await names.take(name, named, keep_s, stale=stale)) is not None:
        if held.body != named.body:
            raise Refusal(422, "idempotency_key_reused", "this Idempotency-Key came with another body before")
        outcome = (await decisions.outcomes([held.id]))[held.id]
        accepted = outcome is None or not outcome.is_gone
        if held.until > time() and (outcome is None or not accepted):
            raise Refusal(
                409,
                "idempotency_key_in_flight",
                "the first request with this Idempotency-Key is still being answered",
                retry_after_s=RETRY_AFTER_S,
            )
        if accepted and not _says_come_again(outcome):
            return held.id
        # It failed for now, is no longer kept, or was never accepted. The key is free again.
        stale = held
    return None


async def told(names: Names, name: str, named: Named, keep_s: int) -> None:
    """Note that the first request with a key was told of its decision before that ended, so that one that
    comes again is no longer in flight. Raises StoreError.
    """
    await names.take(name, replace(named, until=0.0), keep_s, stale=named)


def _says_come_again(outcome: Outcome | None) -> bool:
    failure = None if outcome is None else outcome.failure()
    return failure is not None and refusal_of_failure(failure).retry_after_s is not None


async def decision_of_twin(names: Names, decisions: Decisions, name: str) -> str | None:
    """The decision of the same caller and body that runs or was answered, if there is one."""
    id = await names.decision(name)
    if id is None:
        return None
    outcome = (await decisions.outcomes([id]))[id]
    return id if outcome is None or outcome.status == "succeeded" else None
