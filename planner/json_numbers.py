"""JSON with whole numbers of any size. orjson makes floats of those over 64 bits, and writes none of them."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_LONG = re.compile(rb"[0-9]{19}")
"""In what may hold a whole number over 64 bits: the shortest is a negative one of 19 digits."""


def exact(value: Any, content: bytes) -> Any:
    """A value that orjson decoded from a content, its whole numbers with all their digits.

    The content nests no deeper than `planner.json_depth.MAX_DEPTH`.
    """
    # What orjson takes is strict JSON, and no number in it is larger than a float may be.
    return json.loads(content) if _LONG.search(content) else value


def exact_json(value: Any) -> bytes:
    """A value as JSON, whatever the size of its whole numbers. Raises TypeError for what is no JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
