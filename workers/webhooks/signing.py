"""What a webhook secret is, by Standard Webhooks."""

from __future__ import annotations

import binascii
from base64 import b64decode

PREFIX = "whsec_"
LEAST_BYTES, MOST_BYTES = 24, 64
"""The size of a secret, by Standard Webhooks."""

UNSET = "webhooks need a secret to be signed with: set CANVASS_WEBHOOK_SECRET (whsec_ and base64)"


def require_secret(secret: str) -> str:
    """The secret itself, or ValueError with what is wrong with it. It is not repeated in the message."""
    try:
        size = len(b64decode(secret.removeprefix(PREFIX), validate=True))
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"a webhook secret is {PREFIX} and base64") from error
    if not secret.startswith(PREFIX) or not LEAST_BYTES <= size <= MOST_BYTES:
        raise ValueError(f"a webhook secret is {PREFIX} and base64 of {LEAST_BYTES} to {MOST_BYTES} bytes")
    return secret
