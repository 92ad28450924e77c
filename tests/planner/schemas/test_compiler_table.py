"""What compiles to what: every row of the table, from its schema to its value."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from planner.decision import Decision
from planner.errors import Invalid
from planner.schemas.compiler import MAX_QUESTIONS, compile_schema
from planner.schemas.forms import Form, outline
from tests.planner.schemas.form_support import asked, assembled, form_of, record

SPAN = record(text={"type": "string"}, start={"type": "integer"}, end={"type": "integer"})
SPAN = {**SPAN, "x-canvass": {"span": True}}


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    """An animal that purrs."""

    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    """An animal that barks."""

    kind: Literal["dog", "wolf"]
    barks: bool


class Line(BaseModel):
    colour: Colour
    urgent: bool


class Tree(BaseModel):
    leaf: bool
    below: list[Tree] = []


def of(annotation: Any, **more: Any) -> Form:
    """The form of a model with one field `x` of this type."""
    fields: dict[str, Any] = {"x": (annotation, Field(**more) if more else ...)}
    return compile_schema(_model(fields).model_json_schema())


def _model(fields: dict[str, Any]) -> type[BaseModel]:
    namespace = {name: default for name, (_, default) in fields.items() if default is not ...}
    annotations = {name: annotation for name, (annotation, _) in fields.items()}
    return type("Model", (BaseModel,), {"__annotations__": annotations, "__module__": __name__, **namespace})


def test_a_boolean_is_a_noul() -> None:
    form = of(bool, description="Is it urgent?")
    (question,) = form.questions
    assert (question.id, question.type, question.instructions) == ("/x", "noul", "Is it urgent?")
    assert assembled(form, {"/x": "yes"}).value == {"x": True}
    assert assembled(form, {"/x": "no"}).value == {"x": False}


@pytest.mark.parametrize("type", [Colour, Literal["red", "blue"]])
def test_listed_values_are_a_choice(type: Any) -> None:
    form = of(type)
    (question,) = form.questions
    assert question.type == "choice"
    assert [one.name for one in question.alternatives] == ["red", "blue"]
    assert assembled(form, {"/x": "blue"}).value == {"x": "blue"}


def test_values_that_read_alike_keep_apart() -> None:
    form = form_of(x={"enum": ["1", 1, None, "null", True, "true", 1.5, ""]})
    names = [one.name for one in form.questions[0].alternatives]
    assert names == ['"1"', "1", "null", '"null"', "true", '"true"', "1.5", '""']
    values = [assembled(form, {"/x": name}).value["x"] for name in names]
    assert [repr(value) for value in values] == ["'1'", "1", "None", "'null'", "True", "'true'", "1.5", "''"]


def test_a_value_that_its_own_schema_forbids_is_no_option() -> None:
    form = form_of(x={"enum": ["a", "bb", 3], "type": "string", "minLength": 1, "not": {"const": "c"}})
    assert [one.name for one in form.questions[0].alternatives] == ["a", "bb"]


def test_options_carry_the_descriptions_of_a_one_of() -> None:
    options = [{"const": "a", "description": "the first"}, {"const": "b", "title": "the second"}]
    form = form_of(x={"oneOf": options})
    assert [one.text for one in form.questions[0].alternatives] == ["the first", "the second"]


def test_one_possible_value_is_not_asked_for() -> None:
    form = form_of(
        x={"const": 3}, y={"type": "boolean"}, z={"enum": [{"a": []}], "type": "object"}, n={"type": "null"}
    )
    told = {"/y": "yes", "/z": '{"a": []}'}
    found = assembled(form, told)
    assert found.value == {"x": 3, "y": True, "z": {"a": []}, "n": None}
    assert found.fields["/x"] == {"kind": "fixed"}


def test_more_values_than_a_choice_holds_are_written() -> None:
    assert form_of(x={"enum": list(range(255))}).questions[0].type == "choice"
    assert form_of(x={"enum": list(range(256))}).questions[0].type == "object"


@pytest.mark.parametrize(
    ("bounds", "values"),
    [
        ({"minimum": 1, "maximum": 5}, ["1", "2", "3", "4", "5"]),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 3}, ["1", "2"]),
        ({"minimum": -4, "maximum": 4, "multipleOf": 4}, ["-4", "0", "4"]),
        ({"minimum": 0.5, "maximum": 2.5}, ["1", "2"]),
    ],
)
def test_few_whole_numbers_are_a_score(bounds: dict[str, Any], values: list[str]) -> None:
    form = form_of(x={"type": "integer", **bounds})
    (question,) = form.questions
    assert question.type == "score"
    assert [one.text for one in question.alternatives] == values
    assert assembled(form, {"/x": "1"}).value == {"x": int(values[1])}


def test_a_score_tells_its_expectation_in_the_fields_own_numbers() -> None:
    found = assembled(form_of(x={"type": "integer", "minimum": 10, "maximum": 12}), {"/x": "2"})
    assert found.value == {"x": 12}
    assert found.fields["/x"]["probabilities"] == {"10": 0.1, "11": 0.1, "12": 0.8}
    assert found.fields["/x"]["expectation"] == 11.7
    assert found.fields["/x"]["confidence"] == 0.8


def test_eleven_whole_numbers_are_written() -> None:
    assert form_of(x={"type": "integer", "minimum": 0, "maximum": 10}).questions[0].type == "object"


def test_an_optional_field_is_asked_for_when_it_is_there() -> None:
    form = of(Annotated[bool | None, Field(description="Did they like it?")])
    helper, question = form.questions
    assert (helper.id, helper.type) == ("/x~present", "noul")
    assert helper.instructions == "Did they like it? (is there such a value?)"
    assert question.ask_if == {"/x~present": ("yes",)}
    there = assembled(form, {"/x~present": "yes", "/x": "no"})
    assert there.value == {"x": False}
    assert there.fields["/x"]["present"] == {"question": "/x~present", "probability": 0.8}
    absent = assembled(form, {"/x~present": "no"})
    assert absent.value == {"x": None}
    assert absent.fields["/x"]["probabilities"] == {"yes": 0.2, "no": 0.8}


def test_null_among_the_types_is_optional_too() -> None:
    form = form_of(x={"type": ["boolean", "null"]})
    assert [one.id for one in form.questions] == ["/x~present", "/x"]


def test_what_is_optional_twice_is_asked_for_once() -> None:
    inner = {"anyOf": [{"type": ["boolean", "null"]}, {"type": "null"}]}
    form = form_of(x={"allOf": [inner]})
    assert [one.id for one in form.questions] == ["/x~present", "/x"]


def test_a_union_is_a_choice_of_its_tag_and_the_fields_of_one_branch() -> None:
    form = of(Annotated[Cat | Dog, Field(discriminator="kind")])
    tag, lives, barks = form.questions
    assert (tag.id, tag.type) == ("/x/kind", "choice")
    assert [(one.name, one.text) for one in tag.alternatives] == [
        ("cat", "An animal that purrs."),
        ("dog", "An animal that barks."),
        ("wolf", "An animal that barks."),
    ]
    assert lives.ask_if == {"/x/kind": ("cat",)}
    assert barks.ask_if == {"/x/kind": ("dog", "wolf")}
    assert lives.id not in barks.depends_on
    found = assembled(form, {"/x/kind": "wolf", barks.id: "yes"})
    assert found.value == {"x": {"kind": "wolf", "barks": True}}
    assert found.fields["/x/lives"]["kind"] == "skipped"
    assert found.fields["/x/barks"]["question"] == "/x~as=dog/barks"


def test_branches_may_share_a_fields_name() -> None:
    branch = [record(k={"const": name}, v={"type": "boolean"}) for name in ("a", "b")]
    form = form_of(x={"anyOf": branch}, after={"type": "boolean"})
    ids = [one.id for one in form.questions]
    assert ids == ["/x/k", "/x~as=a/v", "/x~as=b/v", "/after"]
    assert asked(form)["/after"].depends_on == tuple(ids[:3])
    found = assembled(form, {"/x/k": "b", "/x~as=b/v": "yes", "/after": "no"})
    assert found.value == {"x": {"k": "b", "v": True}, "after": False}
    assert found.fields["/x/v"]["kind"] == "read"


def test_a_union_without_a_tag_is_written() -> None:
    form = form_of(x={"anyOf": [record(a={"type": "boolean"}), record(b={"type": "boolean"})]})
    assert [one.type for one in form.questions] == ["object"]


def test_a_list_of_listed_values_is_a_noul_for_each() -> None:
    form = of(list[Colour])
    assert [one.id for one in form.questions] == ["/x~has=red", "/x~has=blue"]
    assert all(one.type == "noul" and not one.depends_on for one in form.questions)
    found = assembled(form, {"/x~has=red": "no", "/x~has=blue": "yes"})
    assert found.value == {"x": ["blue"]}
    assert found.fields["/x"]["probabilities"] == {"red": 0.2, "blue": 0.8}


@pytest.mark.parametrize(
    ("bounds", "said", "value"),
    [
        ({"minItems": 1}, ("no", "no", "no"), ["a"]),
        ({"maxItems": 1}, ("yes", "yes", "yes"), ["a"]),
        ({"maxItems": 2, "minItems": 2}, ("no", "no", "yes"), ["a", "c"]),
        ({}, ("no", "no", "no"), []),
    ],
)
def test_the_bounds_of_such_a_list_are_kept(
    bounds: dict[str, int], said: tuple[str, ...], value: list[str]
) -> None:
    form = form_of(x={"type": "array", "items": {"enum": ["a", "b", "c"]}, **bounds})
    told = dict(zip(("/x~has=a", "/x~has=b", "/x~has=c"), said, strict=True))
    assert assembled(form, told).value == {"x": value}


def test_a_marked_field_is_found_in_the_text() -> None:
    form = form_of(x=SPAN)
    assert [(one.id, one.type) for one in form.questions] == [("/x", "span")]
    found = assembled(form, {"/x": [(16, 19)]})
    assert found.value == {"x": {"text": "red", "start": 16, "end": 19}}
    assert (found.fields["/x"]["kind"], found.fields["/x"]["start"]) == ("span", 16)


def test_a_marked_field_that_is_not_found_is_an_error() -> None:
    found = assembled(form_of(x=SPAN), {"/x": []})
    assert (found.value, found.valid) == (None, False)
    assert [(one.path, one.code) for one in found.errors] == [("/x", "not_found")]


def test_an_optional_marked_field_that_is_not_found_is_null() -> None:
    form = form_of(x={"anyOf": [SPAN, {"type": "null"}]})
    assert [one.id for one in form.questions] == ["/x"]
    assert assembled(form, {"/x": []}).value == {"x": None}


def test_a_list_of_marked_fields_is_spans() -> None:
    form = form_of(x={"type": "array", "items": SPAN, "maxItems": 5})
    (question,) = form.questions
    assert (question.type, question.max_items) == ("spans", 5)
    found = assembled(form, {"/x": [(16, 19), (30, 36)]})
    assert [one["text"] for one in found.value["x"]] == ["red", "Berlin"]
    assert assembled(form, {"/x": []}).value == {"x": []}


def test_a_marked_string_is_the_text_alone() -> None:
    form = form_of(x={"type": "string", "x-canvass": {"span": True, "max_tokens": 8}})
    assert form.questions[0].max_tokens == 8
    assert assembled(form, {"/x": [(30, 36)]}).value == {"x": "Berlin"}


def test_a_bounded_list_of_objects_is_a_loop() -> None:
    form = of(Annotated[list[Line], Field(min_length=1, max_length=2)])
    count, first, _, second, _ = form.questions
    assert (count.id, count.type) == ("/x~count", "choice")
    assert [one.name for one in count.alternatives] == ["1", "2"]
    assert first.ask_if == {}
    assert (second.id, second.ask_if) == ("/x/1/colour", {"/x~count": ("2",)})
    assert second.instructions == "Item 2 of x: colour"
    assert second.depends_on == ("/x~count", "/x/0/colour", "/x/0/urgent")
    told = {"/x~count": "1", "/x/0/colour": "red", "/x/0/urgent": "no"}
    found = assembled(form, told)
    assert found.value == {"x": [{"colour": "red", "urgent": False}]}
    assert found.fields["/x/1/colour"]["kind"] == "skipped"


def test_a_loop_of_so_many_has_no_count() -> None:
    form = form_of(x={"type": "array", "items": record(a={"type": "boolean"}), "minItems": 2, "maxItems": 2})
    assert [one.id for one in form.questions] == ["/x/0/a", "/x/1/a"]


@pytest.mark.parametrize("bounds", [{}, {"maxItems": 17}])
def test_a_list_of_too_many_objects_is_written(bounds: dict[str, int]) -> None:
    form = form_of(x={"type": "array", "items": record(a={"type": "boolean"}), **bounds})
    assert [one.type for one in form.questions] == ["object"]


def test_a_tuple_is_asked_in_place() -> None:
    form = of(tuple[bool, Colour])
    assert assembled(form, {"/x/0": "yes", "/x/1": "red"}).value == {"x": [True, "red"]}


def test_a_nested_object_is_asked_in_place_by_the_name_of_the_whole() -> None:
    inner = {**record(unit_price={"type": "boolean"}), "description": "What we offer."}
    form = form_of(best_offer={**inner}, other_offer=record(isVATFree={"type": "boolean"}))
    assert [(one.id, one.instructions) for one in form.questions] == [
        ("/best_offer/unit_price", "What we offer: unit price"),
        ("/other_offer/isVATFree", "Other offer: is VAT free"),
    ]


@pytest.mark.parametrize("type", [str, float, int, dict[str, int], int | str, list[str], list[Line], Any])
def test_everything_else_is_written(type: Any) -> None:
    (question,) = of(type).questions
    assert (question.id, question.type, question.alternatives) == ("/x", "object", ())


def test_what_is_written_has_a_schema_of_its_own() -> None:
    (question,) = of(list[Line]).questions
    assert set(question.schema["$defs"]) == {"Line", "Colour"}


def test_recursion_is_written_where_it_comes_back() -> None:
    form = compile_schema(Tree.model_json_schema())
    assert [(one.id, one.type) for one in form.questions] == [("/leaf", "noul"), ("/below", "object")]
    found = assembled(form, {"/leaf": "no", "/below": '[{"leaf": true, "below": []}]'})
    assert found.value == {"leaf": False, "below": [{"leaf": True, "below": []}]}


@pytest.mark.parametrize(
    ("schema", "said", "value"),
    [({"type": "boolean"}, "yes", True), ({"type": "string", "title": "Name"}, '"Ann"', "Ann")],
)
def test_a_root_that_is_no_object_is_one_field(schema: dict[str, Any], said: str, value: Any) -> None:
    form = compile_schema(schema)
    assert [one.id for one in form.questions] == ["~root"]
    found = assembled(form, {"~root": said})
    assert found.value == value
    assert set(found.fields) == {""}


def test_what_the_model_wrote_wrong_is_an_error_at_its_place() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    found = assembled(form_of(x=schema), {"/x": '{"a/b": "c"}'})
    assert (found.value, found.valid) == (None, False)
    assert [(one.path, one.code) for one in found.errors] == [("/x/a~1b", "invalid_object")]
    assert found.fields["/x"]["attempts"] == 2


def test_the_whole_is_checked_against_the_schema() -> None:
    schema = {**record(a={"type": "boolean"}, b={"type": "boolean"}), "title": "Both"}
    schema["allOf"] = [{"not": {"properties": {"a": {"const": True}, "b": {"const": True}}}}]
    form = compile_schema(
        {"$defs": {"Both": schema}, **record(x={"type": "array", "items": {"$ref": "#/$defs/Both"}})}
    )
    assert [one.type for one in form.questions] == ["object"]
    unique = {"type": "array", "prefixItems": [{"enum": [1, 2]}] * 2, "minItems": 2, "maxItems": 2}
    form = form_of(x=unique | {"allOf": [{"uniqueItems": True}]})
    assert assembled(form, {"/x": "[1, 1]"}).errors[0].code == "invalid_object"


def test_each_field_depends_on_all_before_it() -> None:
    form = form_of(a={"type": "boolean"}, b=SPAN, c={"type": "string"}, d={"type": "boolean"})
    depends = [one.depends_on for one in form.questions]
    assert depends == [(), ("/a",), ("/a", "/b"), ("/a", "/b", "/c")]


@pytest.mark.parametrize("mark", [{"alone": True}, {"x-canvass": {"alone": True}}])
def test_a_field_marked_alone_sees_no_earlier_one_and_is_seen(mark: dict[str, Any]) -> None:
    yes_or_no = {"type": "boolean"}
    form = form_of(
        a=yes_or_no, b={**yes_or_no, **mark}, c={**record(d=yes_or_no, e=yes_or_no), **mark}, f=yes_or_no
    )
    depends = {one.id: one.depends_on for one in form.questions}
    assert depends == {
        "/a": (),
        "/b": (),
        "/c/d": (),
        "/c/e": ("/c/d",),
        "/f": ("/a", "/b", "/c/d", "/c/e"),
    }
    assert [one.alone for one in form.questions] == [False, True, True, True, False]


def test_the_nearest_condition_is_enough() -> None:
    inner = record(b={"anyOf": [record(c={"type": "boolean"}), {"type": "null"}]})
    form = form_of(a={"anyOf": [inner, {"type": "null"}]})
    assert {one.id: dict(one.ask_if) for one in form.questions} == {
        "/a~present": {},
        "/a/b~present": {"/a~present": ("yes",)},
        "/a/b/c": {"/a/b~present": ("yes",)},
    }
    assert assembled(form, {"/a~present": "no"}).value == {"a": None}


def test_names_may_spell_anything() -> None:
    odd = ["", "__proto__", "a/b", "~", "properties", "$ref", "required", "x~present", "has space"]
    form = form_of(**{name: {"type": "boolean"} for name in odd}, x={"type": ["boolean", "null"]})
    assert len(asked(form)) == len(form.questions) == len(odd) + 2
    found = assembled(form, {one.id: "yes" for one in form.questions})
    assert found.value == dict.fromkeys([*odd, "x"], True)
    assert {"/", "/a~1b", "/~0"} <= set(found.fields)


def test_the_outline_tells_how_each_field_is_answered() -> None:
    form = form_of(
        a={"const": 1},
        b={"type": ["string", "null"]},
        c={"type": "array", "items": {"enum": ["x", "y"]}},
        d={"type": "array", "items": record(e={"type": "boolean"}), "maxItems": 1},
    )
    assert outline(form) == {
        "/a": {"kind": "fixed"},
        "/b": {"kind": "generated", "type": "object", "question": "/b", "present": "/b~present"},
        "/c": {"kind": "read", "type": "noul", "questions": {"x": "/c~has=x", "y": "/c~has=y"}},
        "/d": {"kind": "read", "type": "choice", "question": "/d~count"},
        "/d/0/e": {"kind": "read", "type": "noul", "question": "/d/0/e"},
    }


def test_questions_travel_as_json() -> None:
    form = of(Annotated[Cat | Dog, Field(discriminator="kind")])
    decision = Decision("m", "state", (*form.questions, *of(list[Line]).questions))
    assert Decision.from_json(decision.to_json()) == decision


def _loops(depth: int) -> dict[str, Any]:
    inner = {"type": "boolean"} if depth == 0 else _loops(depth - 1)
    return {"type": "array", "maxItems": 16, "items": record(x=inner)}


def _nested(depth: int) -> dict[str, Any]:
    defs = {
        f"d{n}": record(x={"$ref": f"#/$defs/d{n + 1}"}, y={"$ref": f"#/$defs/d{n + 1}"})
        for n in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": {"const": 1}}}


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (
            record(**{f"f{number}": {"type": "boolean"} for number in range(MAX_QUESTIONS + 1)}),
            "400 questions",
        ),
        (record(x=_loops(2)), "400 questions"),
        (_nested(20), "2000 fields"),
        (_nested(60), "deeper than 32"),
        (
            record(**{"n" * 25_000: record(**{f"f{n}": {"type": "boolean"} for n in range(300)})}),
            "4194304 characters",
        ),
        ({"const": 1}, "nothing to ask"),
        (record(x={"type": "string", "x-canvass": {"max_tokens": 0}}), "from 1 to 4096"),
    ],
)
def test_what_would_take_too_much_is_refused(schema: dict[str, Any], told: str) -> None:
    with pytest.raises(Invalid, match=told) as raised:
        compile_schema(schema, ("schema",))
    assert raised.value.loc == ("schema",)
