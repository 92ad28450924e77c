"""What engines are sent of a schema: what they keep to, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Annotated, Any, Literal

import orjson
import pytest
from pydantic import BaseModel, Field

from planner.schemas.sent import ANY, sent_schema
from planner.schemas.values import validate
from tests.planner.schemas.form_support import record, sample
from tests.planner.schemas.hostile import ACCEPTED, EXPRESSION, NODE, TREE

KEPT = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
}
LONGEST = 2**63 - 1024
NOT_HELD = {
    "look-ahead",
    "a pattern that backtracks",
    "lengths",
    "no type",
    "uniqueItems",
    "too many items",
    "a huge number",
    "a tiny number",
    "conditions",
    "1500 allOf",
    "a wide merge",
    "properties named like keywords",
}
"""What is left to the validation afterwards."""


def grammars(sent: Any) -> Iterator[dict[str, Any]]:
    """A grammar and all in it."""
    if isinstance(sent, dict):
        yield sent
        for keyword in ("properties", "$defs"):
            for one in sent.get(keyword, {}).values():
                yield from grammars(one)
        for keyword in ("items", "additionalProperties"):
            yield from grammars(sent.get(keyword))
        for keyword in ("anyOf", "prefixItems"):
            for one in sent.get(keyword, ()):
                yield from grammars(one)


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_grammar_says_only_what_engines_keep_to(name: str) -> None:
    sent = sent_schema(ACCEPTED[name])
    assert len(orjson.dumps(sent)) < 1_000_000
    for grammar in grammars(sent):
        assert grammar.keys() <= KEPT
        assert grammar, "an empty grammar would be none at all"
        if "$ref" in grammar:
            assert grammar["$ref"].removeprefix("#/$defs/") in sent["$defs"]
        if "properties" in grammar:
            assert grammar["additionalProperties"] is False


@pytest.mark.parametrize("name", sorted(ACCEPTED.keys() - NOT_HELD - {"siblings that double"}))
@pytest.mark.parametrize("seed", range(5))
def test_what_a_grammar_allows_is_valid(name: str, seed: int) -> None:
    value = sample(sent_schema(ACCEPTED[name]), Random(seed).randrange)
    assert validate(value, ACCEPTED[name]) == []


@pytest.mark.parametrize("name", sorted(NOT_HELD - {"too many items"}))
def test_what_engines_break_is_stripped(name: str) -> None:
    sample(sent_schema(ACCEPTED[name]), Random(0).randrange)


def test_every_property_is_required_in_the_order_declared() -> None:
    schema = {
        "type": "object",
        "properties": {"b": {"type": "null"}, "a": {"type": "null"}},
        "required": ["a"],
    }
    sent = sent_schema(schema)
    assert list(sent["properties"]) == sent["required"] == ["b", "a"]


class Cat(BaseModel):
    name: str
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    name: str
    kind: Literal["dog", "wolf"] = "dog"


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


def test_a_unions_tag_comes_first() -> None:
    defs = sent_schema(Owner.model_json_schema())["$defs"]
    assert [list(branch["properties"]) for branch in defs.values()] == [["kind", "name"], ["kind", "name"]]


def test_one_of_becomes_any_of() -> None:
    assert sent_schema({"oneOf": [{"type": "string"}, {"type": "null"}]}) == {
        "anyOf": [{"type": "string"}, {"type": "null"}]
    }


def test_what_stands_beside_a_union_goes_into_each_branch() -> None:
    schema = {"anyOf": [{"maximum": 3}, {"minimum": 9}], "type": "integer", "minimum": 1}
    assert sent_schema(schema) == {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 3},
            {"type": "integer", "minimum": 9, "maximum": LONGEST},
        ]
    }


def test_what_stands_beside_a_reference_is_merged() -> None:
    y = sent_schema(ACCEPTED["siblings of $ref"])["properties"]["y"]
    assert y["properties"] == {"x": {"type": "number", "minimum": 3}}


def test_all_of_is_merged() -> None:
    schema = {
        "allOf": [{"type": ["integer", "string"]}, {"type": "number"}, {"minimum": 0.5}, {"maximum": 7}]
    }
    assert sent_schema(schema) == {"type": "integer", "minimum": 1, "maximum": 7}


def test_maps_keep_what_they_map_to() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}
    assert sent_schema(schema) == {"type": "object", "additionalProperties": {"type": "string"}}


def test_recursion_stays_and_comes_to_an_end() -> None:
    for schema in (TREE, NODE, EXPRESSION):
        sent = sent_schema(schema)
        assert any("$ref" in grammar for grammar in grammars(sent))
        sample(sent, lambda count: count - 1)
    assert sent_schema(NODE)["required"] == ["value"]


@pytest.mark.parametrize("schema", [True, {}, {"title": "Anything", "description": "at all"}])
def test_anything_is_spelled_out(schema: Any) -> None:
    assert sent_schema(schema) == ANY


def test_annotations_are_dropped_and_names_are_not() -> None:
    named = record(title={"type": "string", "title": "t", "default": "d", "x-canvass": {"alone": True}})
    assert sent_schema(named)["properties"] == {"title": {"type": "string"}}


def test_bounds_that_engines_cannot_write_out_are_left_out() -> None:
    assert sent_schema({"type": "number", "minimum": 1e300, "maximum": 1e301}) == {"type": "number"}
    assert sent_schema({"type": "integer", "minimum": 1e30, "maximum": 1e30}) == {"type": "integer"}
    assert sent_schema({"type": "array", "items": {"type": "null"}, "minItems": 10**9})["minItems"] == 256


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        ({}, -LONGEST, LONGEST),
        ({"minimum": 0}, 0, LONGEST),
        ({"maximum": 2**64 - 1, "minimum": -(2**63)}, -LONGEST, LONGEST),
        ({"exclusiveMaximum": 3}, -LONGEST, 2),
    ],
)
def test_whole_numbers_have_bounds_in_any_case(bounds: dict[str, int], low: int, high: int) -> None:
    assert sent_schema({"type": "integer", **bounds}) == {"type": "integer", "minimum": low, "maximum": high}
    assert float(low) == low
    assert float(high) == high


ENDLESS = record(next={"$ref": "#/$defs/endless"})


def test_what_no_value_fits_is_left_out() -> None:
    schema = record(items={"type": "array", "items": {"$ref": "#/$defs/endless"}}, title={"type": "string"})
    schema["properties"] |= {"never": {"not": {}}, "more": {"$ref": "#/$defs/endless"}}
    sent = sent_schema({**schema, "$defs": {"endless": ENDLESS}})
    assert sent["properties"] == {"items": {"const": []}, "title": {"type": "string"}}
    assert "$defs" not in sent


def test_listed_values_are_those_that_their_schema_allows() -> None:
    assert sent_schema({"type": "string", "enum": ["a", 1, "bb"], "maxLength": 1}) == {"const": "a"}
