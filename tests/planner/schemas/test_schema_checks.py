"""Which schemas may be asked for: what is refused says where, and why."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from planner.errors import Invalid
from planner.schemas.checks import MAX_BYTES, check_schema
from tests.planner.schemas.form_support import record
from tests.planner.schemas.hostile import ACCEPTED, NODE, chained


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(depth - 1):
        schema = {"not": schema}
    return schema


REFUSED: dict[str, tuple[Any, str | None, str]] = {
    "no schema": (3, "", "an object or a boolean"),
    "null": (None, "", "an object or a boolean"),
    "nothing at all": (False, "", "no value can ever be valid"),
    "an unknown type": ({"properties": {"a": {"type": "strin"}}}, "properties/a/type", "strin"),
    "a title that is no text": ({"title": 3}, "title", "string"),
    "a negative length": ({"minLength": -1}, "minLength", "minimum"),
    "33 levels": (nested(33), "", "nests deeper than 32 levels"),
    "20000 levels": (nested(20_000), "", "nests deeper than 32 levels"),
    "too large": ({"title": "x" * MAX_BYTES}, "", "the most is 65536"),
    "an older draft": ({"$schema": "http://json-schema.org/draft-07/schema#"}, "$schema", "2020-12"),
    "infinity": ({"maximum": float("inf")}, "maximum", "inf is no number of JSON"),
    "not a number": ({"enum": [float("nan")]}, "enum/0", "nan is no number of JSON"),
    "a long number": ({"maximum": 10**30}, "", "more than 64 bits"),
    "half a character": ({"const": "\ud800"}, "", "half of a surrogate pair"),
    "a key that is no text": ({1: 2}, "", "keys are strings"),
    "a value that is no JSON": ({"const": {1, 2}}, "const", "set is no type of JSON"),
    "a remote reference": ({"items": {"$ref": "http://127.0.0.1:1/"}}, "items/$ref", "leads elsewhere"),
    "a file": ({"$ref": "file:///etc/passwd"}, "$ref", "leads elsewhere"),
    "a reference to nothing": ({"$ref": "#/$defs/a"}, "$ref", "points to no schema in here"),
    "a reference to no schema": ({"$ref": "#/title", "title": "t"}, "$ref", "points to no schema in here"),
    "an anchor that is not there": ({"$ref": "#here"}, "$ref", "points to no schema in here"),
    "an anchor twice": (
        {"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}},
        "$defs/a/$anchor",
        "twice",
    ),
    "a dynamic reference": ({"$dynamicRef": "#a"}, "$dynamicRef", "use $ref"),
    "an id inside": ({"$defs": {"a": {"$id": "b"}}}, "$defs/a/$id", "at the root"),
    "a loop": ({"$ref": "#"}, "", "without end"),
    "a loop of two": (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        None,
        "without end",
    ),
    "a loop beside a way out": ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, None, "without end"),
    "doubling": (
        chained(30, lambda ref: {"anyOf": [ref, ref]}, {"type": "null"}),
        None,
        "more than 10000 schemas",
    ),
    "a long chain": (chained(200, lambda ref: ref, {"type": "null"}), None, "a chain of more than 64"),
    "an endless value": ({**NODE, "required": ["next"]}, "", "no value can ever be valid"),
    "an endless list": (
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        "",
        "no value can ever be valid",
    ),
    "no branch": ({"anyOf": [False]}, "", "no value can ever be valid"),
    "an empty enum": ({"properties": {"a": {"enum": []}}}, "properties/a", "enum is empty"),
    "crossed bounds": ({"minimum": 3, "maximum": 2}, "", "minimum 3 is over maximum 2"),
    "crossed lengths": ({"minLength": 3, "maxLength": 2}, "", "minLength 3 is over maxLength 2"),
    "crossed counts": ({"items": {"minItems": 3, "maxItems": 2}}, "items", "minItems 3 is over maxItems 2"),
    "required and forbidden": ({"properties": {"a": False}, "required": ["a"]}, "", "its schema is false"),
    "a broken pattern": ({"pattern": "["}, "pattern", "does not compile"),
    "an enormous pattern": ({"pattern": "(a{1000}){1000}"}, "pattern", "compiles to too much"),
    "201 patterns": (record(**{f"p{n}": {"pattern": "a"} for n in range(201)}), "", "the most is 200"),
    "look-ahead beside not": (
        {"pattern": "(?=a)", "not": {"type": "null"}},
        "pattern",
        "looks around or back",
    ),
    "look-ahead for keys": ({"patternProperties": {"(?=a)": {}}}, "patternProperties/(?=a)", "looks around"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_for_is_refused_with_its_place(name: str) -> None:
    schema, place, told = REFUSED[name]
    with pytest.raises(Invalid) as raised:
        check_schema(schema, ("schema",))
    assert told in raised.value.message
    assert raised.value.loc[0] == "schema"
    if place is not None and "levels" not in name:
        assert "/".join(map(str, raised.value.loc[1:])) == place


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_only_looks_hostile_is_taken(name: str) -> None:
    check_schema(ACCEPTED[name])


def test_a_deep_schema_is_checked_on_the_stack_of_any_thread() -> None:
    done: list[bool] = []

    def check() -> None:
        check_schema(nested(32))
        done.append(True)

    thread = threading.Thread(target=check)
    thread.start()
    thread.join()
    assert done == [True]
