"""The states of a batch as they wait in the store: one line each, as it came.

    =LINE    a JSON object with a `state`, and maybe a `custom_id`
    !LINE    what could not become one: a JSON array of custom id, code and message

A line is looked at when it is fed, so that taking a batch in costs little, and a bad line fails alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from pydantic import ValidationError

from planner.decision import Decision
from planner.dialects import DIALECTS
from planner.dialects.wording import in_json_words
from planner.errors import Invalid
from planner.json_depth import MAX_DEPTH, is_too_deep
from planner.json_numbers import exact

MOST_CUSTOM_ID = 256
"""Characters of a custom id."""

DIALECT = "systemone"
"""The door whose language a batch speaks."""


class BadLine(Exception):
    """A state that cannot be a decision: a stable code and a sentence, and its custom id where it has one."""

    def __init__(self, code: str, message: str, custom_id: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.custom_id = custom_id


@dataclass(frozen=True, slots=True)
class Line:
    """A state and the name its client gave it."""

    custom_id: str | None
    state: Any


def good_line(content: bytes) -> bytes:
    """The line of some JSON as it came; it must hold no line break."""
    return b"=" + content


def bad_line(code: str, message: str, custom_id: str | None = None) -> bytes:
    """The line of a state that could not be read."""
    return b"!" + orjson.dumps((custom_id, code, message))


def read_line(line: bytes) -> Line:
    """What a line holds. Raises BadLine."""
    kind, content = line[:1], line[1:]
    if kind == b"!":
        custom_id, code, message = orjson.loads(content)
        raise BadLine(code, message, custom_id)
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise BadLine("invalid_json", f"the line is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadLine("invalid_request", "the line is no JSON object with a `state`")
    custom_id = value.get("custom_id")
    if custom_id is not None and not (isinstance(custom_id, str) and len(custom_id) <= MOST_CUSTOM_ID):
        raise BadLine("bad_custom_id", f"custom_id: a text of at most {MOST_CUSTOM_ID} characters")
    if "state" not in value:
        raise BadLine("missing_state", "state: the line has none", custom_id)
    if is_too_deep(value, content):
        raise BadLine("invalid_json", f"the line is nested more than {MAX_DEPTH} deep", custom_id)
    return Line(custom_id, exact(value, content)["state"])


def custom_id_of(line: bytes) -> str | None:
    """The custom id of a line, as far as it has a good one."""
    try:
        return read_line(line).custom_id
    except BadLine as bad:
        return bad.custom_id


def decision_of(request: Mapping[str, Any], line: Line, salt: str) -> Decision:
    """The decision that a state is with what its batch asks. Raises BadLine."""
    try:
        return replace(DIALECTS[DIALECT].parse({**request, "state": line.state}), salt=salt)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise BadLine("invalid_request", f"{path}: {in_json_words(first['msg'])}", line.custom_id) from error
    except Invalid as error:
        raise bad_line_of(error, line.custom_id) from error


def bad_line_of(error: Invalid, custom_id: str | None) -> BadLine:
    """The bad line that a refusal of the planner makes of a state."""
    code = "invalid_request" if error.kind == "value_error" else error.kind
    path = ".".join(map(str, error.loc))
    return BadLine(code, f"{path}: {error.message}" if path else error.message, custom_id)
