"""Values that a model wrote: strict JSON, checked in full against the schema they were asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs
import orjson

from planner.json_depth import MAX_DEPTH, is_too_deep
from planner.schemas.keywords import IN_PLACE, Schemas, spelled

MAX_FAULTS = 16
"""Most faults told of one value."""

MAX_MESSAGE = 300
"""Most characters of a fault's message."""

BACKTRACKS = 100_000
"""Most steps back that one match of a pattern may take: a few milliseconds."""

PATTERN_SIZE = 1_000_000
"""Most bytes that one compiled pattern may take."""

MOST_EFFORT = 500_000
"""Most (schema, value) pairs that one check may visit, repeats included; jsonschema_rs visits about 40
million a second, and a hostile schema doubles them with every level of a value."""

MOST_TOLD = 500
"""Most such pairs of a check whose faults are told apart where pairs repeat: a fault holds a copy of the
value for every way in which it fails, which costs ten thousand times as much."""

MOST_TOLD_DEPTH = 32
"""Deepest nesting of a value whose faults are told apart, for the same reason."""

MOST_PAIRS = 100_000
"""Most different pairs that are counted, in Python."""

_KEPT = 256
"""Compiled schemas that are kept; the least recently used goes first."""

INTEGERS = range(-(2**63), 2**64)
"""Whole numbers that orjson reads and writes as they are: everything that reads JSON agrees on them."""

_TELLING = frozenset({"const", "enum", "type"})
"""Keywords whose fault says that a value was meant for another branch."""

_NOT_JSON = "this has a whole number of more than 64 bits, or half of a surrogate pair"
_NOT_VALID = "this value is not valid against the schema"

_Pair = tuple[int, int]
"""The identities of a schema and of a part of a value."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a value: where (a JSON pointer, "" for the whole), and one sentence."""

    path: str
    message: str


def validator_of(schema: Any) -> jsonschema_rs.Draft202012Validator:
    """The compiled validator of a schema. It never asks a network; its patterns cannot hang.

    Raises ValueError or TypeError (jsonschema_rs.ValidationError is a ValueError).
    """
    return jsonschema_rs.Draft202012Validator(
        schema,
        offline=True,
        validate_formats=True,
        pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS, size_limit=PATTERN_SIZE),
    )


def read_value(text: str, schema: Any) -> Any:
    """The value that a model's text spells, when it is valid against a checked schema, else a Fault.

    JSON is taken strictly: nothing around it, no key twice, no number that overflows, no half of a surrogate
    pair. Never raises, whatever the text.
    """
    try:
        content = text.encode()
        orjson.loads(content)
        value = json.loads(text, object_pairs_hook=_unrepeated)
    except _Repeated as error:
        return Fault("", f"this JSON has the key {_cut(repr(error.key))} twice in one object")
    except RecursionError:
        return Fault("", f"this JSON nests deeper than {MAX_DEPTH} levels")
    except ValueError as error:
        return Fault("", _cut(f"this is not JSON: {error}"))
    if is_too_deep(value, content):
        return Fault("", f"this JSON nests deeper than {MAX_DEPTH} levels")
    return next(iter(validate(value, schema)), value)


def validate(value: Any, schema: Any) -> list[Fault]:
    """What is wrong with a JSON value against a checked schema: nothing, or up to MAX_FAULTS, by their
    paths.
    """
    return checker_of(schema).faults(value)


def is_valid(value: Any, schema: Any) -> bool:
    """Whether a JSON value is valid against a checked schema."""
    return not validate(value, schema)


def checker_of(schema: Any) -> Checker:
    """A checked schema, compiled: for one that many values are held against."""
    return _checker(orjson.dumps(schema))


@dataclass(frozen=True, eq=False)
class Checker:
    """A compiled schema."""

    validator: jsonschema_rs.Draft202012Validator
    schemas: Schemas

    def faults(self, value: Any) -> list[Fault]:
        """As `validate`."""
        try:
            content = orjson.dumps(value)
        except TypeError:
            return [Fault("", _NOT_JSON)]
        effort, once = self.effort(value)
        if effort > MOST_EFFORT:
            return [Fault("", "this value matches the schema in too many ways to be checked")]
        if self.validator.is_valid(value):
            return []
        if effort > max(MOST_TOLD, 4 * once) or is_too_deep(value, content, MOST_TOLD_DEPTH):
            return [Fault("", _NOT_VALID)]
        errors = islice(self.validator.iter_errors(value), 4 * MAX_FAULTS)
        faults: dict[str, Fault] = {}
        for fault in sorted(map(_fault, errors), key=lambda one: one.path):
            faults.setdefault(fault.path, fault)
        return list(faults.values())[:MAX_FAULTS] or [Fault("", _NOT_VALID)]

    def effort(self, value: Any) -> tuple[int, int]:
        """How many pairs of a schema and a value a check visits at most, and how many if it came to
        each object and array once.

        Without recursion: a chain of references times a deep value must not meet Python's limit.
        """
        counts: dict[_Pair, int] = {}
        after: dict[_Pair, list[tuple[Any, Any]]] = {}
        once = 0
        stack = [(self.schemas.root, value)]
        while stack:
            schema, part = stack[-1]
            pair = (id(schema), id(part))
            if pair in counts:
                stack.pop()
            elif pair in after:
                stack.pop()
                visits = [(inner, counts.get((id(one), id(inner)), 1)) for one, inner in after[pair]]
                counts[pair] = min(1 + sum(visited for _, visited in visits), MOST_EFFORT + 1)
                if isinstance(part, dict | list):
                    once += 1 + sum(
                        visited for inner, visited in visits if not isinstance(inner, dict | list)
                    )
            elif len(after) >= MOST_PAIRS:
                return MOST_EFFORT + 1, once
            else:
                after[pair] = list(self._after(schema, part)) if isinstance(schema, dict) else []
                stack += [step for step in after[pair] if (id(step[0]), id(step[1])) not in after]
        effort = counts[id(self.schemas.root), id(value)]
        return effort, once or effort

    def _after(self, schema: dict[str, Any], part: Any) -> Iterator[tuple[Any, Any]]:
        """The pairs that a check of this pair comes to."""
        if "$ref" in schema:
            yield self.schemas.target(schema["$ref"]), part
        for keyword in IN_PLACE & schema.keys():
            held = schema[keyword]
            inner = (
                held if isinstance(held, list) else held.values() if keyword == "dependentSchemas" else [held]
            )
            yield from ((one, part) for one in inner)
        if isinstance(part, dict):
            yield from self._after_object(schema, part)
        elif isinstance(part, list):
            first = schema.get("prefixItems", [])
            yield from zip(first, part, strict=False)
            for keyword in ("items", "contains", "unevaluatedItems"):
                if keyword in schema:
                    yield from ((schema[keyword], one) for one in part)

    def _after_object(self, schema: dict[str, Any], part: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
        declared = schema.get("properties", {})
        yield from ((declared[name], one) for name, one in part.items() if name in declared)
        for every in schema.get("patternProperties", {}).values():
            yield from ((every, one) for one in part.values())
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in schema:
                yield from ((schema[keyword], one) for name, one in part.items() if name not in declared)
        if "propertyNames" in schema:
            yield from ((schema["propertyNames"], name) for name in part)


@lru_cache(maxsize=_KEPT)
def _checker(schema: bytes) -> Checker:
    decoded = orjson.loads(schema)
    return Checker(validator_of(decoded), Schemas.of(decoded))


class _Repeated(ValueError):
    """An object has a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Repeated(key)
        found[key] = value
    return found


def _fault(error: jsonschema_rs.ValidationError) -> Fault:
    """A validator's error in words, for a union that of the branch that came closest."""
    while branches := [branch for branch in getattr(error.kind, "context", ()) if branch]:
        depth = len(error.instance_path)
        closest = max(branches, key=lambda branch: _closeness(branch, depth))
        deeper = max(closest, key=lambda one: len(one.instance_path))
        if len(deeper.instance_path) <= depth:
            break
        error = deeper
    return Fault(spelled(tuple(map(str, error.instance_path))), _cut(error.message))


def _closeness(branch: list[jsonschema_rs.ValidationError], depth: int) -> tuple[bool, int]:
    """How near a value came to a branch of a union: whether its tag fits, then how deep the errors lie."""
    other = any(one.kind.name in _TELLING and len(one.instance_path) <= depth + 1 for one in branch)
    return not other, max(len(one.instance_path) for one in branch)


def _cut(message: str) -> str:
    """A message of bounded length; a validator's says what was wrong at its end, after the value."""
    if len(message) <= MAX_MESSAGE:
        return message
    half = (MAX_MESSAGE - 5) // 2
    return f"{message[:half]} ... {message[-half:]}"
