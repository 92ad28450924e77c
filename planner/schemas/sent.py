"""What an engine is sent of a schema: a grammar that xgrammar and llguidance both keep to.

It says less than the schema in what these break or ignore (lengths, patterns, uniqueness, negations), which
the full validation afterwards holds; and more in that every property is written, since a model skips what
it may.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from planner.schemas.finite import hopeless
from planner.schemas.keywords import ANNOTATIONS, Pointer, Schemas, told_types
from planner.schemas.merging import Merged, Nothing, merged
from planner.schemas.values import is_valid

MAX_ITEMS = 256
"""Most items that a grammar counts: more would be unrolled to more rules than a generation has tokens."""

MAX_DEPTH = 48
"""Deepest nesting of what is written before merging is given up: Python's stack holds some twice as much."""

MAX_SCHEMAS = 5_000
"""Most schemas that are written out before merging is given up."""

_LONGEST = 2**63 - 1024
"""The largest whole number of a grammar: without a bound a small model writes digits until it is cut. It is
a double too, so every engine reads it as it is."""

_TINIEST, _LARGEST = 1e-6, 1e12
"""Sizes of other numbers that it may be bounded by: llguidance writes such bounds out as digits."""

ANY: dict[str, Any] = {"type": ["object", "array", "string", "number", "boolean", "null"]}
"""The grammar of any JSON value. An empty schema would read as none at all."""

_OF_TYPE = {
    "object": (
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
    ),
    "array": (
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "unevaluatedItems",
    ),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""Keywords that speak of one type. A schema with some and no `type` is taken for that type."""


def sent_schema(schema: Any) -> dict[str, Any]:
    """The grammar of a checked schema, closed in itself: its references point to its own `$defs`."""
    schemas = Schemas.of(schema)
    try:
        return _Writer(schemas, MAX_SCHEMAS).whole()
    except _TooMany:
        return _Writer(schemas, None).whole()


class _TooMany(Exception):
    """Merging makes more schemas than are sent."""


class _Writer:
    """Writes one grammar. `room` is how many schemas it may write while it merges; with None it never merges:
    what stands beside a union, a reference or an `allOf` is left out, so the grammar is no larger than the
    schema.
    """

    def __init__(self, schemas: Schemas, room: int | None) -> None:
        self._schemas = schemas
        self._room = room
        self._written = 0
        self._depth = 0
        endless = hopeless(schemas, _written_of, _types_of)
        self._endless = {id(schemas.nodes[place]) for place in endless if schemas.nodes[place] is not False}
        dead = hopeless(schemas, lambda node: node.get("required", ()), told_types)
        self._dead = {id(schemas.nodes[place]) for place in dead if schemas.nodes[place] is not False}
        self._tags = list(_tags_of(schemas))
        self._names: dict[Pointer, str] = {}
        self._open: list[Pointer] = []

    def whole(self) -> dict[str, Any]:
        """The root's grammar, with those it refers to."""
        try:
            found = self._schema(self._schemas.root)
        except Nothing:
            found = ANY
        named: dict[str, Any] = {}
        while len(named) < len(self._names):
            place, name = list(self._names.items())[len(named)]
            try:
                named[name] = self._schema(self._schemas.nodes[place])
            except Nothing:
                named[name] = ANY
        return {**found, "$defs": named} if named else found

    def _schema(self, schema: Any) -> dict[str, Any]:
        """The grammar of a schema. Raises Nothing when no value is allowed."""
        if schema is False or id(schema) in self._dead:
            raise Nothing
        if schema is True:
            return ANY
        self._written += 1
        if self._room is not None and self._written > self._room:
            raise _TooMany
        followed = len(self._open)
        self._depth += 1
        if self._room is not None and self._depth > MAX_DEPTH:
            raise _TooMany
        try:
            return self._plain(self._unfolded(schema))
        finally:
            self._depth -= 1
            del self._open[followed:]

    def _unfolded(self, schema: Merged) -> Merged:
        """A schema with what it is merged of: its `allOf`, and the target of a `$ref` that has company."""
        own = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
        parts = own.pop("allOf", [])
        reference = own.get("$ref")
        if reference is not None and (own.keys() - {"$ref"} or parts):
            del own["$ref"]
            parts = [{"$ref": reference}, *parts]
        for part in parts:
            own = self._joined(own, part)
        return own

    def _joined(self, own: Merged, part: Any) -> Merged:
        """A schema and one more that holds for the same value."""
        if part is True:
            return own
        if part is False:
            raise Nothing
        inner = self._unfolded(part)
        if "$ref" in inner:
            place = self._schemas.place_of(inner["$ref"])
            if not own or self._room is None or place is None or place in self._open:
                return inner
            inner = self._followed(place)
        if "$ref" in own:
            return self._joined(inner, {"$ref": own["$ref"]})
        self._written += 1
        if self._room is not None and self._written > self._room:
            raise _TooMany
        return merged(own, inner)

    def _followed(self, place: Pointer) -> Merged:
        """The schema at a place, unfolded. Until its grammar is written it is not followed again."""
        self._open.append(place)
        node = self._schemas.nodes[place]
        inner = {} if node is True else self._joined({}, node)
        if "$ref" not in inner:
            return inner
        after = self._schemas.place_of(inner["$ref"])
        return {} if after is None or after in self._open else self._followed(after)

    def _plain(self, schema: Merged) -> dict[str, Any]:
        """The grammar of an unfolded schema."""
        if "$ref" in schema:
            place = self._schemas.place_of(schema["$ref"])
            assert place is not None, "references were checked"
            return {"$ref": f"#/$defs/{self._names.setdefault(place, f'r{len(self._names)}')}"}
        if "const" in schema or "enum" in schema:
            return _listed(schema)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                others = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
                return self._union(schema[keyword], others if self._room is not None else {})
        return self._typed(schema)

    def _union(self, branches: list[Any], beside: Merged) -> dict[str, Any]:
        """The branches, each with what stands beside the union."""
        found = [one for branch in branches for one in self._some(self._branch, branch, beside)]
        if not found:
            raise Nothing
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _branch(self, branch: Any, beside: Merged) -> dict[str, Any]:
        return self._schema({"allOf": [beside, branch]} if beside else branch)

    def _some(self, write: Callable[..., dict[str, Any]], *given: Any) -> Iterator[dict[str, Any]]:
        try:
            yield write(*given)
        except Nothing:
            return

    def _typed(self, schema: Merged) -> dict[str, Any]:
        types = _types_of(schema)
        writers: dict[str, Callable[[Merged], dict[str, Any]]] = {
            "object": self._object,
            "array": self._array,
            "number": _number,
            "integer": _integer,
        }
        found = [
            one
            for name in types
            for one in self._some(writers.get(name, lambda _, name=name: {"type": name}), schema)
        ]
        if types and not found:
            raise Nothing
        if not types:
            return ANY
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _object(self, schema: Merged) -> dict[str, Any]:
        declared: dict[str, Any] = dict(schema.get("properties", {}))
        required = set(schema.get("required", ()))
        rest = schema.get(
            "additionalProperties", next(iter(schema.get("patternProperties", {}).values()), True)
        )
        declared |= {name: rest for name in schema.get("required", ()) if name not in declared}
        if not declared and "properties" not in schema:
            if rest is False:
                return {"type": "object", "properties": {}, "additionalProperties": False}
            held = next(self._some(self._schema, rest), None)
            if held is None:
                return {"type": "object", "properties": {}, "additionalProperties": False}
            return {"type": "object", "additionalProperties": held}
        written: dict[str, Any] = {}
        optional: set[str] = set()
        for name in sorted(declared, key=lambda name: not self._is_tag(name, declared[name])):
            try:
                written[name] = self._schema(declared[name])
            except Nothing:
                if name in required:
                    raise
            if name not in required and self._is_endless(declared[name]):
                optional.add(name)
        return {
            "type": "object",
            "properties": written,
            "required": [name for name in written if name not in optional],
            "additionalProperties": False,
        }

    def _is_tag(self, name: str, schema: Any) -> bool:
        """Whether a property tells branches apart: they must be told before the rest is written."""
        for _ in range(MAX_ITEMS):
            if not isinstance(schema, dict):
                return False
            if name in self._tags or "const" in schema or len(schema.get("enum", ())) == 1:
                return True
            if "$ref" not in schema:
                return False
            schema = self._schemas.target(schema["$ref"])
        return False

    def _is_endless(self, schema: Any) -> bool:
        """Whether a property's value would have no end if all properties were written."""
        parts = schema.get("allOf", ()) if isinstance(schema, dict) else ()
        return any(id(one) in self._endless for one in (schema, *parts))

    def _array(self, schema: Merged) -> dict[str, Any]:
        most = min(schema.get("maxItems", math.inf), math.inf)
        first = schema.get("prefixItems", [])
        first = first[: int(min(most, len(first)))]
        least = int(min(max(schema.get("minItems", 0), len(first)), MAX_ITEMS))
        if schema.get("minItems", 0) > most:
            raise Nothing
        rest = schema.get("items", not first or schema.get("minItems", 0) > len(first))
        held = next(self._some(self._schema, rest), None) if most > len(first) else None
        if held is None and schema.get("minItems", 0) > len(first):
            raise Nothing
        if not first and held is None:
            return {"const": []}
        found: dict[str, Any] = {"type": "array"}
        if first:
            found["prefixItems"] = [self._schema(one) for one in first]
        found["items"] = False if held is None else held
        if least:
            found["minItems"] = least
        if held is None:
            found["maxItems"] = len(first)
        elif most <= MAX_ITEMS:
            found["maxItems"] = int(most)
        return found


def _types_of(schema: Merged) -> list[str]:
    """The types that a grammar gives to a schema."""
    return told_types(schema) or [
        name for name, keywords in _OF_TYPE.items() if schema.keys() & set(keywords)
    ]


def _written_of(schema: dict[str, Any]) -> list[str]:
    """The properties that a grammar has of a schema."""
    required = schema.get("required", ())
    declared = schema.get("properties", {})
    return [name for name, one in declared.items() if one is not False or name in required]


def _tags_of(schemas: Schemas) -> Iterator[str]:
    """The properties by which unions say that their branches are told apart."""
    for node in schemas.nodes.values():
        told = node.get("discriminator") if isinstance(node, dict) else None
        if isinstance(told, dict) and isinstance(told.get("propertyName"), str):
            yield told["propertyName"]


def _listed(schema: Merged) -> dict[str, Any]:
    """The listed values that the rest of their schema allows."""
    telling = ("type", *_OF_TYPE["string"], *_OF_TYPE["number"], *(("const",) if "enum" in schema else ()))
    beside = {key: schema[key] for key in telling if key in schema}
    listed = schema["enum"] if "enum" in schema else [schema["const"]]
    found = [value for value in listed if is_valid(value, beside)]
    if not found:
        raise Nothing
    return {"const": found[0]} if len(found) == 1 else {"enum": found}


def _integer(schema: Merged) -> dict[str, Any]:
    """Whole numbers, with both bounds among them."""
    lows = [math.ceil(schema["minimum"])] if "minimum" in schema else []
    lows += [math.floor(schema["exclusiveMinimum"]) + 1] if "exclusiveMinimum" in schema else []
    highs = [math.floor(schema["maximum"])] if "maximum" in schema else []
    highs += [math.ceil(schema["exclusiveMaximum"]) - 1] if "exclusiveMaximum" in schema else []
    if lows and highs and max(lows) > min(highs):
        raise Nothing
    low, high = max(lows, default=-_LONGEST), min(highs, default=_LONGEST)
    low, high = max(low, -_LONGEST), min(high, _LONGEST)
    # What lies beyond can be written all the same: 1e30 is a whole number.
    return {"type": "integer"} | ({"minimum": low, "maximum": high} if low <= high else {})


def _number(schema: Merged) -> dict[str, Any]:
    bounds = {
        key: schema[key]
        for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
        if key in schema and (schema[key] == 0 or _TINIEST <= abs(schema[key]) <= _LARGEST)
    }
    low = max((bounds[key] for key in ("minimum", "exclusiveMinimum") if key in bounds), default=-math.inf)
    high = min((bounds[key] for key in ("maximum", "exclusiveMaximum") if key in bounds), default=math.inf)
    if low > high:
        raise Nothing
    return {"type": "number"} | bounds
