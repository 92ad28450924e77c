"""Which schemas have a value at all: some are emptied by `false`, others ask for values without end."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from planner.schemas.keywords import ANNOTATIONS, Pointer, Schemas

Needed = Callable[[dict[str, Any]], Collection[str]]
"""Which properties an object of this schema must have."""

Kinds = Callable[[dict[str, Any]], Collection[str]]
"""Of which types a schema's values are; empty where it does not say."""


def hopeless(schemas: Schemas, needed: Needed, kinds: Kinds) -> set[Pointer]:
    """The places of schemas that surely no finite value fits. What is not found may be hopeless all the same.

    The least fixpoint of "has a value": a schema has one as soon as all that its values must hold have one,
    so what only leads back to itself never gets there.
    """
    waits_for: dict[Pointer, list[Pointer]] = {}
    for place, node in schemas.nodes.items():
        for needs in _needs(schemas, place, node, needed, kinds):
            for need in needs:
                waits_for.setdefault(need, []).append(place)
    hopeful: set[Pointer] = set()
    # Children come after their parents in `nodes`: taken from its end, most are settled before they are
    # needed.
    waiting = list(schemas.nodes)
    queued = set(waiting)
    while waiting:
        place = waiting.pop()
        queued.discard(place)
        node = schemas.nodes[place]
        if place in hopeful or _is_never(node):
            continue
        if all(
            any(need in hopeful for need in needs) for needs in _needs(schemas, place, node, needed, kinds)
        ):
            hopeful.add(place)
            again = [
                waiter
                for waiter in waits_for.get(place, ())
                if waiter not in hopeful and waiter not in queued
            ]
            waiting += again
            queued.update(again)
    return schemas.nodes.keys() - hopeful


def _is_never(node: Any) -> bool:
    """Whether a schema says in so many words that no value fits it."""
    if not isinstance(node, dict) or "not" not in node:
        return node is False
    denied = node["not"]
    return denied is True or (isinstance(denied, dict) and denied.keys() <= ANNOTATIONS)


def _needs(schemas: Schemas, place: Pointer, node: Any, needed: Needed, kinds: Kinds) -> list[list[Pointer]]:
    """What must have a value for this schema to have one: of each list, one."""
    if not isinstance(node, dict):
        return []
    found = []
    if "$ref" in node:
        target = schemas.place_of(node["$ref"])
        found += [[target]] if target is not None else []
    found += [[(*place, "allOf", str(number))] for number in range(len(node.get("allOf", ())))]
    for keyword in ("anyOf", "oneOf"):
        if keyword in node:
            found.append([(*place, keyword, str(number)) for number in range(len(node[keyword]))])
    types = list(kinds(node))
    if types == ["object"]:
        declared = node.get("properties", {})
        found += [[(*place, "properties", name)] for name in needed(node) if name in declared]
    if types == ["array"]:
        first, least = len(node.get("prefixItems", ())), node.get("minItems", 0)
        found += [[(*place, "prefixItems", str(number))] for number in range(min(first, int(least)))]
        found += [[(*place, "items")]] if least > first and "items" in node else []
    return found
