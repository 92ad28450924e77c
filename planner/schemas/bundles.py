"""A schema taken out of another one, with all it refers to."""

from __future__ import annotations

from typing import Any

from planner.schemas.keywords import MANY, NAMED, ONE, Pointer, Schemas

_LEFT = frozenset({"$anchor", "$defs", "$id", "$schema", "definitions"})
"""What would point into the schema that another one was taken out of."""


def bundle(schema: Any, schemas: Schemas) -> Any:
    """A schema of a checked root by itself: what it refers to stands under its own `$defs`."""
    names: dict[Pointer, str] = {}
    found = _rewritten(schema, schemas, names)
    held: dict[str, Any] = {}
    while len(held) < len(names):
        place, name = list(names.items())[len(held)]
        held[name] = _rewritten(schemas.nodes[place], schemas, names)
    return {**found, "$defs": held} if held else found


def _rewritten(schema: Any, schemas: Schemas, names: dict[Pointer, str]) -> Any:
    if not isinstance(schema, dict):
        return schema

    def inner(one: Any) -> Any:
        return _rewritten(one, schemas, names)

    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "$ref":
            place = schemas.place_of(value)
            assert place is not None, "references were checked"
            found[keyword] = f"#/$defs/{names.setdefault(place, _name(place, names))}"
        elif keyword in ONE:
            found[keyword] = inner(value)
        elif keyword in MANY:
            found[keyword] = [inner(one) for one in value]
        elif keyword in NAMED and keyword not in _LEFT:
            found[keyword] = {name: inner(one) for name, one in value.items()}
        elif keyword not in _LEFT:
            found[keyword] = value
    return found


def _name(place: Pointer, names: dict[Pointer, str]) -> str:
    """A definition's own name where it has a plain one, so that messages stay readable."""
    own = place[1] if len(place) == 2 and place[0] == "$defs" else ""
    return own if own.isidentifier() and own.isascii() and own not in names.values() else f"r-{len(names)}"
