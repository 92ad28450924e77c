"""Where images are shown: marks that we write, of placeholders and parts, and none that a client writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from planner.decision import mark_of
from planner.dialects import chat, decisions, systemone
from planner.dialects.image_fields import Shown
from planner.dialects.systemone_request import SystemOneRequest
from planner.errors import Invalid
from planner.plan import make_plan
from planner.prompts import message_of
from planner.vocabulary import Vocabulary
from planner.waves import first_wave

RED, BLUE = "a" * 64, "b" * 64
AFTER = Shown(after=(RED,))
NOUL = {"type": "noul", "instructions": "Is it red?"}
ASSET = {"data_base64": "AA=="}
URL = "data:image/png;base64,AA=="

MARK = "\ue0009\ue000"
SPELLED = "\\ue0009\\ue000"


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "state": "A door.", "questions": {"a": NOUL}, "images": [URL], **fields}


def with_assets(*names: str, **fields: Any) -> dict[str, Any]:
    return {**body(**fields), "images": [], "assets": dict.fromkeys(names, ASSET)}


def openai(*items: dict[str, Any], **question: Any) -> dict[str, Any]:
    message = {"role": "user", "content": [{"type": "input_image", "image_url": URL}]}
    asked = {"type": "predicate", "instructions": "Red?", **question}
    return {"model": "m", "input": [message, *items], "questions": [asked]}


def talk(*parts: dict[str, Any], schema: str = '{"questions": [{"id": "a", "type": "noul"}]}') -> Any:
    content = [*parts, {"type": "image_url", "image_url": {"url": URL}}]
    messages = [{"role": "system", "content": schema}, {"role": "user", "content": content}]
    return {"model": "m", "messages": messages}


def choice(*names: str) -> dict[str, Any]:
    return {"type": "choice", "criteria": dict.fromkeys(names)}


def call(arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": "1", "name": "f", "arguments": arguments}


def data(value: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_json", "data": value}]}


INPUT, STATE = ("input",), ("messages", 1, "content")
SLIPPED: dict[str, tuple[Callable[[], Any], Any, tuple[Any, ...]]] = {
    "a state": (lambda: systemone, body(state=f"x {MARK}"), ("state",)),
    "a key of a state": (lambda: systemone, body(state={MARK: 1}), ("state",)),
    "instructions": (lambda: systemone, body(instructions=MARK), ("instructions",)),
    "an option's name": (lambda: systemone, body(questions={"q": choice(MARK, "b")}), ("questions", "q")),
    "a question's id": (lambda: systemone, body(questions={MARK: NOUL}), ("questions", MARK)),
    "a schema": (
        lambda: systemone,
        body(questions={"q": {"type": "object", "criteria": {"const": MARK}}}),
        ("questions", "q"),
    ),
    "a key of an OpenAI part": (lambda: decisions, openai(data({MARK: 1})), INPUT),
    "arguments as they are decoded": (lambda: decisions, openai(call(f'{{"a": "{SPELLED}"}}')), INPUT),
    "an OpenAI question": (lambda: decisions, openai(instructions=f"{MARK}?"), ("questions", 0)),
    "a chat's state": (lambda: chat, talk({"type": "text", "text": MARK}), STATE),
    "a chat's schema as it is decoded": (
        lambda: chat,
        talk(schema=f'{{"questions": [{{"id": "a", "type": "noul", "instructions": "{SPELLED}"}}]}}'),
        ("questions", 0),
    ),
}


@pytest.mark.parametrize("name", SLIPPED)
def test_nobody_but_us_writes_marks(name: str) -> None:
    dialect, asked, loc = SLIPPED[name]
    with pytest.raises(Invalid, match="U\\+E000") as refused:
        dialect().parse(asked, AFTER)
    assert refused.value.loc == loc


def test_what_no_model_reads_may_hold_the_character_of_marks() -> None:
    assert systemone.parse(body(metadata={"a": MARK}), AFTER).images == (RED,)
    assert systemone.parse(body(state=MARK, images=[])).state == MARK


def test_a_mark_of_no_image_is_text() -> None:
    text = f"a {MARK} b {mark_of(0)} c \ue000{'9' * 5000}\ue000"
    assert message_of(text, ()).parts == (text,)
    assert message_of(text, (RED,)).parts[:2] == (f"a {MARK} b ", 0)


def test_marks_are_not_looked_into_for_placeholders() -> None:
    shown = Shown({"1": RED, "0": BLUE, "10": RED})
    decision = systemone.parse(with_assets("1", "0", "10", state="1, 0 and 10"), shown)
    assert decision.state == f"{mark_of(0)}, {mark_of(1)} and {mark_of(0)}"


def test_placeholders_are_replaced_in_texts_and_nowhere_else(vocabulary: Vocabulary) -> None:
    questions = {
        "image": {**NOUL, "criteria": {"true": "as in image", "false": None}},
        "noul": {**choice("image", "other"), "depends_on": ["image"], "ask_if": {"image": "yes"}},
        "s": {"type": "score", "criteria": ["like image", {"image": "image"}], "instructions": ["image"]},
    }
    asked = with_assets("image", "noul", state={"image": ["image", 1]}, questions=questions)
    with pytest.raises(Invalid) as refused:
        systemone.parse(asked, Shown({"image": RED, "noul": BLUE}))
    assert (refused.value.loc, refused.value.kind) == (("assets", "noul"), "unused_asset")
    shown = Shown({"image": RED})
    decision = systemone.parse(with_assets("image", **{k: asked[k] for k in ("state", "questions")}), shown)
    mark = mark_of(0)
    assert decision.state == {"image": [mark, 1]}
    first, second, third = decision.questions
    assert first.alternatives[0].text == f"as in {mark}"
    assert (second.id, second.depends_on, dict(second.ask_if)) == (
        "noul",
        ("image",),
        {"image": ("yes",)},
    )
    assert [one.name for one in second.alternatives] == ["image", "other"]
    assert third.instructions == json.dumps([mark], ensure_ascii=False)
    assert [one.source for one in third.alternatives] == ["like image", {"image": "image"}]
    assert [one.text for one in third.alternatives] == [f"like {mark}", f'{{"image": "{mark}"}}']
    assert first_wave(make_plan(decision, vocabulary)).reads


def test_a_schema_is_left_as_it_is_and_its_state_is_not() -> None:
    schema = {"type": "object", "properties": {"red": {"type": "boolean", "description": "Is <p> red?"}}}
    asked = {**with_assets("<p>", state="See <p>."), "schema": schema}
    del asked["questions"]
    decision = systemone.parse(asked, Shown({"<p>": RED}))
    assert decision.state == f"See {mark_of(0)}."
    assert decision.schema == schema
    with pytest.raises(Invalid, match="no text"):
        systemone.parse({**asked, "state": "See."}, Shown({"<p>": RED}))


def test_an_asset_that_no_text_names_is_refused() -> None:
    with pytest.raises(Invalid, match="no text of state, instructions and descriptions") as refused:
        systemone.parse(with_assets("<p>", state="nothing"), Shown({"<p>": RED}))
    assert refused.value.loc == ("assets", "<p>")


@pytest.mark.parametrize("state", [None, 5, True])
def test_a_state_is_as_wrong_beside_images_as_without(state: Any) -> None:
    for asked in (body(state=state), {k: v for k, v in body().items() if k != "state"}):
        with pytest.raises(ValidationError):
            systemone.images_in(asked)
        with pytest.raises(ValidationError):
            systemone.parse(asked, AFTER)


def test_only_parts_that_are_read_bring_images() -> None:
    other = {"type": "input_image", "image_url": "data:image/png;base64,BB=="}
    asked = openai({**call("{}"), "content": [other]}, instructions=[other])
    asked["input"][0]["output"] = [other]
    sent = decisions.images_in(asked)
    assert [loc for loc, _ in sent.listed] == [
        ("input", 0, "content", 0, "image_url"),
        ("questions", 0, "instructions", 0, "image_url"),
    ]
    decision = decisions.parse(asked, Shown(after=(RED, BLUE)))
    assert decision.state[0]["content"] == mark_of(0)
    assert decision.questions[0].instructions == mark_of(1)


@pytest.mark.parametrize(
    ("fields", "loc"),
    [
        ({"images": [1]}, ("images", 0)),
        ({"images": [URL, {"content_type": "image/png"}]}, ("images", 1, "base64")),
        ({"images": "abc"}, ("images",)),
        ({"assets": [1]}, ("assets",)),
        ({"assets": {"<p>": "y"}}, ("assets", "<p>")),
        ({"assets": {"<p>": {}}}, ("assets", "<p>", "data_base64")),
        ({"assets": {"<p>": {"part": 7}}}, ("assets", "<p>", "part")),
        ({"assets": {"<p>": {"type": "video", "data_base64": "x"}}}, ("assets", "<p>", "type")),
    ],
)
def test_wrong_images_are_told_by_their_path(fields: dict[str, Any], loc: tuple[Any, ...]) -> None:
    with pytest.raises(ValidationError) as refused:
        systemone.images_in(body(**fields))
    assert [error["loc"] for error in refused.value.errors()] == [loc]


def test_the_document_of_the_door_tells_images() -> None:
    fields = SystemOneRequest.model_json_schema()["properties"]
    assert len(fields["images"]["items"]["anyOf"]) == 2
