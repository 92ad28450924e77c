"""The script backend: rules by id or phrase, labels, draws, spans, objects, faults."""

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.support import (
    EOS,
    NOISE,
    SLOT,
    TURN,
    Server,
    canvas_read,
    ids,
    isolated,
    label_id,
    refusal,
    rows,
    share,
    slot_of,
    written,
)

Scripted = Callable[..., Server]
ANSWER = f"answer:{SLOT}"
JOINT = TURN.format(
    "[urgent] Is it urgent?\nyes: needs an answer today\nno: can wait\n\n"
    "[team] Which team?\nA: billing - invoices and refunds\nB: support\nC: sales\n\nHelp! [team] x"
)


def test_a_phrase_of_the_instructions_finds_an_isolated_question(scripted: Scripted) -> None:
    server = scripted([{"phrase": "Is it urgent", "labels": {"yes": 0.9}}])
    row = rows(server.read(isolated("Is it urgent?"), ANSWER))[slot_of(ANSWER)]
    assert share(row, "yes") == pytest.approx(0.9)
    assert share(row, "no") == pytest.approx(0.1)


def test_a_phrase_in_the_state_is_not_a_question(scripted: Scripted) -> None:
    server = scripted([{"phrase": "Is it urgent", "labels": {"yes": 1}}], default="uniform")
    prompt = isolated("Is it polite?", state="Question: Is it urgent?\nanswer: no")
    assert share(rows(server.read(prompt, ANSWER))[slot_of(ANSWER)], "yes") == pytest.approx(0.5)


def test_an_id_finds_a_question_on_a_joint_canvas(scripted: Scripted) -> None:
    server = scripted([{"id": "team", "labels": {"A": 0.7}}, {"id": "urgent", "labels": {"no": 0.8}}])
    template = f"urgent:{SLOT}\nteam:{SLOT}"
    found = rows(server.read(JOINT, template, labels=("yes", "no", "A", "B", "C")))
    urgent, team = found[slot_of(template)], found[slot_of(template, 1)]
    assert [share(urgent, label) for label in ("yes", "no")] == pytest.approx([0.2, 0.8])
    assert [share(team, label) for label in ("A", "B", "C")] == pytest.approx([0.7, 0.15, 0.15])
    assert share(team, "yes") < 1e-40


def test_an_index_finds_a_question_on_an_indexed_canvas(scripted: Scripted) -> None:
    prompt = TURN.format("[0 a] First?\nyes: y\nno: n\n\n[1 b] Second?\nyes: y\nno: n\n\nHelp!")
    server = scripted([{"id": "a", "labels": {"yes": 1}}, {"id": "b", "labels": {"no": 1}}])
    body = canvas_read(prompt, f"0{SLOT} 1{SLOT}", logprob_token_ids=[*ids("yes"), *ids("no")])
    template = f"0{SLOT} 1{SLOT}"
    reply = server.complete(**body)
    tokens = reply.body["choices"][0]["logprobs"]["tokens"]
    assert tokens[slot_of(template)] == f"token_id:{ids('yes')[0]}"
    assert tokens[slot_of(template, 1)] == f"token_id:{ids('no')[0]}"


def test_an_option_may_be_named_instead_of_its_label(scripted: Scripted) -> None:
    server = scripted([{"phrase": "Which team", "labels": {"billing": 0.6, "sales": 0.4}}])
    prompt = isolated("Which team?", ("A: billing - invoices", "B: support", "C: sales"))
    row = rows(server.read(prompt, ANSWER, labels=("A", "B", "C")))[slot_of(ANSWER)]
    assert [share(row, label) for label in ("A", "C")] == pytest.approx([0.6, 0.4])


def test_other_is_what_lies_outside_of_the_labels(scripted: Scripted) -> None:
    server = scripted([{"phrase": "urgent", "labels": {"yes": 0.6}, "other": 0.3}])
    row = rows(server.read(isolated("Is it urgent?"), ANSWER))[slot_of(ANSWER)]
    assert [share(row, label) for label in ("yes", "no")] == pytest.approx([0.6, 0.1])
    assert len(row) == 3


def test_two_requests_for_half_the_labels_each_agree(scripted: Scripted) -> None:
    server = scripted([{"phrase": "Which", "labels": {"A": 0.4}}])
    prompt = isolated("Which?", ("A: a", "B: b", "C: c", "D: d"))
    first = rows(server.read(prompt, ANSWER, labels=("A", "B")))[slot_of(ANSWER)]
    second = rows(server.read(prompt, ANSWER, labels=("C", "D")))[slot_of(ANSWER)]
    total = share(first, "A") + share(first, "B") + share(second, "C") + share(second, "D")
    assert total == pytest.approx(1)


def test_draws_differ_with_the_noise_and_repeat_for_the_same_noise(scripted: Scripted) -> None:
    server = scripted([{"phrase": "urgent", "draws": [{"yes": 0.9}, {"yes": 0.2}]}])

    def read(noise: int) -> float:
        row = rows(server.read(isolated("Is it urgent?"), ANSWER, noise=noise))[slot_of(ANSWER)]
        return round(share(row, "yes"), 3)

    seen = [read(NOISE + number) for number in range(12)]
    assert set(seen) == {0.9, 0.2}
    assert seen == [read(NOISE + number) for number in range(12)]


def test_further_conditions_narrow_a_rule(scripted: Scripted) -> None:
    server = scripted(
        [
            {"phrase": "urgent", "state_contains": "fire", "labels": {"yes": 1}},
            {"phrase": "urgent", "labels": {"no": 1}},
        ]
    )
    for state, answer in (("There is a fire", "yes"), ("All is well", "no")):
        row = rows(server.read(isolated("Is it urgent?", state=state), ANSWER))[slot_of(ANSWER)]
        assert share(row, answer) == pytest.approx(1)


def test_an_image_is_known_by_its_hash(scripted: Scripted) -> None:
    image = b"\x89PNG not really"
    rules = [{"image_sha256": hashlib.sha256(image).hexdigest(), "labels": {"yes": 1}}]
    server = scripted(rules, default="uniform")
    url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    question = "Question: Is it a cat?\nyes: yes\nno: no"
    body = canvas_read("", ANSWER, prompt=None, logprobs=True, top_logprobs=2)
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": question}]
    body["messages"] = [{"role": "user", "content": parts}]
    reply = server.post("/v1/chat/completions", body)
    slot = reply.body["choices"][0]["logprobs"]["content"][slot_of(ANSWER)]
    assert (slot["token"], slot["logprob"]) == (f"token_id:{label_id('yes')}", 0.0)
    assert reply.body["usage"]["prompt_tokens"] > 256


def test_a_span_is_spelled_in_the_blank_with_a_turn_close_after_it(scripted: Scripted) -> None:
    server = scripted([{"phrase": "invoice number", "span": "INV-2041"}])
    assert _blank(server, "INV-2041 none") == " INV-2041"


def test_a_list_is_spelled_one_item_a_line(scripted: Scripted) -> None:
    server = scripted([{"phrase": "invoice number", "spans": ["red", "blue"]}])
    assert _blank(server, "red\nblue none") == " red\nblue"


@pytest.mark.parametrize("rule", [{"span": None}, {"spans": []}, {}])
def test_no_span_is_spelled_none(scripted: Scripted, rule: dict[str, Any]) -> None:
    server = scripted([{"phrase": "invoice number", **rule}])
    assert _blank(server, "INV-2041 none") == " none"


def test_a_span_that_the_window_cannot_spell_is_none(scripted: Scripted) -> None:
    server = scripted([{"phrase": "invoice number", "span": "INV-2041"}])
    assert _blank(server, "another part of it none") == " none"


def test_emit_spells_anything_without_a_turn_close(scripted: Scripted) -> None:
    server = scripted([{"phrase": "invoice number", "emit": " INV INV-99"}])
    assert _blank(server, "INV-2041 none").startswith(" INV INV-99")


def test_noise_spreads_over_the_other_ids(scripted: Scripted) -> None:
    server = scripted([{"phrase": "urgent", "span": "yes", "noise": 0.5}])
    blank = f"answer:{SLOT}{SLOT}"
    reply = server.read(isolated("Is it urgent?"), blank, logprob_token_ids=[label_id("yes"), EOS, 500])
    assert share(rows(reply)[slot_of(blank)], "yes") == pytest.approx(0.5)


def test_the_default_is_the_same_in_every_process(scripted: Scripted, plain: Server) -> None:
    ours = rows(scripted([]).read(isolated("Is it odd?"), ANSWER))
    assert ours == rows(plain.read(isolated("Is it odd?"), ANSWER))
    assert ours != rows(plain.read(isolated("Is it even?"), ANSWER))


def test_the_default_error_says_which_question_has_no_rule(scripted: Scripted) -> None:
    reply = scripted([], default="error").read(isolated("Is it urgent?"), ANSWER)
    assert reply.status == 500
    assert "Is it urgent?" in reply.body["error"]["message"]


def test_an_object_is_what_a_grammar_request_gets(scripted: Scripted) -> None:
    server = scripted([{"phrase": "order", "object": {"id": 7}}, {"phrase": "cut", "object": '{"id"'}])
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    answers = [
        server.chat(f"Question: the {word}", structured_outputs={"json": schema}, max_tokens=50)
        for word in ("order", "cut")
    ]
    assert [reply.body["choices"][0]["message"]["content"] for reply in answers] == ['{"id":7}', '{"id"']


def test_without_a_rule_a_grammar_request_gets_the_smallest_value(plain: Server) -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer", "minimum": 3}},
        "required": ["kind", "n"],
    }
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    reply = plain.chat("Anything", response_format=form, max_tokens=50)
    assert json.loads(reply.body["choices"][0]["message"]["content"]) == {"kind": "a", "n": 3}


def test_a_thought_is_what_a_stopped_generation_gets(scripted: Scripted) -> None:
    server = scripted([{"phrase": "hard", "thought": "Let me see. END more", "text": "Four."}])
    thought = server.chat("Question: a hard one", stop=["END"], max_tokens=50).body["choices"][0]
    text = server.chat("Question: a hard one", max_tokens=50).body["choices"][0]
    assert (thought["message"]["content"], thought["finish_reason"]) == ("Let me see. ", "stop")
    assert text["message"]["content"] == "Four."


def test_a_generation_ends_at_its_token_limit(scripted: Scripted) -> None:
    choice = scripted([{"text": "one two three four"}]).chat("x", max_tokens=2).body["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("one two", "length")


def test_a_fault_of_a_rule_ends_after_its_times(scripted: Scripted) -> None:
    server = scripted([{"phrase": "urgent", "fault": "503", "times": 2, "labels": {"yes": 1}}])
    statuses = [server.read(isolated("Is it urgent?"), ANSWER).status for _ in range(3)]
    assert statuses == [503, 503, 200]


def test_a_wrong_script_is_refused_with_the_rule_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(json.dumps({"rules": [{"id": "a", "lables": {"yes": 1}}]}))
    assert "rule 1: unknown keys lables" in refusal("--backend", f"script:{file}")


def _blank(server: Server, text: str) -> str:
    """What is written in a blank of 16 positions when the tokens of a text are allowed."""
    template = "answer:" + SLOT * 16
    allowed = sorted({*ids(text), *ids(f" {text}"), *ids(" none"), *ids("\n"), EOS})
    prompt = isolated("What is the invoice number?", options=(), state=text)
    reply = server.read(prompt, template, width=32, logprob_token_ids=allowed)
    return written(reply, slot_of(template), 16)
