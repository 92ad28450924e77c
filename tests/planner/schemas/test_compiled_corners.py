"""Schemas at the edge of what the compiler takes: huge numbers, empty lists, marks, much for little."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from planner.answers import Reading
from planner.errors import Invalid
from planner.schemas.assembly import assemble
from planner.schemas.compiler import NUMBER_TOKENS, compile_schema
from planner.schemas.forms import Form, outline
from tests.planner.schemas.form_support import SOURCE, answer, asked, assembled, form_of, record

YES_OR_NO = {"type": "boolean"}
ENDLESS = record(next={"$ref": "#/$defs/endless"})
LISTED = {"enum": [*(f"v{number}{'x' * 190}" for number in range(254)), "a"], "maxLength": 1}


def shared(definition: Any, field: Any, count: int) -> dict[str, Any]:
    """An object of so many fields that refer to one definition, `e`, and a boolean."""
    fields = {f"f{number}": field(number) for number in range(count)}
    return {"$defs": {"e": definition}, "type": "object", "properties": fields | {"b": YES_OR_NO}}


@pytest.mark.parametrize(
    "bounds",
    [
        {"minimum": 0, "maximum": 2**63 - 1},
        {"minimum": -(2**63), "maximum": 2**64 - 1},
        {"minimum": 1e30, "maximum": 1e30},
        {"minimum": 1e30, "maximum": 1.0000000000000002e30, "multipleOf": 140737488355328},
        {"minimum": -1e300, "maximum": 1e300},
        {"minimum": 0, "maximum": 1e300, "multipleOf": 1e300},
    ],
)
def test_whole_numbers_without_end_are_written(bounds: dict[str, float]) -> None:
    assert form_of(x={"type": "integer", **bounds}, y=YES_OR_NO).questions[0].type == "object"


def test_the_last_whole_numbers_of_64_bits_are_a_score() -> None:
    form = form_of(x={"type": "integer", "minimum": 2**64 - 2, "maximum": 2**64 - 1})
    assert assembled(form, {"/x": "1"}).value == {"x": 2**64 - 1}


@pytest.mark.parametrize(
    ("schema", "tokens"),
    [
        ({"type": "number"}, NUMBER_TOKENS),
        ({"type": "number", "minimum": 0, "maximum": 1}, NUMBER_TOKENS),
        ({"type": "integer"}, NUMBER_TOKENS),
        ({"allOf": [{"type": ["integer", "number"]}]}, NUMBER_TOKENS),
        ({"type": "number", "x-canvass": {"max_tokens": 99}}, 99),
        ({"type": ["number", "string"]}, None),
        ({"type": "string"}, None),
        ({}, None),
    ],
)
def test_a_number_is_written_in_few_tokens(schema: Any, tokens: int | None) -> None:
    (question,) = form_of(x=schema).questions
    assert (question.type, question.max_tokens) == ("object", tokens)


def flags(bounds: dict[str, int], **probabilities: float) -> dict[str, Any]:
    """The value and the evidence of a list of enum, each of whose values is in it as likely as this."""
    form = form_of(x={"type": "array", "items": {"enum": list(probabilities)}, **bounds})
    told = {f"/x~has={name}": p for name, p in probabilities.items()}

    def says(question: Any) -> Reading:
        p = told[question.id]
        return Reading((p, 1 - p), (0.0, 0.0), 1.0, 0.5, 0.9, True, 1)

    found = assemble(form, answer(form, says), SOURCE)
    return {"value": found.value["x"], **found.fields["/x"]}


def test_the_confidence_of_a_mended_list_is_that_of_the_list_given() -> None:
    more = flags({"minItems": 2}, a=0.1, b=0.05, c=0.01)
    assert (more["value"], more["confidence"], more["mended"]) == (["a", "b"], 0.05, True)
    fewer = flags({"maxItems": 1}, a=0.95, b=0.9, c=0.2)
    assert (fewer["value"], fewer["confidence"], fewer["mended"]) == (["a"], 0.1, True)


def test_a_list_that_was_not_mended_does_not_say_so() -> None:
    found = flags({"minItems": 1}, a=0.9, b=0.3)
    assert (found["value"], found["confidence"]) == (["a"], 0.7)
    assert "mended" not in found


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 0},
        {"type": "array", "items": {"$ref": "#/$defs/endless"}, "uniqueItems": True},
        {"type": "array", "items": {"not": {}}},
        {"type": "array", "items": False},
    ],
)
def test_a_list_that_holds_nothing_is_not_asked_for(schema: Any) -> None:
    form = compile_schema(record(x=schema, y=YES_OR_NO) | {"$defs": {"endless": ENDLESS}})
    assert list(asked(form)) == ["/y"]
    assert assembled(form, {"/y": "yes"}).value == {"x": [], "y": True}


def test_a_branch_that_no_value_fits_is_left_out() -> None:
    dead = {"$ref": "#/$defs/endless"}
    branches = [record(kind={"const": name}, x=YES_OR_NO) for name in ("a", "b")]
    union = {"oneOf": [*branches, record(kind={"const": "c"}, x=dead)]}
    schema = record(y={"anyOf": [dead, {"type": "null"}]}, z=union) | {"$defs": {"endless": ENDLESS}}
    form = compile_schema(schema)
    assert list(asked(form)) == ["/z/kind", "/z~as=a/x", "/z~as=b/x"]
    assert [one.name for one in form.questions[0].alternatives] == ["a", "b"]
    found = assembled(form, {"/z/kind": "b", "/z~as=b/x": "yes"})
    assert found.value == {"y": None, "z": {"kind": "b", "x": True}}


def test_a_branch_may_have_one_value_that_is_a_list_or_an_object() -> None:
    branches = [record(kind={"const": name}, x={"const": [name, {}]}) for name in ("a", "b")]
    form = form_of(x={"oneOf": branches})
    assert outline(form)["/x/x"] == {"kind": "fixed"}
    assert assembled(form, {"/x/kind": "b"}).value == {"x": {"kind": "b", "x": ["b", {}]}}


@pytest.mark.parametrize("schema", [False, {"not": {}}, {"not": True}, {"$ref": "#/$defs/endless"}])
def test_a_field_that_no_value_fits_is_left_out(schema: Any) -> None:
    fields = {"x": schema, "y": YES_OR_NO}
    form = compile_schema({"type": "object", "properties": fields, "$defs": {"endless": ENDLESS}})
    assert assembled(form, {"/y": "no"}).value == {"y": False}
    with pytest.raises(Invalid) as refused:
        compile_schema(record(**fields) | {"$defs": {"endless": ENDLESS}})
    assert refused.value.kind == "schema_unsatisfiable"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "x-canvass": {"spann": True}},
        {"type": "string", "x-canvass": 5},
        {"type": "string", "x-canvass": {"span": "yes"}},
        {"type": "string", "x-canvass": {"max_tokens": True}},
        {"type": "integer", "x-canvass": {"span": True}},
        {"type": "array", "items": {"type": "boolean"}, "x-canvass": {"span": True}},
        {**record(text={}, page={"type": "integer"}), "x-canvass": {"span": True}},
        {"type": "object", "additionalProperties": {"type": "string", "x-canvass": {"spann": True}}},
    ],
)
def test_a_mark_that_means_nothing_is_refused(schema: Any) -> None:
    with pytest.raises(Invalid) as refused:
        form_of(x=schema)
    assert refused.value.kind == "schema_mark"


def test_a_span_marked_beside_its_null_is_null_where_nothing_is_found() -> None:
    form = form_of(x={"anyOf": [{"type": "string"}, {"type": "null"}], "x-canvass": {"span": True}})
    assert [one.type for one in form.questions] == ["span"]
    assert assembled(form, {"/x": []}).value == {"x": None}
    assert assembled(form, {"/x": [(30, 36)]}).value == {"x": "Berlin"}


def compiled(schema: Any) -> tuple[float, Form | None]:
    """How long it takes to compile a schema in seconds, and its form unless it is refused as too large."""
    assert len(json.dumps(schema)) < 65_536
    begun = time.process_time()
    form, kind = None, ""
    try:
        form = compile_schema(schema)
    except Invalid as error:
        kind = error.kind
    took = time.process_time() - begun
    assert kind in ("", "schema_too_large")
    return took, form


WORK = {"not": {"allOf": [*({} for _ in range(9_000)), {"const": "b"}]}}


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        (shared(LISTED, lambda number: {"$ref": "#/$defs/e"}, 450), True),
        (shared(LISTED, lambda number: {"$ref": "#/$defs/e", "description": f"{number}"}, 200), True),
        (shared({"const": "a", **WORK}, lambda number: {"$ref": "#/$defs/e", "title": "x"}, 450), True),
        (shared(LISTED, lambda number: {"anyOf": [{"$ref": "#/$defs/e"}]}, 300), False),
        (
            shared(
                {"type": "integer", "minimum": 1, "maximum": 1, **WORK}, lambda _: {"$ref": "#/$defs/e"}, 450
            ),
            False,
        ),
        (
            shared(
                {
                    "anyOf": [{"type": "object", "properties": {f"p{n}": {"const": 0} for n in range(36)}}]
                    * 36
                },
                lambda number: {"$ref": "#/$defs/e"},
                200,
            ),
            None,
        ),
    ],
)
def test_a_small_schema_does_not_take_long(schema: Any, fits: bool | None) -> None:
    took, form = compiled(schema)
    assert took < 4
    assert fits is None or fits == (form is not None)


def test_a_schema_that_many_fields_share_is_taken() -> None:
    options = [{"const": f"v{number}", "title": f"The value of number {number}"} for number in range(255)]
    schema = shared(
        {"oneOf": options},
        lambda number: {"anyOf": [{"$ref": "#/$defs/e"}, {"type": "null"}], "description": f"{number}?"},
        100,
    )
    _, form = compiled(schema)
    assert form is not None
    assert len(form.questions) == 201
