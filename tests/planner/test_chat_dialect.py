"""Structured chat: which chat is a decision, what it means, and what its answer looks like."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from planner.decision import Alternative, Decision, mark_of
from planner.dialects import DIALECTS
from planner.dialects.chat import images_in, parse, render
from planner.dialects.chat_request import schema_of
from planner.dialects.dialect import Timing
from planner.dialects.image_fields import Shown
from planner.errors import Invalid
from planner.plan import make_plan
from planner.reads import Read, Rows, Served, Written
from planner.vocabulary import Vocabulary
from tests.planner.support import Engine, first_label, play, prompt_of, rows

TIMING = Timing(queued_ms=1.0, total_ms=2.0, created=1_800_000_000.9, id="dec_7")
LATE = {"id": "late", "type": "noul", "instructions": "Is it late?"}
TEAM = {"id": "team", "type": "choice", "options": ["post", {"name": "billing", "description": "Money"}]}
ANGER = {"id": "anger", "type": "score", "levels": ["calm", {"name": "cross", "description": "Loud"}, "mad"]}


def body(*questions: dict[str, Any], state: Any = "It came late.", **schema: Any) -> dict[str, Any]:
    text = json.dumps({"questions": [*questions], **schema})
    messages = [{"role": "system", "content": text}, {"role": "user", "content": state}]
    return {"model": "jev-latest", "messages": messages}


def respond(vocabulary: Vocabulary, request: dict[str, Any], engine: Engine = first_label) -> dict[str, Any]:
    """The completion, on an engine."""
    decision = parse(request)
    return render(decision, play(make_plan(decision, vocabulary), engine).answers, TIMING)


def content(vocabulary: Vocabulary, request: dict[str, Any], engine: Engine = first_label) -> dict[str, Any]:
    """What its message says."""
    found: dict[str, Any] = json.loads(
        respond(vocabulary, request, engine)["choices"][0]["message"]["content"]
    )
    return found


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("parts", [False, True])
def test_a_first_message_that_spells_questions_makes_a_decision(role: str, parts: bool) -> None:
    text = '\n {"questions": []}'
    said = [{"type": "text", "text": text}] if parts else text
    assert schema_of({"messages": [{"role": role, "content": said}]}) == {"questions": []}


@pytest.mark.parametrize(
    "chat",
    [
        None,
        [],
        {},
        {"messages": []},
        {"messages": ["x"]},
        {"messages": [{"role": "user", "content": '{"questions": []}'}]},
        {"messages": [{"role": "system", "content": "You are kind."}]},
        {"messages": [{"role": "system", "content": '{"questions": ['}]},
        {"messages": [{"role": "system", "content": '["questions"]'}]},
        {"messages": [{"role": "system", "content": '{"a": {"questions": 1}}'}]},
        {"messages": [{"role": "system", "content": None}]},
        {"messages": [{"role": "system", "content": [{"type": "image_url", "image_url": {}}]}]},
    ],
)
def test_anything_else_is_ordinary_chat(chat: Any) -> None:
    assert schema_of(chat) is None


def test_a_decision_is_joint_and_told_in_a_completion(vocabulary: Vocabulary) -> None:
    decision = parse(body(LATE, TEAM))
    assert decision.options.joint
    whole = respond(vocabulary, body(LATE, TEAM))
    assert whole | {"choices": [], "usage": {}} == {
        "id": "chatcmpl-dec_7",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": "diffusion",
        "choices": [],
        "usage": {},
    }
    (choice,) = whole["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    assert choice["message"]["role"] == "assistant"
    assert set(json.loads(choice["message"]["content"])) == {"answers", "diagnostics"}
    assert whole["usage"].keys() > {"prompt_tokens", "completion_tokens", "total_tokens"}
    assert whole["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}


def test_the_usage_tells_the_tokens_of_a_thought(vocabulary: Vocabulary) -> None:
    decision = parse(body(LATE, think=40))
    thought = Written("It came on Friday.", 5, "stop", Served("e"))
    answers = play(make_plan(decision, vocabulary), first_label, lambda asked: thought).answers
    usage = render(decision, answers, TIMING)["usage"]
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 5}
    assert usage["completion_tokens"] == 5 + 1


def test_each_type_tells_its_label_and_every_probability_by_name(vocabulary: Vocabulary) -> None:
    def engine(read: Read) -> Rows:
        return rows(read, [0.9, 0.1] if len(read.ids) == 2 else [0.1, 0.2, 0.7])

    answers: dict[str, Any] = {}
    for question in (LATE, TEAM, ANGER):
        answers |= content(vocabulary, body(question, joint=False), engine)["answers"]
    assert answers == {
        "late": {
            "type": "noul",
            "label": "yes",
            "confidence": 0.9,
            "probabilities": {"yes": 0.9, "no": 0.1},
            "noul": 0.9,
            "label_mass": 1.0,
        },
        "team": {
            "type": "choice",
            "label": "post",
            "confidence": 0.9,
            "probabilities": {"post": 0.9, "billing": 0.1},
            "choice": "post",
            "label_mass": 1.0,
        },
        "anger": {
            "type": "score",
            "label": "mad",
            "confidence": 0.7,
            "probabilities": {"calm": 0.1, "cross": 0.2, "mad": 0.7},
            "score": 1.6,
            "level": 2,
            "label_mass": 1.0,
        },
    }


def test_several_draws_tell_their_spread(vocabulary: Vocabulary) -> None:
    def engine(read: Read) -> Rows:
        return rows(read, [0.4, 0.6] if read.seed else [0.8, 0.2])

    answer = content(vocabulary, body(LATE, samples=2), engine)["answers"]["late"]
    assert (answer["noul"], answer["stderr"], answer["agreement"], answer["draws"]) == (0.6, 0.2, 0.5, 2)


def test_diagnostics_may_be_left_out(vocabulary: Vocabulary) -> None:
    assert set(content(vocabulary, body(LATE, diagnostics=False))) == {"answers"}


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("It came late.", "It came late."),
        (' {"a": [1, "ü"]}', {"a": [1, "ü"]}),
        ("[1]", [1]),
        ("{broken", "{broken"),
        ("7", "7"),
        ([{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}], "One\nTwo"),
        ('{"id": 123456789012345678901}', {"id": 123456789012345678901}),
        ('{"a": "\\ud800"}', '{"a": "\\ud800"}'),
    ],
)
def test_the_second_message_is_the_state(said: Any, state: Any) -> None:
    decision = parse(body(LATE, state=said))
    assert decision.state == state
    assert Decision.from_json(decision.to_json()).state == state


def test_descriptions_stand_beside_names_for_the_model(vocabulary: Vocabulary) -> None:
    team, anger = parse(body(TEAM, ANGER)).questions
    assert team.alternatives == (Alternative("post"), Alternative("billing", "Money"))
    assert anger.alternatives[1] == Alternative("1", "cross - Loud", source="cross")
    (read,) = play(make_plan(parse(body(TEAM, ANGER)), vocabulary)).reads
    assert "B: billing - Money" in prompt_of(vocabulary, read)


def test_extensions_stand_in_the_schema_or_beside_the_model() -> None:
    request = {**body(LATE, samples=3), "samples": 2, "steps": 4, "seed": None, "metadata": {"a": 1}}
    options = parse(request).options
    assert (options.samples, options.steps, options.seed) == (3, 4, 0)
    assert DIALECTS["chat"].fields(request)["metadata"] == {"a": 1}
    assert DIALECTS["chat"].fields(body(LATE, webhook="https://a.example"))["webhook"] == "https://a.example"


def test_a_condition_may_name_a_level() -> None:
    asked = {**LATE, "ask_if": {"anger": ["cross", 2]}}
    assert parse(body(ANGER, asked)).questions[1].ask_if == {"anger": ("1", "2")}


def test_a_skipped_question_is_answered_null(vocabulary: Vocabulary) -> None:
    told = content(vocabulary, body(LATE, {**TEAM, "ask_if": {"late": False}}))
    assert told["answers"]["team"] is None
    assert "team" in told["diagnostics"]["skipped"]


def test_span_questions_are_taken_with_their_limits() -> None:
    span, spans = parse(
        body({"id": "a", "type": "span", "max_tokens": 8}, {"id": "b", "type": "spans", "max_items": 3})
    ).questions
    assert (span.max_tokens, spans.max_items) == (8, 3)


def test_sampling_fields_of_a_client_change_nothing() -> None:
    assert parse({**body(LATE), "temperature": 0, "max_tokens": 5, "n": 1}) == parse(body(LATE))


@pytest.mark.parametrize(
    ("messages", "kind"),
    [
        ([], "message_count"),
        (["more"], "message_count"),
    ],
)
def test_a_decision_has_exactly_two_messages(messages: list[str], kind: str) -> None:
    request = body(LATE)
    said = [{"role": "user", "content": text} for text in messages]
    request["messages"] = [*request["messages"], *said] if said else request["messages"][:1]
    with pytest.raises(Invalid, match="exactly two messages") as error:
        parse(request)
    assert error.value.kind == kind


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (
            lambda: body(LATE, state=[{"type": "image_url", "image_url": {"url": "data:"}}]),
            "images are not taken here",
        ),
        (lambda: body(LATE, state=None), "a state is a string"),
        (lambda: body(LATE, state=[]), "a state is a string"),
        (lambda: body(LATE, state="[" * 102 + "]" * 102), "more than 100 deep"),
        (lambda: body(LATE, state='{"a":' * 5000 + "1" + "}" * 5000), "more than 100 deep"),
        (lambda: body({**LATE, "instructions": json.loads("[" * 99 + "]" * 99)}), "more than 100 deep"),
        (lambda: body(LATE, images=["data:"]), "images"),
        (lambda: {**body(LATE), "model": 5}, "names its model"),
        (lambda: body(LATE, LATE), "'late' before it"),
    ],
)
def test_what_cannot_be_served_is_refused(wrong: Any, match: str) -> None:
    with pytest.raises(Invalid, match=match):
        parse(wrong())


@pytest.mark.parametrize(
    "questions",
    [
        [],
        [LATE] * 401,
        [{**LATE, "id": ""}],
        [{**LATE, "type": "box"}],
        [{**TEAM, "options": []}],
        [{**TEAM, "options": ["a", "a"]}],
        [{**TEAM, "options": [7]}],
        [{**ANGER, "levels": [str(n) for n in range(11)]}],
    ],
)
def test_wrong_questions_are_refused(questions: list[dict[str, Any]]) -> None:
    with pytest.raises(ValidationError):
        parse(body(*questions))


def test_image_parts_of_a_state_are_shown_where_they_stand() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    request = body(LATE, state=[{"type": "text", "text": "This:"}, part])
    url = part["image_url"]["url"]  # type: ignore[index]
    assert images_in(request).listed == ((("messages", 1, "content", 1, "image_url", "url"), url),)
    decision = parse(request, Shown(after=("a" * 64,)))
    assert decision.state == f"This:\n{mark_of(0)}"
    assert decision.images == ("a" * 64,)
