"""Two schemas of one value as one: what both allow, as far as a grammar can say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.schemas.keywords import as_list, same_as

Merged = dict[str, Any]


class Nothing(Exception):
    """No value is allowed."""


def merged(one: Merged, other: Merged) -> Merged:
    """A schema of what both allow; what cannot be said is left out. Raises Nothing when no value is."""
    both = {**one, **other}
    for keyword in one.keys() & other.keys():
        merge = _RULES.get(keyword)
        both[keyword] = merge(one[keyword], other[keyword]) if merge else one[keyword]
    return both


def _common_types(one: Any, other: Any) -> list[str]:
    first, second = as_list(one), as_list(other)
    found = [name for name in first if name in second or (name == "integer" and "number" in second)]
    found += ["integer"] if "integer" in second and "number" in first and "integer" not in found else []
    if not found:
        raise Nothing
    return found


def _common_values(one: list[Any], other: list[Any]) -> list[Any]:
    known = [same_as(value) for value in other]
    found = [value for value in one if same_as(value) in known]
    if not found:
        raise Nothing
    return found


def _same(one: Any, other: Any) -> Any:
    if same_as(one) != same_as(other):
        raise Nothing
    return one


def _both(one: Any, other: Any) -> Any:
    """Both at once, left to whoever comes to it; flat, however many there are."""
    parts = one["allOf"] if isinstance(one, dict) and one.keys() == {"allOf"} else [one]
    return {"allOf": [*parts, other]}


def _named(one: Merged, other: Merged) -> Merged:
    return {**one, **other} | {name: _both(one[name], other[name]) for name in one.keys() & other.keys()}


def _in_order(one: list[Any], other: list[Any]) -> list[Any]:
    shared = min(len(one), len(other))
    pairs = zip(one, other, strict=False)
    return [_both(*pair) for pair in pairs] + max(one, other, key=len)[shared:]


def _union(one: list[str], other: list[str]) -> list[str]:
    return list(dict.fromkeys((*one, *other)))


_RULES: dict[str, Callable[[Any, Any], Any]] = {
    "type": _common_types,
    "enum": _common_values,
    "const": _same,
    "required": _union,
    "properties": _named,
    "patternProperties": _named,
    "additionalProperties": _both,
    "items": _both,
    "prefixItems": _in_order,
    "minimum": max,
    "exclusiveMinimum": max,
    "minItems": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxItems": min,
    "allOf": lambda one, other: [*one, *other],
}
