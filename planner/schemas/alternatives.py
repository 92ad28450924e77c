"""The values that a field is asked among, as the alternatives of a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.decision import NO, YES, Alternative
from planner.schemas.keywords import Pointer
from planner.schemas.reading import Known, Value, integers, listed, only
from planner.schemas.wording import names_of

_BOTH = [True, False]


def values_of(schema: dict[str, Any], known: Known, open: frozenset[Pointer]) -> list[Value] | None:
    """The values that a field may have, where they are few enough to ask among."""
    if schema.get("type") in ("null", ["null"]) and only(schema, "type"):
        return [(None, "")]
    if "const" in schema and isinstance(schema["const"], dict | list):
        return [(schema["const"], "")]
    if schema.get("type") == "boolean" and not schema.keys() & {"const", "enum"}:
        return listed({**schema, "enum": _BOTH}, known, open)
    found = listed(schema, known, open)
    if found is None:
        numbers = integers(schema, known)
        found = None if numbers is None else [(number, "") for number in numbers]
    return found


def type_of(schema: dict[str, Any]) -> str:
    """The question type of a field with few values."""
    if schema.keys() & {"const", "enum", "anyOf", "oneOf"}:
        return "choice"
    return "noul" if schema.get("type") == "boolean" else "score"


def _options(values: list[Value]) -> tuple[Alternative, ...]:
    names = names_of([value for value, _ in values])
    return tuple(Alternative(name, about or None) for name, (_, about) in zip(names, values, strict=True))


def _levels(values: list[Value]) -> tuple[Alternative, ...]:
    return tuple(Alternative(str(level), str(value), str(value)) for level, (value, _) in enumerate(values))


NOUL = (Alternative(YES), Alternative(NO))
"""The alternatives of a noul."""

ALTERNATIVES: dict[str, Callable[[list[Value]], tuple[Alternative, ...]]] = {
    "noul": lambda _: NOUL,
    "choice": _options,
    "score": _levels,
}
"""The alternatives of a question about a field with these values, by its type."""
