"""Grounded spans through the front door: pieces of the text, windows, retries, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from client.stack import Stack
from engine.gguf_model import find_model
from engine.tokenizer import ensure_folder
from tests.line.conftest import ask_at
from tests.planner.span_support import words
from workers.tokenizers import load_vocabulary

ORDER = "Dana Smith of Acme Inc. ordered #A-1042 in Berlin, Paris and Berlin for $99.50."
ALPHA, BETA = "Boston", "Texas"
NEEDLE = "Kiruna"

RULES: dict[str, Any] = {
    "rules": [
        {"phrase": "Who ordered", "span": "Dana Smith"},
        {"phrase": "Which company", "span": "Acme Inc."},
        {"phrase": "Which number", "span": "#A-1042"},
        {"phrase": "What does it cost", "emit": " price: $99.50."},
        {"phrase": "Which cities", "spans": ["Berlin", "Paris", "Berlin", "Berlin"]},
        {"phrase": "Which phone", "span": None},
        {"phrase": "Which items", "spans": []},
        {"phrase": "Unsure at first", "span": "Acme Inc.", "noise": 0.9, "times": 2},
        {"phrase": "Unsure at first", "span": "Dana Smith"},
        {"phrase": "Never sure", "span": "Dana Smith", "noise": 0.9},
        {"phrase": "Which harbour", "span": ALPHA},
        {"phrase": "Which of two", "emit": f" {ALPHA} {BETA}", "labels": {"A": 0.25, "B": 0.75}},
        {"phrase": "All harbours", "emit": f" {ALPHA}\n{BETA}"},
        {"phrase": "Is it urgent", "labels": {"yes": 0.9}},
        {"phrase": "Which needle", "span": NEEDLE},
    ]
}


@pytest.fixture(scope="module")
def spans_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose engine writes what these tests ask about."""
    script: Path = tmp_path_factory.mktemp("spans") / "script.json"
    script.write_text(json.dumps(RULES))
    with Stack(engines=f"script:{script}", engine_args=("--max-model-len", "8192")) as running:
        yield running


@pytest.fixture(scope="module")
def long() -> str:
    """A text of several windows: one harbour near its start, another near its end."""
    many = words(load_vocabulary(str(ensure_folder(find_model(None))), canvas=64, context=None), 160)
    sentences = [f"Then {' '.join(many[start : start + 8])}." for start in range(0, 160, 8)]
    return " ".join([sentences[0], f"In {ALPHA}.", *sentences[1:-1], f"At {BETA}.", sentences[-1]])


def span(instructions: str, **more: Any) -> dict[str, Any]:
    return {"type": "span", "instructions": instructions, **more}


def spans(instructions: str, **more: Any) -> dict[str, Any]:
    return {"type": "spans", "instructions": instructions, **more}


def asked(stack: Stack, **body: Any) -> Any:
    response = ask_at(stack.url, **{"state": ORDER, **body})
    assert response.status_code == 200, response.text
    return response.json()


def refusal(stack: Stack, **body: Any) -> Any:
    response = ask_at(stack.url, **{"state": ORDER, **body})
    assert response.status_code == 422
    (detail,) = response.json()["detail"]
    return detail


def test_spans_are_pieces_of_the_text_with_right_offsets(spans_stack: Stack) -> None:
    questions = {
        "who": span("Who ordered?"),
        "company": span("Which company?"),
        "number": span("Which number?"),
        "price": span("What does it cost?"),
        "urgent": {"type": "noul", "instructions": "Is it urgent?"},
    }
    body = asked(spans_stack, questions=questions, diagnostics=True)
    answers = body["answers"]
    assert {id: answers[id]["text"] for id in questions if id != "urgent"} == {
        "who": "Dana Smith",
        "company": "Acme Inc.",
        "number": "#A-1042",
        "price": "$99.50",
    }
    for id, answer in answers.items():
        if answer["type"] == "span":
            assert ORDER[answer["start"] : answer["end"]] == answer["text"]
            assert answer["found"] is True
            assert (answer["confidence"] > 0.9) is (id != "price"), "the model wrote more than the price"
    assert answers["urgent"]["noul"] == 0.9
    assert body["diagnostics"]["waves"] == 4, "the unsure price is read four times"
    assert body["diagnostics"]["spans"] == ["who", "company", "number", "price"]


def test_a_list_keeps_every_mention_and_no_more(spans_stack: Stack) -> None:
    answer = asked(spans_stack, questions={"cities": spans("Which cities?")})["answers"]["cities"]
    starts = [ORDER.index("Berlin"), ORDER.index("Paris"), ORDER.rindex("Berlin")]
    assert [item["start"] for item in answer["items"]] == starts
    assert all(ORDER[item["start"] : item["end"]] == item["text"] for item in answer["items"])
    assert answer["reads"] == 2
    few = spans("Which cities?", criteria={"max_items": 2})
    assert len(asked(spans_stack, questions={"cities": few})["answers"]["cities"]["items"]) == 2


def test_what_is_not_in_the_text_is_not_found(spans_stack: Stack) -> None:
    questions = {"phone": span("Which phone number?"), "items": spans("Which items?")}
    answers = asked(spans_stack, questions=questions)["answers"]
    nulls = dict.fromkeys(("text", "start", "end", "confidence", "coverage"))
    assert answers["phone"] == {"type": "span", "found": False, **nulls, "reads": 1}
    assert answers["items"] == {"type": "spans", "found": False, "items": [], "reads": 2}


def test_an_unsure_read_is_repeated_with_the_next_seeds_until_it_is_sure(spans_stack: Stack) -> None:
    body = asked(spans_stack, questions={"a": span("Unsure at first?")}, seed=40, diagnostics=True)
    assert body["answers"]["a"]["text"] == "Dana Smith"
    assert body["answers"]["a"]["reads"] == 3
    reads = body["diagnostics"]["reads"]
    assert [(read["wave"], read["attempt"], read["seed"]) for read in reads] == [
        (0, 0, 40),
        (1, 1, 41),
        (2, 2, 42),
    ]


def test_a_read_that_is_never_sure_is_repeated_three_times_and_answers_all_the_same(
    spans_stack: Stack,
) -> None:
    answer = asked(spans_stack, questions={"a": span("Never sure?")})["answers"]["a"]
    assert answer["text"] == "Dana Smith"
    assert answer["confidence"] < 0.3
    assert answer["reads"] == 4


def test_a_long_text_is_read_window_by_window(spans_stack: Stack, long: str) -> None:
    body = asked(spans_stack, state=long, questions={"a": span("Which harbour?")}, diagnostics=True)
    answer = body["answers"]["a"]
    assert (answer["text"], answer["start"]) == (ALPHA, long.index(ALPHA))
    assert answer["windows"] == answer["reads"] == len(body["diagnostics"]["reads"]) > 3
    assert "resolved" not in answer


def test_windows_that_disagree_are_settled_by_a_choose_read(spans_stack: Stack, long: str) -> None:
    body = asked(spans_stack, state=long, questions={"a": span("Which of two?")}, diagnostics=True)
    answer = body["answers"]["a"]
    assert (answer["text"], answer["start"]) == (BETA, long.index(BETA))
    assert answer["resolved"] == {ALPHA: 0.25, BETA: 0.75}
    reads = body["diagnostics"]["reads"]
    assert answer["reads"] == len(reads)
    assert [read["wave"] for read in reads if read["kind"] == "choose"] == [body["diagnostics"]["waves"] - 1]


def test_a_list_of_a_long_text_is_merged_over_its_windows(spans_stack: Stack, long: str) -> None:
    answer = asked(spans_stack, state=long, questions={"a": spans("All harbours?")})["answers"]["a"]
    assert [(item["text"], item["start"]) for item in answer["items"]] == [
        (name, long.index(name)) for name in (ALPHA, BETA)
    ]
    assert answer["reads"] == 2 * answer["windows"]


def test_offsets_are_code_points_and_with_diagnostics_utf16_units_too(spans_stack: Stack) -> None:
    text = f"\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea caf\u00e9\r\n{ORDER}"
    answer = asked(spans_stack, state=text, questions={"a": span("Who ordered?")}, diagnostics=True)[
        "answers"
    ]["a"]
    assert text[answer["start"] : answer["end"]] == answer["text"] == "Dana Smith"
    units = text.encode("utf-16-le")
    assert units[2 * answer["start_utf16"] : 2 * answer["end_utf16"]].decode("utf-16-le") == "Dana Smith"


@pytest.mark.parametrize(
    ("state", "source"),
    [
        ({"text": ORDER, "from": "x"}, ORDER),
        ({"note": "Für Dana Smith\n"}, '{"note": "Für Dana Smith\\n"}'),
        (["\u4eac", "Dana Smith"], '["\u4eac", "Dana Smith"]'),
    ],
)
def test_offsets_into_an_object_index_its_text_or_the_json_that_is_read(
    spans_stack: Stack, state: Any, source: str
) -> None:
    answer = asked(spans_stack, state=state, questions={"a": span("Who ordered?")})["answers"]["a"]
    assert source[answer["start"] : answer["end"]] == answer["text"] == "Dana Smith"


def test_a_lone_surrogate_in_the_json_is_refused(spans_stack: Stack) -> None:
    content = json.dumps(
        {"model": "jev-latest", "state": "\ud800 Dana", "questions": {"a": span("Who ordered?")}}
    )
    response = httpx2.post(f"{spans_stack.url}/v1/systemone", content=content.encode())
    assert response.status_code == 422
    assert response.json()["detail"][0]["type"] == "json_invalid"


@pytest.mark.parametrize("state", ["", " \n", {"text": ""}])
def test_a_state_without_text_is_refused(spans_stack: Stack, state: Any) -> None:
    detail = refusal(spans_stack, state=state, questions={"a": span("Who ordered?")})
    assert detail["loc"] == ["body", "state"]
    assert "text" in detail["msg"]


def test_a_blank_too_long_for_the_canvas_is_refused_with_the_room(spans_stack: Stack) -> None:
    question = span("Who ordered?", criteria={"max_tokens": 61})
    detail = refusal(spans_stack, questions={"a": question})
    assert detail["loc"][:3] == ["body", "questions", "a"]
    assert detail["loc"][-1] == "max_tokens"
    assert "does not fit the canvas of 64; 60 do" in detail["msg"]


def test_whether_a_span_was_found_is_all_that_may_be_asked_of_it(spans_stack: Stack) -> None:
    asked = {"a": span("Who ordered?"), "b": {"type": "noul", "ask_if": {"a": "Dana Smith"}}}
    assert refusal(spans_stack, questions=asked)["loc"] == ["body", "questions", "b", "ask_if", "a"]


def test_twenty_questions_about_a_hundred_thousand_characters_run_as_sharded_chords(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    script: Path = tmp_path_factory.mktemp("needle") / "script.json"
    script.write_text(json.dumps(RULES))
    common = words(load_vocabulary(str(ensure_folder(find_model(None))), canvas=64, context=None), 40)
    text = " ".join(f"{' '.join(common[place % 7 :: 3])}." for place in range(2_300))
    text = f"{text[:60_000]} We saw {NEEDLE} there. {text[60_000:]}"
    assert len(text) > 100_000
    questions = {f"q{number}": span(f"Which needle {number}?") for number in range(20)}
    env = {"CANVASS_SYNC_LIMIT_S": "120", "CANVASS_SHARD_READS": "4"}
    with Stack(engines=f"script:{script}", workers=2, env=env) as stack:
        body = ask_at(stack.url, state=text, questions=questions, diagnostics=True).json()
        logs = "".join(path.read_text() for path in stack.logs.iterdir())
    assert {answer["text"] for answer in body["answers"].values()} == {NEEDLE}
    assert {text[answer["start"] : answer["end"]] for answer in body["answers"].values()} == {NEEDLE}
    assert body["diagnostics"]["timing"]["queued_ms"] > 0
    assert "engine out" not in logs
