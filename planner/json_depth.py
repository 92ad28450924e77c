"""How deep JSON may nest: what decodes it stops at a depth of its own, and what walks it may not."""

from __future__ import annotations

import json
from typing import Any

import orjson

MAX_DEPTH = 100
"""Deepest nesting of arrays and objects that is ever taken in."""


def is_too_deep(value: Any, content: bytes, limit: int = MAX_DEPTH) -> bool:
    """Whether a value nests deeper than a limit; `content` is the JSON that it was decoded from."""
    return content.count(b"[") + content.count(b"{") > limit and _depth_over(value, limit)


def _depth_over(value: Any, limit: int) -> bool:
    """Whether a decoded value nests deeper than `limit`; level by level, so that depth costs no stack."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return bool(level)


class TooDeep(Exception):
    """A text spells JSON that nests deeper than is taken in."""


def json_of(text: str) -> Any:
    """The value that a text spells as JSON, with whole numbers of any size; None when it spells none.

    Raises TooDeep.
    """
    try:
        # orjson is strict (no NaN, no half of a surrogate pair), but makes floats of large whole numbers.
        content = text.encode()
        orjson.loads(content)
        value = json.loads(text)
    except RecursionError as error:
        raise TooDeep from error
    except ValueError as error:
        # orjson stops at 1024 levels, and says so in words only.
        if "depth limit" in str(error):
            raise TooDeep from error
        return None
    if is_too_deep(value, content):
        raise TooDeep
    return value
