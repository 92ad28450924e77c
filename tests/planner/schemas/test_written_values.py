"""What a model wrote: strict JSON, in full against its schema, and told where it is wrong."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.schemas.values import MAX_FAULTS, MAX_MESSAGE, Fault, read_value, validate
from tests.planner.schemas.form_support import record
from tests.planner.schemas.hostile import ACCEPTED, EXPRESSION

PERSON = record(name={"type": "string", "minLength": 2}, age={"type": "integer", "minimum": 0})


def test_a_valid_value_is_read() -> None:
    assert read_value(' {"name": "Ann", "age": 3}\n', PERSON) == {"name": "Ann", "age": 3}
    assert read_value("null", True) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not JSON"),
        ('{"name": "Ann", "age":', "not JSON"),
        ('Sure! {"name": "Ann", "age": 3}', "not JSON"),
        ('{"name": "Ann", "age": 3} as asked', "not JSON"),
        ("NaN", "not JSON"),
        ("-Infinity", "not JSON"),
        ("1e400", "not JSON"),
        ('{"name": "Ann", "age": 3, "age": 4}', "the key 'age' twice"),
        ('"\\ud800"', "not JSON"),
        ("\ud800", "not JSON"),
        ("[" * 5000, "not JSON"),
        ("[" * 101 + "]" * 101, "nests deeper than 100 levels"),
        (str(2**64), "more than 64 bits"),
        ("[1, -9223372036854775809]", "more than 64 bits"),
    ],
)
def test_what_is_no_strict_json_is_a_fault_of_the_whole(text: str, told: str) -> None:
    found = read_value(text, True)
    assert isinstance(found, Fault)
    assert found.path == ""
    assert told in found.message


@pytest.mark.parametrize(
    ("text", "path", "told"),
    [
        ('{"age": 3}', "", '"name" is a required property'),
        ('{"name": "A", "age": 3}', "/name", "shorter than 2"),
        ('{"name": "Ann", "age": -1}', "/age", "less than the minimum of 0"),
        ("[]", "", 'not of type "object"'),
    ],
)
def test_an_invalid_value_is_a_fault_at_its_place(text: str, path: str, told: str) -> None:
    found = read_value(text, PERSON)
    assert isinstance(found, Fault)
    assert found.path == path
    assert told in found.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lengths", '"abc"'),
        ("look-ahead", '"xyz"'),
        ("uniqueItems", "[1, 1]"),
        ("too many items", "[null]"),
        ("a huge number", "3"),
        ("conditions", "3"),
        ("a false property", '{"a": 1}'),
        ("siblings of anyOf", '{"a": 1, "b": null}'),
    ],
)
def test_what_the_grammar_does_not_hold_is_held_afterwards(name: str, text: str) -> None:
    assert isinstance(read_value(text, ACCEPTED[name]), Fault)


def test_a_union_tells_of_the_branch_that_was_meant() -> None:
    schema = {
        "anyOf": [record(k={"const": "a"}, v={"type": "null"}), record(k={"const": "b"}, v={"minimum": 3})]
    }
    found = read_value('{"k": "b", "v": 1}', schema)
    assert isinstance(found, Fault)
    assert found.path == "/v"
    assert isinstance(read_value('{"v": 1}', schema), Fault)


def test_a_pattern_that_backtracks_is_given_up_on_and_refuses() -> None:
    started = time.monotonic()
    assert isinstance(read_value('"' + "a" * 4000 + '"', ACCEPTED["a pattern that backtracks"]), Fault)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("depth", [2, 5, 8, 12, 16, 32, 90])
def test_a_value_that_fits_in_ever_more_ways_takes_no_longer(depth: int) -> None:
    text = '"no number"'
    for _ in range(depth):
        text = f'{{"op": "mul", "left": 1, "right": {text}}}'
    started = time.monotonic()
    assert isinstance(read_value(text, EXPRESSION), Fault)
    assert time.monotonic() - started < 5


def test_messages_and_faults_are_bounded() -> None:
    found = read_value('"' + "x" * 100_000 + '"', {"enum": ["a", "b"]})
    assert isinstance(found, Fault)
    assert len(found.message) <= MAX_MESSAGE
    assert found.message.endswith('"b"')
    faults = validate([1] * 1000, {"items": {"type": "string"}})
    assert len(faults) == MAX_FAULTS


def test_the_faults_of_a_whole_value_are_told_once_for_each_place() -> None:
    found = validate({"name": 3, "age": -1.5}, PERSON)
    assert [fault.path for fault in found] == ["/age", "/name"]


@pytest.mark.parametrize("value", [10**30, -(2**63) - 1, {"a": [2**64]}, ["\ud800"], {"\ud800": 1}])
@pytest.mark.parametrize("schema", [True, {"type": "string"}, {"type": "integer", "minimum": 1e30}])
def test_what_json_cannot_say_is_never_valid(value: Any, schema: Any) -> None:
    (fault,) = validate(value, schema)
    assert "more than 64 bits" in fault.message


@settings(deadline=None, max_examples=50)
@given(text=st.text() | st.binary().map(lambda one: one.decode(errors="surrogateescape")))
@pytest.mark.parametrize("name", ["anything", "a tree", "tuples", "odd keys"])
def test_no_text_raises(name: str, text: str) -> None:
    found = read_value(text, ACCEPTED[name])
    assert isinstance(found, Fault) or validate(found, ACCEPTED[name]) == []


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=15)
@given(value=values)
@pytest.mark.parametrize("name", ACCEPTED)
def test_no_value_raises(name: str, value: Any) -> None:
    assert all(isinstance(fault, Fault) for fault in validate(value, ACCEPTED[name]))
