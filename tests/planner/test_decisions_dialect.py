"""OpenAI's Decisions: what a body means, and what an answer looks like."""

from typing import Any

import pytest
from pydantic import ValidationError

from planner.decision import Alternative, Decision, Options, mark_of
from planner.dialects import DIALECTS
from planner.dialects.decisions import images_in, parse, render
from planner.dialects.dialect import Timing
from planner.dialects.image_fields import Shown
from planner.errors import Invalid
from planner.plan import make_plan
from planner.reads import Rows, Served
from planner.vocabulary import Vocabulary
from tests.planner.support import Engine, first_label, hashed, many, play, prompt_of, rows

STATEMENT = {"type": "predicate", "instructions": "It is late."}
TICKET = {"type": "input_json", "data": {"ticket": 7}}
HELLO = {"type": "input_text", "text": "Hello."}


def body(*questions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "jev-latest", "input": "The parcel came late.", "questions": [*questions], **more}


def choice(*values: Any, **more: Any) -> dict[str, Any]:
    return {"type": "choice", "instructions": "Which?", "choices": [{"value": v} for v in values], **more}


def respond(vocabulary: Vocabulary, request: dict[str, Any], engine: Engine = first_label) -> dict[str, Any]:
    """The response to a body, on an engine."""
    decision = parse(request)
    return render(decision, play(make_plan(decision, vocabulary), engine).answers, Timing(1, 2))


def answer(vocabulary: Vocabulary, question: dict[str, Any], *probabilities: float) -> Any:
    (only,) = respond(vocabulary, body(question), lambda read: rows(read, probabilities))["answers"]
    return only


def test_a_predicate_is_answered_by_its_probability(vocabulary: Vocabulary) -> None:
    assert answer(vocabulary, STATEMENT, 0.25, 0.75) == {
        "type": "predicate",
        "name": None,
        "probability": 0.25,
    }


def test_a_choice_is_answered_in_the_order_of_its_choices(vocabulary: Vocabulary) -> None:
    assert answer(vocabulary, choice("post", "billing", "it", name="team"), 0.2, 0.7, 0.1) == {
        "type": "choice",
        "name": "team",
        "choice": "billing",
        "confidence": 0.55,
        "probabilities": [
            {"value": "post", "probability": 0.2},
            {"value": "billing", "probability": 0.7},
            {"value": "it", "probability": 0.1},
        ],
    }


def test_a_score_is_answered_by_its_expected_level(vocabulary: Vocabulary) -> None:
    levels = [{"label": "calm"}, {"label": "cross", "description": "raises the voice"}, {"label": "furious"}]
    question = {"type": "score", "instructions": "How angry?", "levels": levels}
    assert answer(vocabulary, question, 0.1, 0.2, 0.7) == {
        "type": "score",
        "name": None,
        "score": 1.6,
        "confidence": 0.4,
        "probabilities": [
            {"value": 0, "label": "calm", "probability": 0.1},
            {"value": 1, "label": "cross", "probability": 0.2},
            {"value": 2, "label": "furious", "probability": 0.7},
        ],
    }
    assert parse(body(question)).questions[0].alternatives[1] == Alternative(
        "1", "cross - raises the voice", source="cross"
    )


def test_a_boolean_and_the_string_of_its_text_are_two_choices(vocabulary: Vocabulary) -> None:
    question = choice("true", True, "no")
    assert [option.name for option in parse(body(question)).questions[0].alternatives] == [
        '"true"',
        "true",
        '"no"',
    ]
    told = answer(vocabulary, question, 0.1, 0.6, 0.3)
    assert told["choice"] is True
    assert [one["value"] for one in told["probabilities"]] == ["true", True, "no"]


def test_booleans_and_strings_that_cannot_be_confused_are_read_as_they_are() -> None:
    (question,) = parse(body(choice(True, False, "unknown"))).questions
    assert [option.name for option in question.alternatives] == ["true", "false", "unknown"]


def test_choices_survive_the_store_with_their_types() -> None:
    decision = parse(body(choice("true", True)))
    again = Decision.from_json(decision.to_json())
    assert [type(option.source) for option in again.questions[0].alternatives] == [str, bool]


def test_names_may_be_missing_alike_and_change_no_read(vocabulary: Vocabulary) -> None:
    named = body({**STATEMENT, "name": "late"}, {**STATEMENT, "name": "late"})
    plain = body(STATEMENT, STATEMENT)
    assert [one["name"] for one in respond(vocabulary, named)["answers"]] == ["late", "late"]
    reads = [play(make_plan(parse(request), vocabulary), hashed).reads for request in (named, plain)]
    assert reads[0] == reads[1]


def test_a_question_reads_the_same_in_any_place(vocabulary: Vocabulary) -> None:
    alone = respond(vocabulary, body(choice("a", "b")), hashed)["answers"]
    among = respond(vocabulary, body(STATEMENT, choice("a", "b"), STATEMENT), hashed)["answers"]
    assert alone[0] == among[1]


@pytest.mark.parametrize("joint", [False, True])
def test_names_never_reach_the_model(vocabulary: Vocabulary, joint: bool) -> None:
    decision = parse(body({**STATEMENT, "name": "zebra"}, {**STATEMENT, "name": "zebra2"}, joint=joint))
    for read in play(make_plan(decision, vocabulary)).reads:
        assert "zebra" not in prompt_of(vocabulary, read)


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ("", ""),
        ("Hello.", "Hello."),
        ([{"role": "user", "content": "Hello."}], "Hello."),
        ([{"type": "message", "role": "user", "content": [HELLO]}], "Hello."),
        ([{"role": "user", "content": [TICKET]}], {"ticket": 7}),
        (
            [{"role": "user", "content": [HELLO, TICKET]}],
            [{"role": "user", "content": ["Hello.", {"ticket": 7}]}],
        ),
        ([{"role": "system", "content": "Be kind."}], [{"role": "system", "content": "Be kind."}]),
        (
            [
                {"role": "developer", "content": [HELLO]},
                {"role": "user", "content": "Hi"},
                {
                    "role": "assistant",
                    "phase": "commentary",
                    "content": [
                        {"type": "output_text", "text": "Well"},
                        {"type": "refusal", "refusal": "No."},
                    ],
                },
            ],
            [
                {"role": "developer", "content": "Hello."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "phase": "commentary", "content": ["Well", {"refusal": "No."}]},
            ],
        ),
        (
            [
                {
                    "type": "function_call",
                    "call_id": "c1",
                    "name": "look",
                    "arguments": '{"id":7}',
                    "id": "fc",
                },
                {"type": "function_call_output", "call_id": "c1", "output": "late"},
                {"type": "custom_tool_call", "call_id": "c2", "name": "say", "input": "{", "namespace": "n"},
                {"type": "custom_tool_call_output", "call_id": "c2", "output": [HELLO]},
            ],
            [
                {"type": "function_call", "call_id": "c1", "name": "look", "arguments": {"id": 7}},
                {"type": "function_call_output", "call_id": "c1", "output": "late"},
                {"type": "custom_tool_call", "call_id": "c2", "namespace": "n", "name": "say", "input": "{"},
                {"type": "custom_tool_call_output", "call_id": "c2", "output": "Hello."},
            ],
        ),
    ],
)
def test_the_state_is_the_input_as_the_model_shall_read_it(given: Any, state: Any) -> None:
    assert parse(body(STATEMENT, input=given)).state == state


def test_arguments_that_are_no_object_stay_text() -> None:
    deep = "[" * 2000
    for text in ("", "7", "{", '{"a": NaN}', '{"a": ' * 200 + "1" + "}" * 200, deep):
        call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": text}
        assert parse(body(STATEMENT, input=[call])).state[0]["arguments"] == text


def test_large_whole_numbers_in_arguments_keep_every_digit() -> None:
    call = {
        "type": "function_call",
        "call_id": "c",
        "name": "f",
        "arguments": '{"id": 123456789012345678901}',
    }
    assert "123456789012345678901" in parse(body(STATEMENT, input=[call])).text


def test_instructions_in_parts_are_a_line_each() -> None:
    question = {"type": "predicate", "instructions": [HELLO, TICKET]}
    assert parse(body(question)).questions[0].instructions == 'Hello.\n{"ticket": 7}'


def test_400_questions_with_255_choices_are_asked(vocabulary: Vocabulary) -> None:
    assert len(respond(vocabulary, body(*[STATEMENT] * 400))["answers"]) == 400
    (told,) = respond(vocabulary, body(choice(*many(255))), hashed)["answers"]
    assert abs(sum(one["probability"] for one in told["probabilities"]) - 1) <= 255 * 0.5e-6


def test_usage_tells_what_came_from_caches(vocabulary: Vocabulary) -> None:
    served = Served(prompt_tokens=100, cached_tokens=64)
    engine: Engine = lambda read: Rows(((-1.0, -2.0),), (read.ids[0],), served=served)  # noqa: E731
    assert respond(vocabulary, body(STATEMENT, STATEMENT), engine)["usage"] == {
        "input_tokens": 200,
        "input_tokens_details": {"cached_tokens": 128, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 202,
    }


def test_extensions_are_options_and_bring_fields_of_ours(vocabulary: Vocabulary) -> None:
    request = body(STATEMENT, samples=2, steps=3, seed=5, instructions="Hm.", diagnostics=True)
    assert parse(request).options == Options("Hm.", samples=2, steps=3, seed=5, diagnostics=True)
    response = respond(vocabulary, request)
    assert response["answers"][0].keys() > {"label_mass", "stderr", "agreement", "draws"}
    assert response["diagnostics"]["stages"] == [["0"]]


def test_without_extensions_there_is_nothing_but_openais_own(vocabulary: Vocabulary) -> None:
    response = respond(
        vocabulary, body(STATEMENT, safety_identifier="u", prompt_cache_options={"ttl": "30m"})
    )
    assert set(response) == {"model", "answers", "usage"}
    assert set(response["answers"][0]) == {"type", "name", "probability"}


def test_a_prompt_cache_key_keeps_prompts_apart() -> None:
    salts = [parse(body(STATEMENT, prompt_cache_key=key)).salt for key in (None, "", "a", "b", "a")]
    assert salts[0] == salts[1] == ""
    assert salts[2] == salts[4] not in ("", salts[3])


@pytest.mark.parametrize(
    ("wrong", "loc", "kind"),
    [
        ({"images": ["data:"]}, ("images",), "not_served"),
        ({"ask": ["0"]}, ("ask",), "not_served"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]},
            ("input", 0, "content", 0, "image_url"),
            "not_served",
        ),
        (
            {"input": [{"type": "function_call_output", "call_id": "x", "output": ""}]},
            ("input", 0, "call_id"),
            "unknown_call_id",
        ),
    ],
)
def test_what_is_not_served_is_refused_with_its_place(
    wrong: dict[str, Any], loc: tuple[Any, ...], kind: str
) -> None:
    with pytest.raises(Invalid) as error:
        parse(body(STATEMENT, **wrong))
    assert (error.value.loc, error.value.kind) == (loc, kind)


@pytest.mark.parametrize(
    "wrong",
    [
        {"questions": []},
        {"questions": [STATEMENT] * 401},
        {"questions": [{"type": "noul", "instructions": "x"}]},
        {"questions": [{"type": "predicate"}]},
        {"questions": [choice("a")]},
        {"questions": [choice(*many(256))]},
        {"questions": [choice("a", "a")]},
        {"questions": [choice(1, 2)]},
        {"questions": [{"type": "score", "instructions": "x", "levels": [{"label": "a"}]}]},
        {"questions": [{"type": "score", "instructions": "x", "levels": [{"label": "a"}] * 11}]},
        {"input": []},
        {"input": {"role": "user", "content": "x"}},
        {"input": [{"role": "tool", "content": "x"}]},
        {"input": [{"role": "user", "content": []}]},
        {"input": [{"role": "user", "content": [{"type": "input_json", "data": [1]}]}]},
        {"input": [{"type": "reasoning"}]},
        {"samples": 0},
    ],
)
def test_wrong_bodies_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parse(
            body(**{"questions": [STATEMENT], **wrong}) if "questions" not in wrong else {**body(), **wrong}
        )


def test_the_dialect_is_found_by_its_door() -> None:
    dialect = DIALECTS[parse(body(STATEMENT)).door]
    assert (dialect.parse, dialect.render) == (parse, render)


def test_image_parts_are_shown_where_they_stand() -> None:
    part = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
    content = [{"type": "input_text", "text": "This:"}, part]
    request = body(STATEMENT, input=[{"role": "user", "content": content}])
    request["questions"][0]["instructions"] = [{"type": "input_text", "text": "Like"}, part]
    assert images_in(request).listed == (
        (("input", 0, "content", 1, "image_url"), part["image_url"]),
        (("questions", 0, "instructions", 1, "image_url"), part["image_url"]),
    )
    decision = parse(request, Shown(after=("a" * 64, "b" * 64)))
    assert decision.state == [{"role": "user", "content": ["This:", mark_of(0)]}] or decision.state == [
        "This:",
        mark_of(0),
    ]
    assert decision.questions[0].instructions == f"Like\n{mark_of(1)}"
    assert decision.images == ("a" * 64, "b" * 64)
