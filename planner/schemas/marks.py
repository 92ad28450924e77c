"""Canvass's own marks in a schema (`x-canvass`): what they may be, and of what."""

from __future__ import annotations

from typing import Any

from planner.errors import Invalid, Location
from planner.schemas.keywords import Schemas, as_list

PIECE = ("text", "start", "end")
"""What an object says of a piece of the text."""

_KNOWN = {"alone": bool, "max_tokens": int, "span": bool}


def check_marks(schemas: Schemas, loc: Location) -> None:
    """Raise Invalid at the first mark of a checked schema that says nothing known."""
    for place, node in schemas.nodes.items():
        if isinstance(node, dict) and "x-canvass" in node:
            told = _fault(node["x-canvass"])
            if told:
                raise Invalid((*loc, *place, "x-canvass"), told, kind="schema_mark")


def _fault(marks: Any) -> str:
    if not isinstance(marks, dict):
        return f"marks are an object with {', '.join(_KNOWN)}"
    for name, value in marks.items():
        if name not in _KNOWN:
            return f"there is no mark {name[:50]!r}; the marks are {', '.join(_KNOWN)}"
        if type(value) is not _KNOWN[name]:
            kind = "true or false" if _KNOWN[name] is bool else "a whole number"
            return f"the mark {name} is {kind}, not {str(value)[:50]}"
    return ""


def can_be_found(schema: Any) -> bool:
    """Whether a piece of the text, or the object that tells of it, may be a value of a schema."""
    if not isinstance(schema, dict):
        return False
    types = as_list(schema["type"]) if "type" in schema else ["object"]
    needed = set(schema.get("required", ()))
    return is_bare(schema) or ("object" in types and needed <= set(PIECE))


def is_bare(schema: dict[str, Any]) -> bool:
    """Whether a piece is told by its text alone."""
    return schema.get("type") in ("string", ["string"])
