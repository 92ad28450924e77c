"""`canvass ask`: a decision from a file or standard input, posted as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson

from client.errors import BadDecisionFile

STANDARD_INPUT = "-"
DEFAULT_MODEL = "jev-latest"


def read_decision(file: str) -> dict[str, Any]:
    """The JSON object in a file, or on standard input for `-`. Raises `BadDecisionFile`."""
    name = "standard input" if file == STANDARD_INPUT else file
    try:
        content = sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file).read_bytes()
        body = orjson.loads(content)
    except OSError as error:
        raise BadDecisionFile(f"Cannot read {name}: {error.strerror}.") from error
    except orjson.JSONDecodeError as error:
        raise BadDecisionFile(f"No JSON in {name}: {error}. {BadDecisionFile.__doc__}") from error
    if not isinstance(body, dict):
        raise BadDecisionFile(f"{name} holds no JSON object. {BadDecisionFile.__doc__}")
    return body


def completed(body: dict[str, Any], *, diagnostics: bool) -> dict[str, Any]:
    """The body with the default model where it names none, and asking for diagnostics if wanted."""
    asked = {"diagnostics": True} if diagnostics else {}
    return {"model": DEFAULT_MODEL, **body, **asked}


def parse_answer(content: bytes) -> dict[str, Any] | None:
    """A response body, None when it is not that of a decision."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return body if isinstance(body, dict) and isinstance(body.get("answers"), dict) else None
