"""The audit of a decision: a line per read as it was asked for and as it came back."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from hashlib import sha256
from typing import Any

import orjson
import pytest
from hypothesis import given, settings

from planner.audit import audit, heading
from planner.decision import Decision, Options
from planner.dialects.image_fields import Shown
from planner.dialects.systemone import parse
from planner.plan import Plan, make_plan
from planner.reads import AnyRead, Failure, Item, Rows, Served, Tried, Wave, Written
from planner.vocabulary import Vocabulary
from planner.waves import next_wave
from tests.planner.bodies import Body, bodies
from tests.planner.hashing import any_hashed
from tests.planner.span_support import found, span, spans, words
from tests.planner.support import (
    Played,
    choice,
    decide,
    first_label,
    hashed,
    many,
    noul,
    object_,
    play,
    prompt_of,
    rows,
    score,
    wrote,
)

STATE = "Dana Smith of Acme Inc. ordered two red chairs."
TOPIC = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}

Line = dict[str, Any]


def lines_of(plan: Plan, ran: Played) -> list[Line]:
    return audit(plan, ran.results)


def planned(vocabulary: Vocabulary, *questions: Any, **options: Any) -> Plan:
    return make_plan(decide(*questions, **{"state": STATE, **options}), vocabulary)


def finds(read: AnyRead) -> Any:
    """Dana in every text, Smith as well in lists, and the first label of every label read."""
    if read.kind == "span":
        return found(Item(0, 4, 0.9, 1.0))
    if read.kind == "list":
        return found(Item(0, 4, 0.9, 1.0), Item(5, 10, 0.8125, 0.5))
    return first_label(read)  # type: ignore[arg-type]


def test_a_label_read_tells_the_logprob_of_every_alternative(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, choice("team", ["billing", "sales"], "Which team?"), seed=5)
    ran = play(plan, lambda read: rows(read, [0.75, 0.125]))
    (line,) = lines_of(plan, ran)
    assert (line["type"], line["id"], line["kind"], line["stage"]) == ("read", "0/0/0/0/0", "label", 0)
    assert (line["questions"], line["draw"], line["attempt"]) == (["team"], 0, 0)
    assert line["logprobs"] == {
        "team": {"billing": round(math.log(0.75), 6), "sales": round(math.log(0.125), 6)}
    }
    assert line["canvas"]["seed"] == 5
    assert line["canvas"]["steps"] == 1
    (read,) = ran.reads
    assert line["canvas"]["slots"] == list(read.canvas.free)
    assert line["canvas"]["width"] == len(read.canvas.ids)


def test_a_prompt_and_a_canvas_are_told_by_hashes_of_their_token_ids(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a", "Angry?"), seed=3)
    ran = play(plan)
    (line,), (read,) = lines_of(plan, ran), ran.reads

    def by_hand(ids: Any) -> str:
        return sha256(b"".join(id.to_bytes(4, "little") for id in ids)).hexdigest()

    assert line["prompt_sha256"] == by_hand([*read.head, *read.tail])
    assert line["canvas"]["sha256"] == by_hand(read.canvas.seeded(3))


@pytest.mark.parametrize(
    "changed",
    [
        {"state": STATE + "!"},
        {"questions": (noul("a", "Angry now?"),)},
        {"options": {"instructions": "Be fair."}},
    ],
)
def test_the_prompts_hash_changes_with_whatever_the_prompt_shows(
    vocabulary: Vocabulary, changed: dict[str, Any]
) -> None:
    def hash_of(state: str, questions: Any, options: dict[str, Any]) -> tuple[str, str]:
        plan = planned(vocabulary, *questions, state=state, **options)
        (line,) = lines_of(plan, play(plan))
        return line["prompt_sha256"], line["canvas"]["sha256"]

    usual: dict[str, Any] = {"state": STATE, "questions": (noul("a", "Angry?"),), "options": {}}
    before, after = hash_of(**usual), hash_of(**{**usual, **changed})
    assert before == hash_of(**usual)
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_an_id_changes_no_hash_and_a_seed_that_of_the_canvas_alone(vocabulary: Vocabulary) -> None:
    def hashes(id: str, seed: int) -> tuple[str, str]:
        plan = planned(vocabulary, noul(id, "Angry?"), seed=seed)
        (line,) = lines_of(plan, play(plan))
        return line["prompt_sha256"], line["canvas"]["sha256"]

    assert hashes("a", 0) == hashes("another", 0)
    assert hashes("a", 0)[0] == hashes("a", 1)[0]
    assert hashes("a", 0)[1] != hashes("a", 1)[1]


def test_every_draw_has_its_line(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), samples=3, seed=7)
    lines = lines_of(plan, play(plan, hashed))
    assert [(line["draw"], line["canvas"]["seed"]) for line in lines] == [(0, 7), (1, 8), (2, 9)]
    assert len({json.dumps(line["logprobs"]) for line in lines}) == 3


def test_options_of_several_requests_are_told_by_the_line_that_asked_for_them(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, choice("c", many(200)))
    lines = lines_of(plan, play(plan, hashed))
    told = [list(line["logprobs"]["c"]) for line in lines]
    assert len(told) == 2
    assert sorted([*told[0], *told[1]]) == sorted(many(200))


def test_a_joint_read_tells_every_question_of_its_canvas(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), score("b", ["low", "high"]), joint=True)
    (line,) = lines_of(plan, play(plan, lambda read: rows(read, [0.5] * len(read.ids))))
    assert line["questions"] == ["a", "b"]
    assert {id: list(told) for id, told in line["logprobs"].items()} == {"a": ["yes", "no"], "b": ["0", "1"]}


def test_spans_and_lists_tell_what_was_found_and_where(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, span("who"), spans("names"))
    lines = lines_of(plan, play(plan, finds))
    assert [(line["kind"], line["questions"], line["draw"]) for line in lines] == [
        ("span", ["who"], 0),
        ("list", ["names"], 0),
        ("list", ["names"], 1),
    ]
    assert lines[0]["items"] == [{"start": 0, "end": 4, "confidence": 0.9}]
    assert [item["start"] for item in lines[1]["items"]] == [0, 5]
    assert (lines[1]["confidence"], lines[1]["tokens"]) == (0.8125, 3)


def test_attempts_of_an_unsure_span_and_its_choice_are_lines(vocabulary: Vocabulary) -> None:
    """Its retries carry the seeds that follow each other; a choose read has its candidates' logprobs."""
    state = " ".join(words(vocabulary, 160))
    plan = planned(vocabulary, span("who"), state=state)

    def differs(read: AnyRead) -> Any:
        if read.kind == "choose":
            return first_label(read)  # type: ignore[arg-type]
        window, attempt = int(read.id.split("/")[2]), int(read.id.split("/")[4])
        start = 0 if window == 0 else 7
        return found(Item(start, start + 6 + window, 0.9 if attempt else 0.1, 1.0))

    lines = lines_of(plan, play(plan, differs))
    first = [line for line in lines if line["id"].startswith("0/s0/0/")]
    assert [(line["attempt"], line["canvas"]["seed"]) for line in first] == [(0, 0), (1, 1)]
    last = lines[-1]
    assert last["kind"] == "choose"
    assert len(last["logprobs"][0]) > 1


def test_a_generation_tells_its_text_and_its_grammar_and_a_second_attempt_its_own(
    vocabulary: Vocabulary,
) -> None:
    plan = planned(vocabulary, object_("o", TOPIC, "What?", max_tokens=30))
    texts = iter(["I cannot say.", '{"topic": "chairs"}'])
    first, second = lines_of(plan, play(plan, writer=lambda _: wrote(next(texts), tokens=4)))
    assert (first["text"], first["attempt"]) == ("I cannot say.", 0)
    assert (second["text"], second["attempt"]) == ('{"topic": "chairs"}', 1)
    assert (second["tokens"], second["finish_reason"], second["max_tokens"]) == (4, "stop", 30)
    assert orjson.loads(second["grammar"])["required"] == ["topic"]
    assert first["prompt_sha256"] != second["prompt_sha256"]
    assert "canvas" not in second


def test_a_thought_is_a_line_of_all_questions_without_a_grammar(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), span("s"), think=40)
    lines = lines_of(plan, play(plan, finds, lambda _: wrote("Chairs are red.")))
    assert [line["kind"] for line in lines] == ["thought", "label", "span"]
    assert (lines[0]["questions"], lines[0]["text"], lines[0]["grammar"]) == (
        ["a", "s"],
        "Chairs are red.",
        None,
    )


def test_a_message_is_hashed_by_its_text_and_its_images(vocabulary: Vocabulary) -> None:
    question = {"type": "noul", "instructions": "Red?"}
    body = {
        "model": "m",
        "state": "Seen: <pic>",
        "questions": {"a": question},
        "assets": {"<pic>": {"part": "p"}},
    }

    def hash_of(image: str) -> str:
        plan = make_plan(parse(body, Shown({"<pic>": image}, ())), vocabulary)
        (line,) = lines_of(plan, play(plan))
        return str(line["prompt_sha256"])

    assert hash_of("a" * 64) == hash_of("a" * 64) != hash_of("b" * 64)


def test_the_text_of_a_message_is_hashed_as_it_stands(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, object_("o", TOPIC))
    ran = play(plan, writer=lambda _: wrote('{"topic": "x"}'))
    ((asked,),) = [wave.generations for wave in ran.waves]
    assert asked.message is not None
    (line,) = lines_of(plan, ran)
    assert line["prompt_sha256"] == sha256(asked.message.text.encode()).hexdigest()


def test_a_line_tells_who_served_the_read_and_what_came_to_nothing(vocabulary: Vocabulary) -> None:
    served = Served(
        "http://b", "m", 12.34567, prompt_tokens=9, tried=(Tried("http://a", 3.00049, "reset"),), at=1.23456
    )
    plan = planned(vocabulary, noul("a"))

    def serves(read: AnyRead) -> Rows:
        told = first_label(read)  # type: ignore[arg-type]
        return Rows(told.logprobs, told.top, told.peaks, served)

    (line,) = lines_of(plan, play(plan, serves))
    assert (line["engine"], line["model"], line["at"], line["ms"]) == ("http://b", "m", 1.235, 12.346)
    assert line["prompt_tokens"] == 9
    assert line["tried"] == [{"engine": "http://a", "ms": 3.0, "why": "reset"}]


def test_a_failed_read_is_a_line_with_its_error_and_nothing_that_was_not_said(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a", "Angry?"), noul("b", "Bad?"))

    def half(read: AnyRead) -> Any:
        whole = prompt_of(vocabulary, read)  # type: ignore[arg-type]
        return Failure("no_engine", "all are out") if "Bad?" in whole else finds(read)

    ran = play(plan, half)
    assert isinstance(ran.end, Failure)
    good, bad = lines_of(plan, ran)
    assert "logprobs" in good
    assert bad["error"] == {"code": "no_engine", "message": "all are out"}
    assert {"engine", "logprobs", "text"} & bad.keys() == set()
    assert bad["prompt_sha256"]


def test_what_a_skipped_question_would_have_read_is_no_line(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), object_("o", ask_if={"a": ("no",)}))
    assert [line["questions"] for line in lines_of(plan, play(plan))] == [["a"]]


def test_a_decision_that_was_cut_short_is_audited_as_far_as_it_came(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), noul("b", depends_on=("a",)), span("s", depends_on=("b",)))
    wave = next_wave(plan, {})
    assert isinstance(wave, Wave)
    results = {read.id: finds(read) for read in wave.reads}
    assert [line["questions"] for line in audit(plan, results)] == [["a"]]
    assert audit(plan, {}) == []


def test_a_later_prompt_that_is_too_long_takes_nothing_from_the_audit(vocabulary: Vocabulary) -> None:
    """Such a decision fails; what it read before is told all the same."""
    plan = planned(
        replace(vocabulary, context=400), object_("o", True, "What?"), noul("b", depends_on=("o",))
    )
    results = {"0/o0/0/0/0": wrote(json.dumps("word " * 600))}
    with pytest.raises(Exception, match="context holds 400"):
        next_wave(plan, results)
    (line,) = audit(plan, results)
    assert line["kind"] == "object"


def test_the_heading_tells_what_was_decided_about(vocabulary: Vocabulary) -> None:
    schema = {"type": "boolean"}
    decision = Decision(
        "m",
        {"text": STATE},
        (noul("a"), span("s")),
        Options(seed=4, audit=True),
        schema=schema,
        schema_version="v7",
    )
    told = heading(decision)
    assert told["type"] == "decision"
    assert (told["door"], told["model"], told["schema_version"]) == ("systemone", "m", "v7")
    assert (told["questions"], told["seed"]) == (["a", "s"], 4)
    assert told["state_sha256"] == sha256(json.dumps({"text": STATE}).encode()).hexdigest()
    assert told["schema_sha256"] == sha256(b'{"type": "boolean"}').hexdigest()
    plain = heading(decide(noul("a")))
    assert (plain["schema_sha256"], plain["schema_version"]) == (None, None)


@settings(deadline=None, max_examples=60)
@given(body=bodies())
def test_there_is_a_line_for_every_read_that_ran_and_all_of_it_is_json(
    vocabulary: Vocabulary, body: Body
) -> None:
    plan = make_plan(parse(body), vocabulary)
    model = any_hashed(plan)
    ran = play(plan, model, model)
    lines = audit(plan, ran.results)
    assert sorted(line["id"] for line in lines) == sorted(ran.results)
    assert [orjson.loads(orjson.dumps(line)) for line in lines] == lines
    for line in lines:
        result = ran.results[line["id"]]
        assert not isinstance(result, Failure)
        assert line["engine"] == result.served.engine
        if isinstance(result, Written):
            assert line["text"] == result.text
