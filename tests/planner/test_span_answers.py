"""Span answers as a client sees them: text, offsets into its state, and how sure they are."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.answers import Answers
from planner.dialects.dialect import Timing
from planner.dialects.systemone import parse, render
from planner.plan import Plan, make_plan
from planner.reads import Failure, Found, Item, Read, Result, Rows, result_from_bytes, result_to_bytes
from planner.span_parts import decoded
from planner.vocabulary import Vocabulary
from tests.planner.span_support import words, writing
from tests.planner.support import SERVED, Engine, play
from tests.planner.test_properties import play_loosely, response

SHORT = "Dana Smith of Acme Inc. ordered two red chairs."
NAME = {"name": {"type": "span", "instructions": "Who?"}}
THINGS = {"things": {"type": "spans", "instructions": "What?"}}


def answers(vocabulary: Vocabulary, state: Any, questions: Any, said: str, **options: Any) -> Any:
    """The answers to questions when the model writes one thing for all of them."""
    decision = parse({"model": "m", "state": state, "questions": questions, **options})
    plan = make_plan(decision, vocabulary)
    return render(decision, play(plan, writing(plan, lambda read: said)).answers, Timing(0, 0))["answers"]


def name(vocabulary: Vocabulary, state: Any, said: str, **options: Any) -> Any:
    return answers(vocabulary, state, NAME, said, **options)["name"]


def test_a_span_is_text_and_offsets_with_confidence_and_coverage(vocabulary: Vocabulary) -> None:
    answer = name(vocabulary, SHORT, "Dana Smith")
    assert {key: answer[key] for key in ("type", "found", "text", "start", "end", "coverage", "reads")} == {
        "type": "span",
        "found": True,
        "text": "Dana Smith",
        "start": 0,
        "end": 10,
        "coverage": 1.0,
        "reads": 1,
    }
    assert answer["confidence"] == pytest.approx(0.98, abs=0.01)
    assert "windows" not in answer
    assert "resolved" not in answer


def test_what_is_not_found_has_nulls(vocabulary: Vocabulary) -> None:
    assert name(vocabulary, SHORT, "none") == {
        "type": "span",
        "found": False,
        **dict.fromkeys(("text", "start", "end", "confidence", "coverage")),
        "reads": 1,
    }


def test_a_list_has_items_and_none_of_them_when_there_are_none(vocabulary: Vocabulary) -> None:
    found = answers(vocabulary, SHORT, THINGS, "Dana Smith\nred chairs")["things"]
    assert [(item["text"], item["start"], item["end"]) for item in found["items"]] == [
        ("Dana Smith", 0, 10),
        ("red chairs", 36, 46),
    ]
    assert set(found["items"][0]) == {"text", "start", "end", "confidence", "coverage"}
    assert (found["type"], found["found"], found["reads"]) == ("spans", True, 2)
    assert answers(vocabulary, SHORT, THINGS, "none")["things"] == {
        "type": "spans",
        "found": False,
        "items": [],
        "reads": 2,
    }


def test_several_windows_are_told_and_what_settled_them(vocabulary: Vocabulary) -> None:
    text = " ".join(words(vocabulary, 160))
    one, other = text.split()[2], text.split()[150]
    decision = parse({"model": "m", "state": text, "questions": NAME})
    plan = make_plan(decision, vocabulary)
    engine = writing(plan, lambda read: one if read.id.split("/")[2] == "0" else other)
    answer = render(decision, play(plan, engine).answers, Timing(0, 0))["answers"]["name"]
    assert answer["windows"] == len(plan.windows)
    assert answer["reads"] == len(plan.windows) + 1
    assert answer["text"] == one
    assert list(answer["resolved"]) == [one, other]
    assert sum(answer["resolved"].values()) == pytest.approx(1)


def test_offsets_count_code_points_and_with_diagnostics_utf16_units_too(vocabulary: Vocabulary) -> None:
    text = "\U0001f469\u200d\U0001f467 and \U0001f1e9\U0001f1ea met Dana Smith."
    plain, told = name(vocabulary, text, "Dana Smith"), name(vocabulary, text, "Dana Smith", diagnostics=True)
    assert text[plain["start"] : plain["end"]] == "Dana Smith"
    assert "start_utf16" not in plain
    units = text.encode("utf-16-le")
    assert units[2 * told["start_utf16"] : 2 * told["end_utf16"]].decode("utf-16-le") == "Dana Smith"
    assert told["start_utf16"] == told["start"] + 4


def test_nulls_have_utf16_fields_as_well(vocabulary: Vocabulary) -> None:
    answer = name(vocabulary, SHORT, "none", diagnostics=True)
    assert answer["start_utf16"] is None
    assert answer["end_utf16"] is None


def test_of_an_object_with_a_text_offsets_index_that_text(vocabulary: Vocabulary) -> None:
    answer = name(vocabulary, {"from": "dana@x.example", "text": SHORT}, "Dana Smith")
    assert (answer["start"], answer["end"]) == (0, 10)


def test_of_an_object_with_a_text_nothing_outside_of_it_is_an_answer(vocabulary: Vocabulary) -> None:
    assert not name(vocabulary, {"from": "Zanzibar", "text": SHORT}, "Zanzibar")["found"]


@pytest.mark.parametrize(
    ("state", "json", "said"),
    [
        ({"who": "Dana Smith"}, '{"who": "Dana Smith"}', "Dana Smith"),
        (["a", {"city": "Köln"}], '["a", {"city": "Köln"}]', "Köln"),
        ({"text": ["no string"], "city": "北京市"}, '{"text": ["no string"], "city": "北京市"}', "北京市"),
        ({"note": 'a "big"\nred \\ car\t\u0001'}, r'{"note": "a \"big\"\nred \\ car\t\u0001"}', "big"),
        ({"note": 'a "big"\nred \\ car\t\u0001'}, r'{"note": "a \"big\"\nred \\ car\t\u0001"}', "car"),
        ({"total": 99.5, "ok": True}, '{"total": 99.5, "ok": true}', "99.5"),
    ],
)
def test_of_other_states_offsets_index_the_json_that_the_model_reads(
    vocabulary: Vocabulary, state: Any, json: str, said: str
) -> None:
    answer = name(vocabulary, state, said)
    assert answer["text"] == said
    assert json[answer["start"] : answer["end"]] == said


@pytest.mark.parametrize("size", [0, 97, -1, 1.5, "9", True])
@pytest.mark.parametrize("type", ["span", "spans"])
def test_a_blank_has_from_1_to_96_tokens(type: str, size: Any) -> None:
    question = {"type": type, "criteria": {"max_tokens": size}}
    with pytest.raises(ValidationError):
        parse({"model": "m", "state": SHORT, "questions": {"a": question}})


@pytest.mark.parametrize("count", [0, 65, "9", True])
def test_a_list_has_from_1_to_64_items(count: Any) -> None:
    question = {"type": "spans", "criteria": {"max_items": count}}
    with pytest.raises(ValidationError):
        parse({"model": "m", "state": SHORT, "questions": {"a": question}})


SHARES = st.floats(0, 1)
ITEMS = st.builds(Item, st.integers(0, 2**40), st.integers(0, 2**40), SHARES, SHARES)
FOUND = st.builds(
    Found,
    items=st.lists(ITEMS, max_size=3).map(tuple),
    confidence=SHARES,
    tokens=st.integers(0, 96),
    served=SERVED,
)


@given(FOUND)
def test_what_a_span_read_found_survives_the_store(found: Found) -> None:
    assert result_from_bytes(result_to_bytes(found)) == found


def guessing(plan: Plan, *, faulty: bool) -> Engine:
    """An engine whose every number is drawn for its read: unsure, so that reads are repeated."""

    def answer(read: Read) -> Result:
        chance = Random(f"{read.id} {read.seed}")
        if faulty and chance.random() < 0.05:
            return Failure("down", f"{read.id} failed")
        table = tuple(tuple(chance.uniform(-18, -6) for _ in read.ids) for _ in read.canvas.free)
        picks = tuple(read.ids[max(range(len(row)), key=row.__getitem__)] for row in table)
        rows = Rows(table, picks, peaks=tuple(map(max, table)))
        if read.kind in ("label", "choose"):
            return rows
        return replace(decoded(plan, read, rows), confidence=chance.random())

    return answer


LABEL = {"type": "noul", "instructions": "Is it so?"}
QUESTIONS = st.lists(st.sampled_from(["noul", "span", "spans", "late"]), min_size=1, max_size=4)


def some_questions(types: list[str]) -> dict[str, Any]:
    """Questions of these types; a late one is a label question behind another."""
    told: dict[str, Any] = {"first": LABEL}
    for number, type in enumerate(types):
        more = {"type": "noul", "depends_on": ["first"]} if type == "late" else {"type": type}
        told[f"q{number}"] = {"instructions": f"Number {number}?", **more}
    return told


@settings(deadline=None, max_examples=60)
@given(
    types=QUESTIONS,
    length=st.sampled_from([3, 40, 120]),
    seed=st.integers(0, 99),
    faulty=st.booleans(),
    chance=st.integers(0, 2**32).map(Random),
)
def test_results_in_any_order_twice_or_lost_and_asked_again_give_the_same_answers(
    vocabulary: Vocabulary, types: list[str], length: int, seed: int, faulty: bool, chance: Random
) -> None:
    body = {"model": "m", "state": " ".join(words(vocabulary, length)), "questions": some_questions(types)}
    decision = parse({**body, "seed": seed, "diagnostics": True})
    plan = make_plan(decision, vocabulary)
    smooth = play(plan, guessing(plan, faulty=faulty))
    rough = play_loosely(make_plan(decision, vocabulary), guessing(plan, faulty=faulty), chance)
    assert rough == smooth.end
    assert response(decision, rough) == response(decision, smooth.end)
    if isinstance(smooth.end, Answers):
        wave_of = {read.id: number for number, wave in enumerate(smooth.waves) for read in wave.reads}
        assert {read.id: read.wave for read in smooth.end.reads} == wave_of
