"""Schemas that would do harm, each with what a model writes and what becomes of it."""

from __future__ import annotations

from typing import Any, NamedTuple

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["name", "children"],
    "additionalProperties": False,
}
SHAPES: dict[str, Any] = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"radius": {"type": "number"}, "kind": {"const": "circle"}},
            "required": ["kind", "radius"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"side": {"type": "number"}, "kind": {"const": "square"}},
            "required": ["kind", "side"],
            "additionalProperties": False,
        },
    ]
}
SIBLINGS: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 2}, "a": {"type": "integer"}},
    "required": ["name"],
    "anyOf": [{"required": ["a"]}, {"properties": {"b": {"type": "boolean"}}, "required": ["b"]}],
}
NO_BAD = {"type": "string", "pattern": "^(?!.*bad).*$"}
SLOW_PATTERN = {"type": "string", "pattern": "^(a|a)*(?=b)$"}


class Written(NamedTuple):
    """A schema that is taken, what the model writes for it each time, and whether that is valid."""

    schema: Any
    text: str
    valid: bool
    finish: str = "stop"


WRITTEN: dict[str, Written] = {
    "a tree": Written(TREE, '{"name": "a", "children": [{"name": "b", "children": []}]}', True),
    "a tree with a stray": Written(TREE, '{"name": "a", "children": [{"name": "b"}]}', False),
    "a tree without end": Written(TREE, '{"name": "a", "children": [' * 200 + "]}" * 200, False),
    "siblings of a union": Written(SIBLINGS, '{"name": "Bo", "b": true}', True),
    "siblings that fail": Written(SIBLINGS, '{"name": "B", "a": 1}', False),
    "a union that fails": Written(SIBLINGS, '{"name": "Bo"}', False),
    "look ahead": Written(NO_BAD, '"all good"', True),
    "look ahead at bad": Written(NO_BAD, '"so bad"', False),
    "a pattern that never ends": Written(SLOW_PATTERN, f'"{"a" * 60}"', False),
    "a short string": Written({"type": "string", "minLength": 2, "maxLength": 3}, '"ab"', True),
    "too long a string": Written({"type": "string", "maxLength": 3}, '"abcd"', False),
    "too short a string": Written({"type": "string", "minLength": 3}, '"ab"', False),
    "characters, not bytes": Written({"type": "string", "maxLength": 2}, '"😀ü"', True),
    "distinct items": Written({"type": "array", "uniqueItems": True}, "[1, true, 2]", True),
    "items twice": Written({"type": "array", "uniqueItems": True}, "[1, 2, 1.0]", False),
    "a number without end": Written({"type": "number"}, "1e400", False),
    "a whole number of 70 bits": Written({"type": "integer"}, str(2**70), False),
    "not a number": Written({"type": "number"}, "NaN", False),
    "a multiple": Written({"type": "number", "multipleOf": 0.01}, "0.07", True),
    "a key twice": Written({"type": "object"}, '{"a": 1, "a": 2}', False),
    "half a pair": Written({"type": "string"}, '"\\ud800"', False),
    "a value and more": Written({"type": "integer"}, "7 apples", False),
    "a fenced value": Written({"type": "integer"}, "```json\n7\n```", False),
    "prose": Written({"type": "object"}, "I cannot say.", False),
    "nothing": Written({"type": "object"}, "", False),
    "a tag": Written(SHAPES, '{"kind": "circle", "radius": 3}', True),
    "no tag": Written(SHAPES, '{"radius": 3}', False),
    "the tag of another": Written(SHAPES, '{"kind": "square", "radius": 3}', False),
    "cut off": Written({"type": "object"}, '{"a": "b', False, "length"),
    "cut off where it is whole": Written({"type": "integer"}, "12", False, "length"),
    "filtered": Written({"type": "integer"}, "12", False, "content_filter"),
    "never by a not": Written({"type": "integer", "not": {"type": "number"}}, "7", False),
    "never by two types": Written({"allOf": [{"type": "integer"}, {"type": "string"}]}, "7", False),
    "anything": Written(True, '{"a": [null]}', True),
    "many branches": Written({"anyOf": [{"const": number} for number in range(500)]}, "499", True),
}

REFUSED: dict[str, tuple[Any, str]] = {
    "no schema": ("string", "dict_type"),
    "false": (False, "schema_unsatisfiable"),
    "of itself": ({"$ref": "#"}, "schema_reference"),
    "of each other": (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        "schema_reference",
    ),
    "elsewhere": ({"$ref": "http://127.0.0.1:1/schema.json"}, "schema_reference"),
    "nowhere": ({"$ref": "#/$defs/none"}, "schema_reference"),
    "a dynamic reference": ({"$dynamicRef": "#node"}, "schema_keyword"),
    "values without end": (
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]},
        "schema_unsatisfiable",
    ),
    "too large": ({"enum": ["x" * 100 + str(number) for number in range(1000)]}, "schema_too_large"),
    "too deep": ({"items": {"items": {"items": None}}}, "schema_invalid"),
    "an empty range": ({"type": "integer", "minimum": 3, "maximum": 2}, "schema_unsatisfiable"),
    "an empty enum": ({"enum": []}, "schema_unsatisfiable"),
    "a required that is false": (
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        "schema_unsatisfiable",
    ),
    "an odd type": ({"type": "float"}, "schema_invalid"),
    "another draft": ({"$schema": "http://json-schema.org/draft-04/schema#"}, "schema_dialect"),
    "a pattern that is none": ({"type": "string", "pattern": "("}, "schema_pattern"),
    "a look-ahead under not": ({"not": {"type": "string", "pattern": "^(?!a)"}}, "schema_pattern"),
    "too many patterns": (
        {"properties": {str(number): {"pattern": f"a{number}"} for number in range(201)}},
        "schema_too_large",
    ),
}
"""Schemas that are refused before anything runs, each with the code of what is wrong."""


def deep(levels: int) -> Any:
    """A schema of so many levels."""
    schema: Any = {"type": "integer"}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


def wide(levels: int) -> Any:
    """A schema that is small, and holds a value against two to the power of `levels` others."""
    defs: dict[str, Any] = {f"d{levels}": {"type": "integer"}}
    for level in range(levels):
        defs[f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2}
    return {"$defs": defs, "$ref": "#/$defs/d0"}


REFUSED["too deep"] = (deep(40), "schema_too_deep")
REFUSED["too wide"] = (wide(20), "schema_too_wide")
