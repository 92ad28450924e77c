"""Schemas that mean no good, and schemas that only look so."""

from __future__ import annotations

from typing import Any

from tests.planner.schemas.form_support import record

NODE = {"type": "object", "properties": {"next": {"$ref": "#"}, "value": {"type": "string"}}}
"""A list without end, if every property were written."""

TREE = {
    "$defs": {
        "Tree": record(
            leaf={"type": "number", "minimum": 0},
            below={"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            next={"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]},
        )
    },
    "$ref": "#/$defs/Tree",
}

EXPRESSION = {
    "$defs": {
        "E": {
            "anyOf": [
                record(op={"const": "add"}, left={"$ref": "#/$defs/E"}, right={"$ref": "#/$defs/E"}),
                record(op={"const": "mul"}, left={"$ref": "#/$defs/E"}, right={"$ref": "#/$defs/E"}),
                {"type": "integer"},
            ]
        }
    },
    "$ref": "#/$defs/E",
}
"""Every level of a value doubles the work of a plain validator."""


def chained(length: int, link: Any, end: Any) -> dict[str, Any]:
    """A chain of definitions: `link` makes a schema of the reference to the next."""
    defs = {f"d{number}": link({"$ref": f"#/$defs/d{number + 1}"}) for number in range(length)}
    return {"$defs": {**defs, f"d{length}": end}, "$ref": "#/$defs/d0"}


ACCEPTED: dict[str, Any] = {
    "anything": True,
    "empty": {},
    "no type": {"minLength": 3},
    "a list without end": NODE,
    "a tree": TREE,
    "an expression": EXPRESSION,
    "4000 branches": {"anyOf": [{"const": number} for number in range(4000)]},
    "siblings of anyOf": {
        "anyOf": [{"type": "string"}, {"type": "object", "properties": {"a": True}}],
        "properties": {"b": {"type": "null"}},
        "required": ["c"],
    },
    "siblings of $ref": {
        "$defs": {"a": record(x={"type": "number"})},
        "properties": {"y": {"$ref": "#/$defs/a", "properties": {"x": {"minimum": 3}}}},
    },
    "siblings of a recursive $ref": {"properties": {"x": {"$ref": "#", "minProperties": 1}}},
    "siblings all the way down": chained(
        60, lambda ref: {"properties": {"a": {**ref, "maxProperties": 9}}}, {"type": "string"}
    ),
    "siblings that double": chained(
        60,
        lambda ref: {"properties": {"a": {**ref, "maxProperties": 9}, "b": {**ref, "maxProperties": 8}}},
        {"type": "string"},
    ),
    "a wide merge": {
        "anyOf": [{"$ref": "#/$defs/o"}] * 1500,
        "$defs": {"o": {"properties": {f"p{number}": {"type": "string"} for number in range(500)}}},
        "required": ["z"],
    },
    "1500 allOf": {"allOf": [{"properties": {"x": {"minLength": number}}} for number in range(1500)]},
    "look-ahead": {"type": "string", "pattern": "^(?=.*a).+$"},
    "a pattern that backtracks": {"type": "string", "pattern": "^(a|a)*(?=b)$"},
    "lengths": {"type": "string", "minLength": 2, "maxLength": 2},
    "uniqueItems": {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 2},
    "too many items": {"type": "array", "items": {"type": "null"}, "minItems": 10**9},
    "a huge number": {"type": "number", "minimum": 1e300},
    "a tiny number": {"type": "number", "minimum": 1e-300},
    "properties named like keywords": record(
        pattern={"type": "string", "pattern": "a"},
        required={"type": "boolean"},
        properties={"type": "object", "properties": {"not": {"type": "null"}}},
        anyOf={"type": "integer"},
        type={"const": "type"},
        alone={"type": "null"},
    )
    | {"$defs": {"$ref": {"type": "null"}}},
    "odd keys": record(
        **{"": {}, "a/b~c": {"$ref": "#/properties/"}, "__proto__": {"type": "null"}, "%25": {}}
    ),
    "an escaped reference": {"$defs": {"a/b c%": {"type": "null"}}, "$ref": "#/$defs/a~1b%20c%25"},
    "an anchor": {"properties": {"a": {"$ref": "#here"}, "b": {"$anchor": "here", "type": "null"}}},
    "conditions": {"if": {"type": "string"}, "then": {"minLength": 3}, "not": {"const": 3}, "contains": {}},
    "dead branches": {"anyOf": [False, {"type": "string", "enum": [1]}, {"enum": ["a"]}]},
    "an unknown keyword that refers away": {"x-more": {"$ref": "http://127.0.0.1:1/"}, "type": "null"},
    "a false property": {"type": "object", "properties": {"a": False, "b": {"type": "null"}}},
    "tuples": {"type": "array", "prefixItems": [{"type": "null"}, True], "items": False},
    "a map by pattern": {"type": "object", "patternProperties": {"^a": {"type": "integer"}}},
    "a long text": {"type": "string", "description": "x" * 60_000},
}
