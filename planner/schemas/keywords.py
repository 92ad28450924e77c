"""Where schemas stand inside a schema (JSON Schema 2020-12), and how they refer to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

Pointer = tuple[str, ...]
"""A place in a JSON value: the keys and positions that lead to it."""

ONE = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords that hold one schema."""

MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords that hold a list of schemas."""

NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Keywords that hold schemas by name. The names are the client's: any of them may spell a keyword."""

IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas are about the same value as the schema that they stand in."""

ANNOTATIONS = frozenset(
    {
        "$comment",
        "$defs",
        "$id",
        "$schema",
        "alone",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "discriminator",
        "example",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
        "x-canvass",
    }
)
"""Keywords that refuse no value."""


def children(schema: Any) -> Iterator[tuple[Pointer, Any]]:
    """The schemas that stand directly in a schema, each with the way to it."""
    for keyword, value in schema.items() if isinstance(schema, dict) else ():
        if keyword in ONE:
            yield (keyword,), value
        elif keyword in MANY:
            yield from (((keyword, str(place)), one) for place, one in enumerate(value))
        elif keyword in NAMED:
            yield from (((keyword, name), one) for name, one in value.items())


def positions(schema: Any) -> dict[Pointer, Any]:
    """Every schema in a schema, itself first, by its place. The schema's own shape was checked before."""
    found: dict[Pointer, Any] = {}
    waiting: list[tuple[Pointer, Any]] = [((), schema)]
    while waiting:
        place, node = waiting.pop()
        found[place] = node
        waiting += [((*place, *step), child) for step, child in children(node)][::-1]
    return found


def escaped(token: str) -> str:
    """A key as a JSON pointer spells it."""
    return token.replace("~", "~0").replace("/", "~1")


def spelled(place: Pointer) -> str:
    """A place as a JSON pointer."""
    return "".join(f"/{escaped(token)}" for token in place)


def as_list(value: Any) -> list[str]:
    """What `type` holds, as a list."""
    return [value] if isinstance(value, str) else list(value)


def told_types(schema: Any) -> list[str]:
    """The types that a schema says its values have; empty where it does not say."""
    return as_list(schema["type"]) if "type" in schema else []


def same_as(value: Any) -> Any:
    """What tells JSON values apart: Python's `==` takes true for 1."""
    if isinstance(value, dict):
        return ("object", frozenset((key, same_as(one)) for key, one in value.items()))
    if isinstance(value, list):
        return ("array", tuple(same_as(one) for one in value))
    return ("boolean" if isinstance(value, bool) else "plain", value)


@dataclass(frozen=True)
class Schemas:
    """A root schema, every schema in it by its place, and the places that have an anchor."""

    root: Any
    nodes: dict[Pointer, Any]
    anchors: dict[str, Pointer]

    @staticmethod
    def of(root: Any) -> Schemas:
        """The schemas in a root schema."""
        nodes = positions(root)
        anchors = {
            node["$anchor"]: place
            for place, node in nodes.items()
            if isinstance(node, dict) and "$anchor" in node
        }
        return Schemas(root, nodes, anchors)

    def place_of(self, reference: str) -> Pointer | None:
        """Where a `$ref` points to; None when it is not local, or no schema is there."""
        if not reference.startswith("#"):
            return None
        fragment = unquote(reference[1:])
        if fragment and not fragment.startswith("/"):
            return self.anchors.get(fragment)
        tokens = (token.replace("~1", "/").replace("~0", "~") for token in fragment.split("/")[1:])
        place = tuple(tokens)
        return place if place in self.nodes else None

    def target(self, reference: str) -> Any:
        """The schema that a `$ref` of a checked schema points to."""
        place = self.place_of(reference)
        assert place is not None, "references were checked"
        return self.nodes[place]
