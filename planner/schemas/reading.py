"""What kind of field a schema is: the tests behind the compiler's table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from planner.schemas.bundles import bundle
from planner.schemas.keywords import ANNOTATIONS, Pointer, Schemas
from planner.schemas.values import is_valid
from planner.schemas.wording import distinct, told

MAX_VALUES = 255
"""Most values of a choice."""

MAX_LEVELS = 10
"""Most levels of a score."""

Value = tuple[Any, str]
"""A value that a field may have, and what is told of it."""


@dataclass(frozen=True, slots=True)
class Unfolded:
    """A schema with its references followed, as far as nothing but annotations stands beside them.

    `open` are the places that were followed on the way, `recursive` whether the last of them was open before.
    """

    schema: Any
    open: frozenset[Pointer]
    recursive: bool = False


def only(schema: dict[str, Any], *keywords: str) -> bool:
    """Whether a schema has no keywords but these and annotations."""
    return schema.keys() <= ANNOTATIONS | set(keywords)


def unfold(schema: Any, schemas: Schemas, open: frozenset[Pointer]) -> Unfolded:
    """Follow a schema's references, and an `allOf` of one. What stands beside them goes before."""
    while isinstance(schema, dict):
        if "$ref" in schema and only(schema, "$ref"):
            place = schemas.place_of(schema["$ref"])
            assert place is not None, "references were checked"
            if place in open:
                return Unfolded(schema, open, recursive=True)
            open |= {place}
            target = schemas.nodes[place]
        elif len(schema.get("allOf", ())) == 1 and only(schema, "allOf"):
            target = schema["allOf"][0]
        else:
            break
        beside = {key: value for key, value in schema.items() if key in ANNOTATIONS and key != "$defs"}
        schema = {**target, **beside} if isinstance(target, dict) else {**beside} if target else False
    return Unfolded({} if schema is True else schema, open)


def marked(schema: Any, name: str) -> Any:
    """What Canvass's own mark in a schema says under a name; None where it says nothing."""
    marks = schema.get("x-canvass") if isinstance(schema, dict) else None
    return marks.get(name) if isinstance(marks, dict) else None


def is_alone(schema: Any) -> bool:
    """Whether a field is marked as one that sees no earlier field."""
    return isinstance(schema, dict) and (schema.get("alone") is True or marked(schema, "alone") is True)


def listed(schema: Any, schemas: Schemas, open: frozenset[Pointer]) -> list[Value] | None:
    """The scalars that a schema lists one by one, with what is told of each; None when it does not."""
    found = _listed(schema, schemas, open)
    if found is None or len(found) > MAX_VALUES:
        return None
    if any(isinstance(value, dict | list) for value, _ in found):
        return None
    whole = bundle(schema, schemas)
    return [(value, text) for value, text in distinct(found) if is_valid(value, whole)]


def _listed(schema: Any, schemas: Schemas, open: frozenset[Pointer]) -> list[Value] | None:
    inner = unfold(schema, schemas, open)
    if inner.recursive or not isinstance(inner.schema, dict):
        return None
    if "const" in inner.schema:
        return [(inner.schema["const"], told(inner.schema, "description"))]
    if "enum" in inner.schema:
        return [(value, "") for value in inner.schema["enum"]]
    branches = inner.schema.get("oneOf", inner.schema.get("anyOf"))
    if branches is None or len(branches) > MAX_VALUES or not only(inner.schema, "oneOf", "anyOf", "type"):
        return None
    found: list[Value] = []
    for branch in branches:
        part = _listed(branch, schemas, inner.open)
        if part is None:
            return None
        found += [(value, text or told(branch, "title")) for value, text in part]
    return found


def integers(schema: dict[str, Any], schemas: Schemas) -> list[int] | None:
    """The whole numbers that a schema bounds, when they are at most MAX_LEVELS; else None."""
    if schema.get("type") != "integer":
        return None
    lows = [math.ceil(schema["minimum"])] if "minimum" in schema else []
    lows += [math.floor(schema["exclusiveMinimum"]) + 1] if "exclusiveMinimum" in schema else []
    highs = [math.floor(schema["maximum"])] if "maximum" in schema else []
    highs += [math.ceil(schema["exclusiveMaximum"]) - 1] if "exclusiveMaximum" in schema else []
    if not lows or not highs:
        return None
    step = schema.get("multipleOf", 1)
    step = int(step) if step == int(step) else 1
    first = -(-max(lows) // step) * step
    found = range(first, min(highs) + 1, step)
    if len(found) > MAX_LEVELS:
        return None
    whole = bundle(schema, schemas)
    return [value for value in found if is_valid(value, whole)]


def without_null(schema: dict[str, Any], schemas: Schemas, open: frozenset[Pointer]) -> Any:
    """What a schema allows beside null, when it allows null in so many words; else None."""
    types = schema.get("type")
    if isinstance(types, list) and "null" in types and len(types) > 1:
        rest = [name for name in types if name != "null"]
        return {**schema, "type": rest[0] if len(rest) == 1 else rest}
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and only(schema, keyword):
            branches = schema[keyword]
            rest = [one for one in branches if not _is_null(unfold(one, schemas, open).schema)]
            if len(rest) == len(branches) or not rest:
                continue
            beside = {key: value for key, value in schema.items() if key != keyword}
            if len(rest) > 1:
                return {**beside, keyword: rest}
            return {**rest[0], **beside} if isinstance(rest[0], dict) else {**beside, "allOf": rest}
    return None


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and (
        schema.get("type") in ("null", ["null"]) or schema.get("const", 0) is None
    )


def is_record(schema: Any) -> bool:
    """Whether a schema is an object whose declared fields are all there is to say about it."""
    return (
        isinstance(schema, dict)
        and "properties" in schema
        and schema.get("type", "object") in ("object", ["object"])
        and only(schema, "type", "properties", "required", "additionalProperties")
        and set(schema.get("required", ())) <= schema["properties"].keys()
    )


@dataclass(frozen=True, slots=True)
class Union:
    """A union of objects: its tag's name, and each branch with the values of the tag that pick it."""

    tag: str
    branches: tuple[tuple[Unfolded, tuple[Value, ...]], ...]


def tagged(schema: dict[str, Any], schemas: Schemas, open: frozenset[Pointer]) -> Union | None:
    """A schema as a union of objects told apart by a tag; else None."""
    keyword = "oneOf" if "oneOf" in schema else "anyOf"
    branches = [unfold(branch, schemas, open) for branch in schema.get(keyword, ())]
    if len(branches) < 2 or not only(schema, keyword):
        return None
    if any(branch.recursive or not is_record(branch.schema) for branch in branches):
        return None
    told_tag = schema.get("discriminator")
    first = told_tag.get("propertyName") if isinstance(told_tag, dict) else None
    names = list(branches[0].schema["properties"])
    for name in sorted(names, key=lambda one: one != first):
        values = [_tag_values(branch, name, schemas) for branch in branches]
        all_values = [one for part in values for one in part]
        if all(values) and 2 <= len(all_values) == len(distinct(all_values)) <= MAX_VALUES:
            return Union(name, tuple(zip(branches, map(tuple, values), strict=True)))
    return None


def _tag_values(branch: Unfolded, name: str, schemas: Schemas) -> list[Value]:
    """The values of a branch's tag, with what the branch says of itself; none when it is no tag."""
    tag = branch.schema["properties"].get(name)
    found = listed(tag, schemas, branch.open) if isinstance(tag, dict) else None
    return [(value, text or told(branch.schema, "description")) for value, text in found or ()]
