"""The terms of a decision: whose it is, who is told of it, and by when it must end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.json_numbers import exact_json
from workers.celery_app import INTERACTIVE


@dataclass(frozen=True, slots=True)
class Terms:
    """What a decision was accepted with, beside what it asks.

    `owner` is the id of the API key it came with, empty on an open server; `most_open` how many open
    decisions that key may have (0: any number). `deadline_s` counts from now (None: the server's own).
    `webhook` is the URL to call at `events` (`start`, `completed`), `metadata` the client's own, `lane`
    the queue that its tasks go through. `twin` is a name (workers/store/names.py) by which the same request,
    should it come again, finds the decision. `patient`: nobody waits for it on the line, so it may
    wait for an engine until its deadline.
    """

    owner: str = ""
    most_open: int = 0
    deadline_s: float | None = None
    webhook: str | None = None
    events: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    lane: str = INTERACTIVE
    twin: str = ""
    patient: bool = False

    def to_fields(self) -> dict[str, str | bytes]:
        """What of it stands in the decision's hash."""
        fields: dict[str, str | bytes] = {"lane": self.lane}
        if self.owner:
            fields["owner"] = self.owner
        if self.metadata is not None:
            fields["metadata"] = exact_json(self.metadata)
        if self.webhook is not None:
            fields |= {"webhook": self.webhook, "hooks": " ".join(self.events)}
        if self.patient:
            fields["patient"] = "1"
        return fields
