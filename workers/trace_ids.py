"""The ids of a decision's trace, which follow from its own id."""

from __future__ import annotations

import re
from hashlib import blake2b

Attribute = str | int | float | bool
"""What a span may tell of itself."""

_HEX = re.compile("[0-9a-f]{32}")


def trace_id_of(id: str) -> int:
    """The trace id of a decision: the 32 hex digits of its own id; of a batch's, which has none, a hash.

    All its bits are as good as random, as samplers that go by a part of them expect.
    """
    digits = id.removeprefix("dec_")
    if _HEX.fullmatch(digits):
        return int(digits, 16)
    return int.from_bytes(blake2b(id.encode(), digest_size=16).digest())


def root_id_of(id: str) -> int:
    """The span id of a decision's root."""
    return int.from_bytes(blake2b(id.encode(), digest_size=8).digest())
