"""What a webhook sends: the same id and the same bytes on every attempt, signed anew each time. Pure.

The form is that of Standard Webhooks (www.standardwebhooks.com), the signature its library's.
"""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
from standardwebhooks import Webhook

from workers.batch_view import batch_of
from workers.jobs import Fields, job_of, rfc3339
from workers.store.names import name_of

_WORDS = {"start": "started", "completed": "completed"}
_MOMENTS = {"start": "started", "completed": "finished"}

USER_AGENT = "Canvass-Webhooks/1"


def webhook_id(name: str) -> str:
    """The `webhook-id` of a delivery: the receiver knows by it what it has had already."""
    return f"evt_{name_of('delivery', name)}"


def body_of(id: str, fields: Fields) -> bytes:
    """The body of a delivery: `type`, `timestamp` (when it happened) and `data`, the job or batch as it was
    then.
    """
    event = fields["event"].decode()
    kind, view = ("batch", batch_of) if fields.get("object") == b"batch" else ("decision", job_of)
    return orjson.dumps(
        {
            "type": f"{kind}.{_WORDS[event]}",
            "timestamp": rfc3339(fields[_MOMENTS[event]]),
            "data": view(id, fields),
        }
    )


def headers_of(name: str, body: bytes, secret: str, now: float) -> dict[str, str]:
    """The headers of one attempt at `now` (seconds since 1970). `secret` is `whsec_` and base64."""
    moment, id = datetime.fromtimestamp(now, UTC), webhook_id(name)
    return {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "webhook-id": id,
        "webhook-timestamp": str(int(now)),
        "webhook-signature": Webhook(secret).sign(id, moment, body.decode()),
    }
