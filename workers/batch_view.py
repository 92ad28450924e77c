"""The batch object: a batch as it is seen from outside. Pure functions of what the store keeps of it.

It lies on this floor because a webhook carries it, and workers deliver webhooks.
"""

from __future__ import annotations

from typing import Any

import orjson

from workers.jobs import TERMINAL, Fields, standing_of, status_of

_ENDED = ("succeeded", "failed", "canceled", "expired")


def batch_of(id: str, fields: Fields) -> dict[str, Any]:
    """The batch object. Its counts are of states, and add up to `total`."""
    batch = {**standing_of(id, "batch", fields), "counts": counts_of(fields), "urls": batch_urls_of(id)}
    if "fault" in fields:
        batch["error"] = orjson.Fragment(fields["fault"])
    return batch


def counts_of(fields: Fields) -> dict[str, int]:
    """How many states there are, wait, run, and ended as what."""
    total, fed = int(fields["total"]), int(fields["fed"])
    ended = {name: int(fields[name]) for name in _ENDED}
    open = status_of(fields) not in TERMINAL
    return {
        "total": total,
        "queued": total - fed if open else 0,
        "running": fed - sum(ended.values()) if open else 0,
        **ended,
    }


def batch_urls_of(id: str) -> dict[str, str]:
    """Where a batch is found, below the server's base URL."""
    batch = f"/v1/batches/{id}"
    return {
        "get": batch,
        "results": f"{batch}/results",
        "cancel": f"{batch}/cancel",
        "deliveries": f"/v1/jobs/{id}/deliveries",
    }
