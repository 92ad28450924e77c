"""What kind of field a schema is: the tests behind the compiler's table."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from planner.errors import Invalid, Location
from planner.schemas.bundles import bundle
from planner.schemas.finite import hopeless
from planner.schemas.keywords import ANNOTATIONS, Pointer, Schemas, told_types
from planner.schemas.values import INTEGERS, checker_of
from planner.schemas.wording import distinct, told

MAX_VALUES = 255
"""Most values of a choice."""

MAX_LEVELS = 10
"""Most levels of a score."""

MAX_EFFORT = 100_000
"""Most steps that it may take to see what kinds of fields a schema has, some microseconds each: a schema
that many fields refer to is seen once, unless each of them sees it another way."""

_BYTES_A_STEP = 4

Value = tuple[Any, str]
"""A value that a field may have, and what is told of it."""

_Found = TypeVar("_Found")


@dataclass(slots=True)
class Known:
    """A checked root schema and what was seen of the schemas in it; `loc` is its path in the request."""

    schemas: Schemas
    loc: Location = ()
    effort: int = 0
    _seen: dict[Any, tuple[Any, Any]] = field(default_factory=dict)
    _dead: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        dead = hopeless(self.schemas, lambda node: node.get("required", ()), told_types)
        self._dead = frozenset(id(self.schemas.nodes[place]) for place in dead)

    def is_dead(self, schema: Any) -> bool:
        """Whether surely no value fits a schema of the root."""
        return schema is False or id(schema) in self._dead

    def spend(self, steps: int) -> None:
        """Count some steps. Raises Invalid over MAX_EFFORT."""
        self.effort += steps
        if self.effort > MAX_EFFORT:
            raise Invalid(
                self.loc,
                "its fields refer to so many listed values and branches that this schema is not compiled",
                kind="schema_too_large",
                given=self.effort,
            )

    def once(
        self,
        kind: str,
        schema: dict[str, Any],
        open: frozenset[Pointer],
        find: Callable[[], _Found],
        apart: Collection[str] = (),
    ) -> _Found:
        """What is found of a schema, remembered for all that hold the same but for annotations other than
        those `apart`.
        """
        held = (
            (name, one if isinstance(one, str) else id(one))
            for name, one in schema.items()
            if name in apart or name not in ANNOTATIONS
        )
        key = (kind, frozenset(held), open)
        if key not in self._seen:
            # The schema is kept with it: its parts, told by their identities, must live as long.
            self._seen[key] = (find(), schema)
        found: _Found = self._seen[key][0]
        return found

    def fitting(self, values: list[Any], schema: dict[str, Any]) -> list[bool]:
        """Which of some values are valid against a schema."""
        whole = bundle({key: one for key, one in schema.items() if key not in ANNOTATIONS}, self.schemas)
        self.spend(len(values) + len(orjson.dumps(whole)) // _BYTES_A_STEP)
        checker = checker_of(whole)
        return [not checker.faults(value) for value in values]


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


def unfold(schema: Any, known: Known, open: frozenset[Pointer]) -> Unfolded:
    """Follow a schema's references, and an `allOf` of one. What stands beside them goes before."""
    while isinstance(schema, dict):
        if "$ref" in schema and only(schema, "$ref"):
            place = known.schemas.place_of(schema["$ref"])
            assert place is not None, "references were checked"
            if place in open:
                return Unfolded(schema, open, recursive=True)
            open |= {place}
            target = known.schemas.nodes[place]
        elif len(schema.get("allOf", ())) == 1 and only(schema, "allOf"):
            target = schema["allOf"][0]
        else:
            break
        beside = {key: value for key, value in schema.items() if key in ANNOTATIONS and key != "$defs"}
        known.spend(1 + (len(target) // 64 if isinstance(target, dict) else 0))
        schema = {**target, **beside} if isinstance(target, dict) else {**beside} if target else False
    return Unfolded({} if schema is True else schema, open)


def marked(schema: Any, name: str) -> Any:
    """What Canvass's own mark in a schema says under a name; None where it says nothing."""
    marks = schema.get("x-canvass") if isinstance(schema, dict) else None
    return marks.get(name) if isinstance(marks, dict) else None


def is_alone(schema: Any) -> bool:
    """Whether a field is marked as one that sees no earlier field."""
    return isinstance(schema, dict) and (schema.get("alone") is True or marked(schema, "alone") is True)


def listed(schema: Any, known: Known, open: frozenset[Pointer]) -> list[Value] | None:
    """The scalars that a schema lists one by one, with what is told of each; None when it does not."""
    if not isinstance(schema, dict):
        return None
    # Of a single value, its own description is told.
    apart = () if schema.keys() & {"enum", "anyOf", "oneOf"} and "const" not in schema else ("description",)
    return known.once("listed", schema, open, lambda: _allowed(schema, known, open), apart)


def _allowed(schema: dict[str, Any], known: Known, open: frozenset[Pointer]) -> list[Value] | None:
    found = _listed(schema, known, open)
    if found is None or len(found) > MAX_VALUES:
        return None
    if any(isinstance(value, dict | list) for value, _ in found):
        return None
    apart = distinct(found)
    # What is listed is among what is listed: that alone need not be looked up for each value.
    beside = schema if "const" in schema else {key: one for key, one in schema.items() if key != "enum"}
    values = [value for value, _ in apart]
    fitting = known.once("fitting", schema, open, lambda: known.fitting(values, beside))
    return [one for one, fits in zip(apart, fitting, strict=True) if fits]


def _listed(schema: Any, known: Known, open: frozenset[Pointer]) -> list[Value] | None:
    known.spend(1)
    inner = unfold(schema, known, open)
    if inner.recursive or not isinstance(inner.schema, dict):
        return None
    if "const" in inner.schema:
        return [(inner.schema["const"], told(inner.schema, "description"))]
    if "enum" in inner.schema:
        known.spend(1 + len(inner.schema["enum"]) // 16)
        return [(value, "") for value in inner.schema["enum"]]
    branches = inner.schema.get("oneOf", inner.schema.get("anyOf"))
    if branches is None or len(branches) > MAX_VALUES or not only(inner.schema, "oneOf", "anyOf", "type"):
        return None
    found: list[Value] = []
    for branch in branches:
        part = _listed(branch, known, inner.open)
        if part is None:
            return None
        found += [(value, text or told(branch, "title")) for value, text in part]
    return found


def integers(schema: dict[str, Any], known: Known) -> list[int] | None:
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
    last = min(highs)
    if (last - first) // step >= MAX_LEVELS or first not in INTEGERS or last not in INTEGERS:
        return None
    found = list(range(first, last + 1, step))
    return [value for value, fits in zip(found, known.fitting(found, schema), strict=True) if fits]


def without_null(schema: dict[str, Any], known: Known, open: frozenset[Pointer]) -> Any:
    """What a schema allows beside null, when it allows null in so many words; else None."""
    return known.once("null", schema, open, lambda: _without_null(schema, known, open), ANNOTATIONS)


def _without_null(schema: dict[str, Any], known: Known, open: frozenset[Pointer]) -> Any:
    types = schema.get("type")
    if isinstance(types, list) and "null" in types and len(types) > 1:
        rest = [name for name in types if name != "null"]
        return {**schema, "type": rest[0] if len(rest) == 1 else rest}
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and only(schema, keyword):
            branches = schema[keyword]
            rest = [one for one in branches if not _is_null(unfold(one, known, open).schema)]
            if len(rest) == len(branches) or not rest:
                continue
            beside = {key: value for key, value in schema.items() if key != keyword}
            if len(rest) > 1:
                return {**beside, keyword: rest}
            return {**rest[0], **beside} if isinstance(rest[0], dict) else {**beside, "allOf": rest}
    return None


def is_null(schema: dict[str, Any], known: Known, open: frozenset[Pointer]) -> bool:
    """Whether null is all that fits a union, though it says more."""
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and only(schema, keyword):
            alive = [one for one in schema[keyword] if not known.is_dead(one)]
            return all(_is_null(unfold(one, known, open).schema) for one in alive)
    return False


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


def tagged(schema: dict[str, Any], known: Known, open: frozenset[Pointer]) -> Union | None:
    """A schema as a union of objects told apart by a tag; else None."""
    keyword = "oneOf" if "oneOf" in schema else "anyOf"
    if len(schema.get(keyword, ())) < 2 or not only(schema, keyword):
        return None
    return known.once(
        "tagged", schema, open, lambda: _tagged(schema, schema[keyword], known, open), ("discriminator",)
    )


def _tagged(schema: Any, union: list[Any], known: Known, open: frozenset[Pointer]) -> Union | None:
    known.spend(len(union))
    branches = [unfold(branch, known, open) for branch in union if not known.is_dead(branch)]
    if len(branches) < 2 or any(branch.recursive or not is_record(branch.schema) for branch in branches):
        return None
    told_tag = schema.get("discriminator")
    first = told_tag.get("propertyName") if isinstance(told_tag, dict) else None
    shared = set.intersection(*(set(branch.schema["properties"]) for branch in branches))
    known.spend(sum(len(branch.schema["properties"]) for branch in branches) // _BYTES_A_STEP)
    names = [name for name in branches[0].schema["properties"] if name in shared]
    for name in sorted(names, key=lambda one: one != first):
        values = []
        for branch in branches:
            known.spend(1)
            values.append(_tag_values(branch, name, known))
            if not values[-1]:
                break
        all_values = [one for part in values for one in part]
        if all(values) and 2 <= len(all_values) == len(distinct(all_values)) <= MAX_VALUES:
            return Union(name, tuple(zip(branches, map(tuple, values), strict=True)))
    return None


def _tag_values(branch: Unfolded, name: str, known: Known) -> list[Value]:
    """The values of a branch's tag, with what the branch says of itself; none when it is no tag."""
    tag = branch.schema["properties"].get(name)
    found = listed(tag, known, branch.open) if isinstance(tag, dict) else None
    return [(value, text or told(branch.schema, "description")) for value, text in found or ()]
