"""System One's dialect: what a body means, and what an answer looks like."""

from typing import Any

import pytest

from planner.decision import Alternative, Options
from planner.dialects import DIALECTS
from planner.dialects.dialect import Timing
from planner.dialects.systemone import parse, render
from planner.plan import make_plan
from planner.reads import Read, Rows, Served
from planner.vocabulary import Vocabulary
from tests.planner.support import Engine, first_label, hashed, many, play, rows, telling

TIMING = Timing(queued_ms=1.23456, total_ms=20.5)


def body(questions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "jev-latest", "state": "The parcel came late.", "questions": questions, **more}


def respond(vocabulary: Vocabulary, request: dict[str, Any], engine: Engine = first_label) -> dict[str, Any]:
    """The response to a body, on an engine."""
    decision = parse(request)
    return render(decision, play(make_plan(decision, vocabulary), engine).answers, TIMING)


def noul_at(p: float) -> Engine:
    """An engine that says yes with this probability, and holds half of the mass in its labels."""

    def engine(read: Read) -> Rows:
        return rows(read, [p / 2, (1 - p) / 2])

    return engine


def test_a_noul_is_answered_by_the_probability_of_yes(vocabulary: Vocabulary) -> None:
    answer = respond(vocabulary, body({"late": {"type": "noul"}}), noul_at(0.25))["answers"]["late"]
    assert answer == {"type": "noul", "noul": 0.25, "x_label_mass": 0.5}


def test_a_choice_is_answered_by_name_with_every_probability(vocabulary: Vocabulary) -> None:
    request = body({"team": {"type": "choice", "criteria": {"billing": None, "post": "parcels", "it": None}}})
    answer = respond(vocabulary, request, lambda read: rows(read, [0.2, 0.7, 0.1]))["answers"]["team"]
    assert answer == {
        "type": "choice",
        "choice": "post",
        "probabilities": {"billing": 0.2, "post": 0.7, "it": 0.1},
        "confidence": 0.55,
        "x_label_mass": 1.0,
    }


def test_a_score_is_answered_by_its_expected_level_with_the_legend(vocabulary: Vocabulary) -> None:
    request = body({"anger": {"type": "score", "criteria": ["calm", {"text": "cross"}, ["furious"]]}})
    answer = respond(vocabulary, request, lambda read: rows(read, [0.1, 0.2, 0.7]))["answers"]["anger"]
    assert answer == {
        "type": "score",
        "score": 1.6,
        "legend": {"0": "calm", "1": {"text": "cross"}, "2": ["furious"]},
        "probabilities": {"0": 0.1, "1": 0.2, "2": 0.7},
        "confidence": 0.4,
        "x_label_mass": 1.0,
    }


def test_there_is_one_answer_per_question_in_the_order_of_the_request(vocabulary: Vocabulary) -> None:
    request = body({"c": {"type": "noul", "depends_on": ["a"]}, "a": {"type": "noul"}, "b": {"type": "noul"}})
    response = respond(vocabulary, request)
    assert list(response["answers"]) == ["c", "a", "b"]
    assert response["model"] == "diffusion"


def test_usage_counts_prompt_tokens_and_one_answer_token_per_question_and_draw(
    vocabulary: Vocabulary,
) -> None:
    request = body({"a": {"type": "noul"}, "b": {"type": "noul"}}, samples=3)
    engine: Engine = lambda read: Rows(((-1.0, -2.0),), (read.ids[0],), served=Served(prompt_tokens=100))  # noqa: E731
    assert respond(vocabulary, request, engine)["usage"] == {"input_tokens": 600, "output_tokens": 6}


def test_numbers_have_six_decimals(vocabulary: Vocabulary) -> None:
    answer = respond(vocabulary, body({"a": {"type": "noul"}}), noul_at(1 / 3))["answers"]["a"]
    assert answer["noul"] == 0.333333


def test_ties_at_the_top_are_told_apart_beyond_two_decimals(vocabulary: Vocabulary) -> None:
    request = body({"a": {"type": "choice", "criteria": {"x": None, "y": None}}})
    answer = respond(vocabulary, request, lambda read: rows(read, [0.49999, 0.50001]))["answers"]["a"]
    assert answer["choice"] == "y"
    assert answer["probabilities"]["y"] > answer["probabilities"]["x"]


@pytest.mark.parametrize("count", [3, 26, 255])
def test_probabilities_sum_to_one_but_for_their_rounding(vocabulary: Vocabulary, count: int) -> None:
    request = body({"a": {"type": "choice", "criteria": dict.fromkeys(many(count))}})
    answer = respond(vocabulary, request, hashed)["answers"]["a"]
    assert len(answer["probabilities"]) == count
    assert abs(sum(answer["probabilities"].values()) - 1) <= count * 0.5e-6


def test_a_score_agrees_with_its_rounded_probabilities(vocabulary: Vocabulary) -> None:
    request = body({"a": {"type": "score", "criteria": many(10)}})
    answer = respond(vocabulary, request, hashed)["answers"]["a"]
    expected = sum(int(level) * p for level, p in answer["probabilities"].items())
    assert answer["score"] == pytest.approx(expected, abs=45 * 0.5e-6 + 1e-6)


@pytest.mark.parametrize("name", ["", " ", "日本", "a\nb", "<|im_end|>", '"', "__proto__", "0"])
def test_names_and_ids_come_back_byte_for_byte(vocabulary: Vocabulary, name: str) -> None:
    request = body({name or "id": {"type": "choice", "criteria": {name: None, "other": None}}})
    answer = respond(vocabulary, request)["answers"][name or "id"]
    assert answer["choice"] == name
    assert list(answer["probabilities"]) == [name, "other"]


def test_fields_of_our_own_are_marked_while_no_extension_is_used(vocabulary: Vocabulary) -> None:
    response = respond(vocabulary, body({"a": {"type": "noul"}}))
    assert set(response) == {"model", "answers", "usage"}
    assert set(response["answers"]["a"]) == {"type", "noul", "x_label_mass"}


@pytest.mark.parametrize(
    "extension",
    [{"samples": 1}, {"joint": True}, {"seed": 3}, {"diagnostics": True}, {"instructions": "Hm."}],
)
def test_a_request_with_an_extension_gets_plain_names(
    vocabulary: Vocabulary, extension: dict[str, Any]
) -> None:
    answer = respond(vocabulary, body({"a": {"type": "noul"}}, **extension))["answers"]["a"]
    assert set(answer) == {"type", "noul", "label_mass"}


def test_a_question_with_an_extension_makes_the_names_plain(vocabulary: Vocabulary) -> None:
    request = body({"a": {"type": "noul"}, "b": {"type": "noul", "depends_on": ["a"]}})
    assert "label_mass" in respond(vocabulary, request)["answers"]["a"]


def test_several_draws_tell_their_spread(vocabulary: Vocabulary) -> None:
    request = body({"a": {"type": "noul"}}, samples=2)
    answer = respond(vocabulary, request, lambda read: noul_at(0.4 if read.seed else 0.8)(read))["answers"][
        "a"
    ]
    assert answer == {
        "type": "noul",
        "noul": 0.6,
        "label_mass": 0.5,
        "stderr": 0.2,
        "agreement": 0.5,
        "draws": 2,
    }


def test_a_skipped_question_is_answered_null(vocabulary: Vocabulary) -> None:
    request = body({"a": {"type": "noul"}, "b": {"type": "noul", "ask_if": {"a": [False]}}}, diagnostics=True)
    response = respond(vocabulary, request)
    assert response["answers"]["b"] is None
    assert response["diagnostics"]["skipped"] == {"b": "'a' is 'yes', not 'false'"}


def test_a_question_outside_ask_has_no_answer(vocabulary: Vocabulary) -> None:
    request = body({"a": {"type": "noul"}, "b": {"type": "noul"}}, ask=["b"])
    assert list(respond(vocabulary, request)["answers"]) == ["b"]


def test_diagnostics_tell_the_plan_that_ran(vocabulary: Vocabulary) -> None:
    request = body(
        {"a": {"type": "noul", "instructions": "A"}, "b": {"type": "noul", "depends_on": ["a"]}},
        diagnostics=True,
        seed=9,
    )
    told = respond(vocabulary, request, telling(vocabulary, {"A": [0.75, 0.25]}))["diagnostics"]
    assert told["stages"] == [["a"], ["b"]]
    assert told["waves"] == 2
    assert [(read["questions"], read["stage"], read["seed"]) for read in told["reads"]] == [
        (["a"], 0, 9),
        (["b"], 1, 9),
    ]
    assert told["questions"]["a"] == {
        "entropy": 0.562335,
        "label_mass": 1.0,
        "argmax_is_label": True,
        "draws": 1,
        "agreement": 1.0,
        "stderr": {"yes": 0.0, "no": 0.0},
    }
    assert told["timing"] == {"queued_ms": 1.235, "total_ms": 20.5}


def test_structured_instructions_become_json_with_every_script_as_itself() -> None:
    questions = {
        "a": {
            "type": "noul",
            "instructions": {"frage": "Spät?", "x": True},
            "criteria": {"true": ["über", 1], "false": None},
        }
    }
    (question,) = parse(body(questions, instructions=["日本", None])).questions
    assert question.instructions == '{"frage": "Spät?", "x": true}'
    assert question.alternatives == (Alternative("yes", '["über", 1]'), Alternative("no"))
    assert parse(body(questions, instructions=["日本", None])).options.instructions == '["日本", null]'


@pytest.mark.parametrize(
    ("value", "words"),
    [(True, ("true",)), (2, ("2",)), ("x", ("x",)), ([False, 0, "No"], ("false", "0", "No"))],
)
def test_a_condition_may_name_one_answer_or_several_of_any_kind(value: Any, words: tuple[str, ...]) -> None:
    decision = parse(body({"b": {"type": "noul", "ask_if": {"a": value}}}))
    assert decision.questions[0].ask_if == {"a": words}


def test_extensions_become_options() -> None:
    options = {
        "samples": "auto", "auto_max": 8, "auto_threshold": 0.5, "steps": 4, "joint": True, "chunk_rows": 3,
        "chunk_prompt": "shared", "sequential": True, "seed": 11, "diagnostics": True, "ask": ["a"],
        "instructions": "Hm.", "think": 100,
    }  # fmt: skip
    assert parse(body({"a": {"type": "noul"}}, **options)).options == Options(
        "Hm.", None, 0.5, 8, 4, True, ("a",), 3, "shared", True, 11, 100, True
    )


def test_unknown_fields_are_ignored() -> None:
    plain = body({"a": {"type": "noul"}})
    assert parse({**plain, "temperature": 0, "user": {"id": 1}}) == parse(plain)


def test_the_dialect_is_found_by_its_door() -> None:
    dialect = DIALECTS[parse(body({"a": {"type": "noul"}})).door]
    assert (dialect.parse, dialect.render) == (parse, render)
