"""What a JSON Schema may be: 2020-12, bounded, closed in itself, and such that some value fits it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import orjson

from planner.errors import Invalid, Location
from planner.schemas.finite import hopeless
from planner.schemas.keywords import IN_PLACE, Pointer, Schemas, told_types
from planner.schemas.values import PATTERN_SIZE, validator_of

MAX_BYTES = 64 * 1024
"""Most bytes of JSON a schema may take."""

MAX_NESTING = 32
"""Deepest nesting of objects and arrays in a schema."""

MAX_PATTERNS = 200
"""Most patterns in a schema: compiling one may take two milliseconds."""

MAX_IN_PLACE = 10_000
"""Most schemas that one value may have to be held against, references followed and repeats counted."""

MAX_CHAIN = 64
"""Longest chain of schemas, references followed, that one value is held against."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_REFUSED = {
    "$dynamicRef": "use $ref",
    "$dynamicAnchor": "use $anchor",
    "$recursiveRef": "use $ref",
    "$recursiveAnchor": "use $anchor",
    "$vocabulary": "only the standard vocabulary is taken",
}

_RANGES = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
)

_UNSURE = frozenset({"not", "if", "oneOf", "contains", "patternProperties"})
"""Keywords under which a pattern that was given up on would make a value valid."""


def check_schema(schema: Any, loc: Location = ()) -> None:
    """Raise Invalid when a schema cannot be asked for; `loc` is the schema's own path in the request."""
    if not isinstance(schema, dict | bool):
        raise Invalid(loc, "a JSON Schema is an object or a boolean", kind="schema_type", given=schema)
    _check_json(schema, loc)
    _check_size(schema, loc)
    if isinstance(schema, dict):
        _check_dialect(schema, loc)
    schemas = Schemas.of(schema)
    for place, node in schemas.nodes.items():
        if isinstance(node, dict):
            _check_node(schemas, place, node, loc)
    _check_in_place(schemas, loc)
    _check_patterns(schemas, loc)
    if () in hopeless(schemas, lambda node: node.get("required", ()), told_types):
        raise Invalid(loc, "no value can ever be valid against this schema", kind="schema_unsatisfiable")
    try:
        validator_of(schema)
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        raise Invalid(
            loc, f"this schema cannot be used: {_first_line(error)}", kind="schema_invalid"
        ) from error


def _check_json(schema: Any, loc: Location) -> None:
    """Nothing but JSON, not too deep. Level by level, so that depth costs no stack."""
    level: list[tuple[Pointer, Any]] = [((), schema)]
    for _ in range(MAX_NESTING + 1):
        below: list[tuple[Pointer, Any]] = []
        for place, node in level:
            if isinstance(node, dict):
                if not all(isinstance(key, str) for key in node):
                    raise Invalid((*loc, *place), "keys are strings in JSON", kind="schema_invalid")
                below += [((*place, key), child) for key, child in node.items()]
            elif isinstance(node, list):
                below += [((*place, str(number)), child) for number, child in enumerate(node)]
            elif isinstance(node, float) and not math.isfinite(node):
                raise Invalid((*loc, *place), f"{node} is no number of JSON", kind="schema_number")
            elif not isinstance(node, str | int | float | None):
                told = type(node).__name__
                raise Invalid((*loc, *place), f"{told} is no type of JSON", kind="schema_invalid")
        if not below:
            return
        level = below
    raise Invalid(
        (*loc, *level[0][0]),
        f"this schema nests deeper than {MAX_NESTING} levels",
        kind="schema_too_deep",
        given=MAX_NESTING + 1,
    )


def _check_size(schema: Any, loc: Location) -> None:
    try:
        size = len(orjson.dumps(schema))
    except TypeError as error:
        told = "a whole number has more than 64 bits, or a text half of a surrogate pair"
        raise Invalid(loc, f"this schema cannot be written as JSON: {told}", kind="schema_number") from error
    if size > MAX_BYTES:
        raise Invalid(
            loc,
            f"this schema takes {size} bytes of JSON; the most is {MAX_BYTES}",
            kind="schema_too_large",
            given=size,
        )


def _check_dialect(schema: dict[str, Any], loc: Location) -> None:
    """The draft, and the shape that its meta-schema asks for."""
    draft = schema.get("$schema", DIALECT)
    if not isinstance(draft, str) or draft.rstrip("#") != DIALECT:
        raise Invalid((*loc, "$schema"), f"only {DIALECT} is taken", kind="schema_dialect", given=draft)
    try:
        jsonschema_rs.meta.validate({**schema, "$schema": DIALECT})
    except jsonschema_rs.ValidationError as error:
        place = tuple(error.instance_path)
        raise Invalid((*loc, *place), _first_line(error), kind="schema_invalid") from error


def _check_node(schemas: Schemas, place: Pointer, node: dict[str, Any], loc: Location) -> None:
    here = (*loc, *place)
    for keyword, instead in _REFUSED.items():
        if keyword in node:
            raise Invalid((*here, keyword), f"{keyword} is not taken; {instead}", kind="schema_keyword")
    if place and ("$id" in node or "$schema" in node):
        keyword = "$id" if "$id" in node else "$schema"
        raise Invalid(
            (*here, keyword), f"{keyword} is taken at the root of a schema alone", kind="schema_keyword"
        )
    if "$anchor" in node and schemas.anchors[node["$anchor"]] != place:
        raise Invalid((*here, "$anchor"), "this anchor is there twice", kind="schema_reference")
    reference = node.get("$ref")
    if reference is not None and schemas.place_of(reference) is None:
        told = (
            "points to no schema in here"
            if reference.startswith("#")
            else 'leads elsewhere; only "#..." is taken'
        )
        raise Invalid((*here, "$ref"), f"this reference {told}", kind="schema_reference", given=reference)
    for told in _contradictions(node):
        raise Invalid(here, f"no value can ever be valid: {told}", kind="schema_unsatisfiable")


def _contradictions(node: dict[str, Any]) -> Iterator[str]:
    """What one schema says against itself."""
    for low, high in _RANGES:
        if low in node and high in node and node[low] > node[high]:
            yield f"{low} {node[low]} is over {high} {node[high]}"
    if "enum" in node and not node["enum"]:
        yield "enum is empty"
    declared = node.get("properties", {})
    for name in node.get("required", ()):
        if declared.get(name) is False:
            yield f"{name!r} is required, and its schema is false"


def _check_in_place(schemas: Schemas, loc: Location) -> None:
    """A value must not be held against a schema for ever, nor against too many, nor through too many.

    Counted from the innermost outwards, without recursion: a chain of references may be long.
    """
    counts: dict[Pointer, int] = {}
    lengths: dict[Pointer, int] = {}
    entered: dict[Pointer, list[Pointer]] = {}
    stack = list(schemas.nodes)
    while stack:
        place = stack[-1]
        if place in counts:
            stack.pop()
        elif place in entered:
            stack.pop()
            counts[place] = 1 + sum(counts[one] for one in entered[place])
            lengths[place] = 1 + max((lengths[one] for one in entered[place]), default=0)
            if lengths[place] > MAX_CHAIN:
                told = f"a value is held against a chain of more than {MAX_CHAIN} schemas here"
                raise Invalid((*loc, *place), told, kind="schema_too_deep")
            if counts[place] > MAX_IN_PLACE:
                told = f"a value would be held against more than {MAX_IN_PLACE} schemas here"
                raise Invalid((*loc, *place), told, kind="schema_too_wide")
        else:
            entered[place] = _in_place(schemas, place)
            waiting = [one for one in entered[place] if one not in counts]
            for one in waiting:
                # Entered and not counted: it is on the way to this place.
                if one in entered:
                    told = "this schema refers to itself without end"
                    raise Invalid((*loc, *one), told, kind="schema_reference")
            stack += waiting


def _in_place(schemas: Schemas, place: Pointer) -> list[Pointer]:
    """The schemas that a value of this schema is held against as well."""
    node = schemas.nodes[place]
    if not isinstance(node, dict):
        return []
    found = [target] if "$ref" in node and (target := schemas.place_of(node["$ref"])) is not None else []
    for keyword in IN_PLACE & node.keys():
        held = node[keyword]
        if isinstance(held, list):
            found += [(*place, keyword, str(number)) for number in range(len(held))]
        elif keyword == "dependentSchemas":
            found += [(*place, keyword, name) for name in held]
        else:
            found.append((*place, keyword))
    return found


def _check_patterns(schemas: Schemas, loc: Location) -> None:
    """Patterns compile, are not too many, and where one that is given up on would count as no match, need no
    way back: a linear matcher never gives up.
    """
    patterns = list(_patterns(schemas))
    if len(patterns) > MAX_PATTERNS:
        raise Invalid(
            loc,
            f"this schema has {len(patterns)} patterns; the most is {MAX_PATTERNS}",
            kind="schema_too_large",
            given=len(patterns),
        )
    unsure = next(
        (key for node in schemas.nodes.values() if isinstance(node, dict) for key in _UNSURE & node.keys()),
        None,
    )
    for place, pattern in patterns:
        if not _compiles(pattern, linear=False):
            told = "this pattern does not compile, or compiles to too much"
        elif unsure is not None and not _compiles(pattern, linear=True):
            told = f"a pattern that looks around or back is not taken in a schema with {unsure}"
        else:
            continue
        raise Invalid((*loc, *place), told, kind="schema_pattern", given=pattern)


def _patterns(schemas: Schemas) -> Iterator[tuple[Pointer, str]]:
    for place, node in schemas.nodes.items():
        if isinstance(node, dict):
            if "pattern" in node:
                yield (*place, "pattern"), node["pattern"]
            for pattern in node.get("patternProperties", ()):
                yield (*place, "patternProperties", pattern), pattern


def _compiles(pattern: str, *, linear: bool) -> bool:
    try:
        if linear:
            options = jsonschema_rs.RegexOptions(size_limit=PATTERN_SIZE)
            jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
        else:
            validator_of({"pattern": pattern})
    except ValueError:
        return False
    return True


def _first_line(error: BaseException) -> str:
    line = str(error).partition("\n")[0]
    return line if len(line) <= 300 else f"{line[:150]} ... {line[-140:]}"
