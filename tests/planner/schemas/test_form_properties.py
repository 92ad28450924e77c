"""Whatever the schema and whatever the answers: a valid value, or errors that say why there is none."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.answers import Reading
from planner.decision import Question
from planner.errors import Invalid
from planner.schemas.assembly import assemble
from planner.schemas.compiler import compile_schema
from planner.schemas.forms import Form, nodes_of, outline
from planner.schemas.sent import sent_schema
from planner.schemas.values import read_value, validate
from planner.stages import make_stages
from tests.planner.schemas.form_support import SOURCE, answer, record
from tests.planner.support import decide

SCALARS = [None, True, False, 0, 1, -1, 1.5, "", "a", "1", "null"]
TEXTS = [
    "null",
    "true",
    "7",
    "-1",
    '"abc"',
    "[]",
    "{}",
    '["a"]',
    '{"a": 1}',
    "[[]]",
    '"2024-01-01"',
    "{",
    "so",
]
SPAN = {**record(text={}, start={}, end={}), "x-canvass": {"span": True}}

names = st.sampled_from(["a", "b", "kind", "next", "", "a/b", "~", "type"])
bounds = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted)
leaves = st.one_of(
    st.sampled_from(
        [True, {}, {"type": "string"}, {"type": "number"}, {"type": "null"}, {"$ref": "#/$defs/d"}, SPAN]
    ),
    st.sampled_from([{"type": "boolean"}, {"type": ["boolean", "null"]}, {"type": "string", "minLength": 3}]),
    st.lists(st.sampled_from(SCALARS), min_size=1, max_size=5).map(lambda values: {"enum": values}),
    st.tuples(st.integers(-3, 3), st.integers(0, 12)).map(
        lambda pair: {"type": "integer", "minimum": pair[0], "maximum": pair[0] + pair[1]}
    ),
    st.sampled_from(SCALARS).map(lambda value: {"const": value}),
)


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(names, inner, max_size=3)
    branches = st.lists(fields, min_size=2, max_size=3).map(
        lambda found: {
            "oneOf": [record(**{**one, "kind": {"const": number}}) for number, one in enumerate(found)]
        }
    )
    return st.one_of(
        fields.map(lambda found: record(**found)),
        fields.map(lambda found: {"type": "object", "properties": found}),
        inner.map(lambda one: {"anyOf": [one, {"type": "null"}]}),
        st.lists(inner, min_size=1, max_size=3).map(lambda found: {"anyOf": found}),
        branches,
        st.tuples(inner, bounds).map(
            lambda pair: {"type": "array", "items": pair[0], "minItems": pair[1][0], "maxItems": pair[1][1]}
        ),
        inner.map(lambda one: {"type": "array", "items": one, "uniqueItems": True}),
        inner.map(lambda one: {"type": "array", "prefixItems": [one, one], "minItems": 2, "maxItems": 2}),
        st.tuples(inner, inner).map(lambda pair: {"allOf": list(pair)}),
        inner.map(lambda one: {"allOf": [one], "alone": True, "description": "Some field."}),
        inner.map(lambda one: {"type": "object", "additionalProperties": one}),
    )


schemas = st.tuples(
    st.recursive(leaves, _larger, max_leaves=10), st.recursive(leaves, _larger, max_leaves=4)
).map(lambda pair: {**(pair[0] if isinstance(pair[0], dict) else {}), "$defs": {"d": pair[1]}})
settled = settings(deadline=None, suppress_health_check=list(HealthCheck))


def compiled(schema: Any) -> Form | None:
    """The form of a schema that can be asked for."""
    try:
        return compile_schema(schema)
    except Invalid:
        return None


@settled
@given(schema=schemas, data=st.data())
def test_a_value_is_valid_or_errors_are_told(schema: Any, data: st.DataObject) -> None:
    form = compiled(schema)
    if form is None:
        return

    def says(question: Question) -> Any:
        if question.is_span:
            starts = data.draw(st.lists(st.integers(0, len(SOURCE) - 1), max_size=question.max_items))
            return [(start, start + 1) for start in starts]
        if not question.is_label:
            return data.draw(st.sampled_from(TEXTS))
        count = len(question.alternatives)
        weights = data.draw(st.lists(st.floats(0.01, 1), min_size=count, max_size=count))
        shares = tuple(weight / sum(weights) for weight in weights)
        return Reading(shares, (0.0,) * count, 1.0, 0.5, 0.9, True, 1)

    answers = answer(form, says)
    found = assemble(form, answers, SOURCE)
    if found.valid:
        assert validate(found.value, schema) == []
    else:
        assert found.value is None
        assert all(error.message for error in found.errors)
    told = {one["question"] for one in found.fields.values() if "question" in one}
    assert told <= {question.id for question in form.questions}
    orjson.dumps((found.value, found.fields, outline(form)))


@settled
@given(schema=schemas)
def test_questions_stand_by_themselves(schema: Any) -> None:
    form = compiled(schema)
    if form is None:
        return
    ids = [question.id for question in form.questions]
    assert len(set(ids)) == len(ids)
    assert sum(map(len, make_stages(decide(*form.questions)))) == len(ids)
    for place, question in enumerate(form.questions):
        assert question.id
        assert question.instructions
        assert set(question.needs) <= set(ids[:place])
        if question.type == "object":
            sent_schema(question.schema)
            for text in TEXTS:
                read_value(text, question.schema)
    assert {node.path for node in nodes_of(form.root)} >= outline(form).keys()


@settled
@given(schema=schemas)
def test_a_grammar_is_made_of_any_schema(schema: Any) -> None:
    if compiled(schema) is not None:
        assert sent_schema(schema)
