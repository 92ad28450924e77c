"""Wrong System One bodies: each is refused before anything runs, with the place and the rule."""

from typing import Any

import pytest
from pydantic import ValidationError

from planner.dialects.systemone import parse
from planner.errors import Invalid
from planner.plan import make_plan
from planner.stages import make_stages
from planner.vocabulary import Vocabulary
from tests.planner.support import many

NOUL = {"type": "noul"}


def body(**changes: Any) -> dict[str, Any]:
    """A good body with some fields changed; None drops one."""
    whole = {"model": "m", "state": "s", "questions": {"a": NOUL}} | changes
    return {name: value for name, value in whole.items() if value is not None}


def asking(question: Any) -> dict[str, Any]:
    return body(questions={"a": question})


def choice(count: int) -> dict[str, Any]:
    return {"type": "choice", "criteria": dict.fromkeys(many(count))}


def score(count: int) -> dict[str, Any]:
    return {"type": "score", "criteria": many(count)}


WRONG_BODIES = [
    ("a list for a body", [], (), "dict_type"),
    ("a string for a body", "decide!", (), "dict_type"),
    ("nothing", None, (), "dict_type"),
    ("no model", body(model=None), ("model",), "missing"),
    ("a model that is no name", body(model=1), ("model",), "string_type"),
    ("no state", body(state=None), ("state",), "missing"),
    ("no questions", body(questions=None), ("questions",), "missing"),
    ("empty questions", body(questions={}), ("questions",), "too_short"),
    ("a list of questions", body(questions=[NOUL]), ("questions",), "dict_type"),
    ("401 questions", body(questions=dict.fromkeys(many(401), NOUL)), ("questions",), "too_long"),
    ("an empty id", body(questions={"": NOUL}), ("questions", "", "[key]"), "string_too_short"),
    ("a question that is no object", asking("late?"), ("questions", "a"), "model_attributes_type"),
    ("an unknown type", asking({"type": "essay"}), ("questions", "a"), "union_tag_invalid"),
    ("no type", asking({}), ("questions", "a"), "union_tag_not_found"),
    ("eleven levels", asking(score(11)), ("questions", "a", "score", "criteria"), "too_long"),
    ("no level", asking(score(0)), ("questions", "a", "score", "criteria"), "too_short"),
    ("no criteria", asking({"type": "score"}), ("questions", "a", "score", "criteria"), "missing"),
    ("256 options", asking(choice(256)), ("questions", "a", "choice", "criteria"), "too_long"),
    ("no option", asking(choice(0)), ("questions", "a", "choice", "criteria"), "too_short"),
    (
        "options as a list",
        asking({"type": "choice", "criteria": ["x", "y"]}),
        ("questions", "a", "choice", "criteria"),
        "dict_type",
    ),
    (
        "levels as a map",
        asking({"type": "score", "criteria": {"0": "low"}}),
        ("questions", "a", "score", "criteria"),
        "list_type",
    ),
    ("a text for yes and no", asking({**NOUL, "criteria": "?"}), ("questions", "a", "noul", "criteria"), ""),
    (
        "a needed id that is no list",
        asking({**NOUL, "depends_on": "b"}),
        ("questions", "a", "noul", "depends_on"),
        "tuple_type",
    ),
    (
        "a condition that is no map",
        asking({**NOUL, "ask_if": ["b"]}),
        ("questions", "a", "noul", "ask_if"),
        "",
    ),
    ("no samples", body(samples=0), ("samples",), "samples_type"),
    ("33 samples", body(samples=33), ("samples",), "samples_type"),
    ("nine steps", body(steps=9), ("steps",), "less_than_equal"),
    ("no step", body(steps=0), ("steps",), "greater_than_equal"),
    ("half a step", body(steps=1.5), ("steps",), "int_type"),
    ("a negative seed", body(seed=-1), ("seed",), "greater_than_equal"),
    ("a negative threshold", body(auto_threshold=-0.1), ("auto_threshold",), "greater_than_equal"),
    ("a threshold without end", body(auto_threshold="inf"), ("auto_threshold",), "float_type"),
    ("chunks of no row", body(chunk_rows=0), ("chunk_rows",), "greater_than_equal"),
    ("an unknown chunk prompt", body(chunk_prompt="both"), ("chunk_prompt",), "literal_error"),
    ("asking nothing", body(ask=[]), ("ask",), "too_short"),
]


@pytest.mark.parametrize(
    ("wrong", "loc", "kind"), [row[1:] for row in WRONG_BODIES], ids=[row[0] for row in WRONG_BODIES]
)
def test_a_wrong_body_is_refused_where_it_is_wrong(wrong: Any, loc: tuple[str | int, ...], kind: str) -> None:
    with pytest.raises(ValidationError) as refused:
        parse(wrong)
    errors = refused.value.errors()
    assert all(error["loc"][: len(loc)] == loc for error in errors)
    assert kind in {error["type"] for error in errors} | {""}


@pytest.mark.parametrize("state", [1, 1.5, True])
def test_a_state_is_a_text_an_object_or_a_list(state: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        parse(body(state=state))
    assert {error["loc"][0] for error in refused.value.errors()} == {"state"}


def test_a_null_state_is_no_state() -> None:
    with pytest.raises(ValidationError):
        parse({**body(), "state": None})


@pytest.mark.parametrize("state", ["", {}, [], {"text": None}, ["x", 1]])
def test_an_empty_state_is_a_state(state: Any) -> None:
    assert parse(body(state=state)).state == state


@pytest.mark.parametrize("question", [score(1), score(10), choice(1), choice(255), {**NOUL, "criteria": {}}])
def test_the_largest_and_the_smallest_question_are_planned(
    vocabulary: Vocabulary, question: dict[str, Any]
) -> None:
    for joint in (False, True):
        make_plan(parse(asking(question) | {"joint": joint}), vocabulary)


def test_400_questions_are_taken() -> None:
    assert len(parse(body(questions=dict.fromkeys(many(400), NOUL))).questions) == 400


@pytest.mark.parametrize("extra", [{}, {"criteria": None}, {"instructions": "Where?"}])
def test_a_box_is_not_served_and_the_refusal_says_why(extra: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="points into images") as refused:
        parse(asking({"type": "box", **extra}))
    assert refused.value.loc == ("questions", "a", "type")
    assert refused.value.kind == "unsupported_question_type"


@pytest.mark.parametrize(
    ("name", "value"),
    [("assets", {"x": {"data_base64": "AA=="}}), ("images", ["data:image/png;base64,AA=="])],
)
def test_images_that_nobody_kept_are_refused_and_not_ignored(name: str, value: Any) -> None:
    with pytest.raises(Invalid, match="images are not taken here") as refused:
        parse(body(**{name: value}))
    assert refused.value.loc == (name,)


@pytest.mark.parametrize(("name", "value"), [("think", -1), ("think", 4097), ("think", True)])
def test_a_thought_is_bounded(name: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        parse(body(**{name: value}))


@pytest.mark.parametrize(
    ("questions", "loc"),
    [
        (
            {"a": {**NOUL, "depends_on": ["b"]}, "b": {**NOUL, "depends_on": ["a"]}},
            ("questions", "b", "depends_on"),
        ),
        ({"a": {**NOUL, "depends_on": ["a"]}}, ("questions", "a", "depends_on")),
        ({"a": {**NOUL, "depends_on": ["z"]}}, ("questions", "a", "depends_on", 0)),
        ({"a": {**NOUL, "ask_if": {"z": True}}}, ("questions", "a", "ask_if", "z")),
        ({"a": NOUL, "b": {**NOUL, "ask_if": {"a": "maybe"}}}, ("questions", "b", "ask_if", "a")),
        ({"a": NOUL, "b": {**NOUL, "ask_if": {"a": 1}}}, ("questions", "b", "ask_if", "a")),
        ({"a": score(3), "b": {**NOUL, "ask_if": {"a": [0, 3]}}}, ("questions", "b", "ask_if", "a")),
        ({"a": choice(3), "b": {**NOUL, "ask_if": {"a": True}}}, ("questions", "b", "ask_if", "a")),
    ],
)
def test_a_wrong_reference_between_questions_is_refused_where_it_stands(
    questions: dict[str, Any], loc: tuple[str | int, ...]
) -> None:
    with pytest.raises(Invalid) as refused:
        make_stages(parse(body(questions=questions)))
    assert refused.value.loc == loc


def test_an_unknown_question_to_ask_is_refused_where_it_stands() -> None:
    with pytest.raises(Invalid) as refused:
        make_stages(parse(body(ask=["a", "z"])))
    assert refused.value.loc == ("ask", 1)


@pytest.mark.parametrize("ask_if", [{"a": []}, {"a": None}, {"a": 1.5}, {"a": {"yes": True}}])
def test_a_condition_without_an_answer_is_refused(ask_if: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        parse(body(questions={"a": NOUL, "b": {**NOUL, "ask_if": ask_if}}))
    assert refused.value.errors()[0]["loc"][:5] == ("questions", "b", "noul", "ask_if", "a")
