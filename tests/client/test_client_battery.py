"""The battery: its material, how it judges, and what it makes of servers that know less."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from client.battery.command import parts_named
from client.battery.judge import judged
from client.battery.material import NEED_SPANS, PARTS, Asked, Case, cases
from client.battery.report import failed, report_json, report_view
from client.battery.run import PartResult, requests_planned, run_battery
from client.battery.script import script_rules
from client.battery.server import TRIES, Server, chat_body
from client.cli import main
from client.errors import ServerUnreachable
from client.ports import free_port

Reply = tuple[int, Any]
Answering = Callable[[str, dict[str, Any]], Reply]


def case(type: str, expected: Any, state: Any = "red, blue, red", **question: Any) -> Case:
    return Case("case", state, (Asked("q", {"type": type, "instructions": "?", **question}, expected),))


def hit(case: Case, answer: dict[str, Any]) -> bool:
    return judged(case, case.asked[0], {"type": case.asked[0].type, **answer}).hit


def item(text: str, start: int) -> dict[str, Any]:
    return {"text": text, "start": start, "end": start + len(text)}


def right_answer(case: Case, asked: Asked) -> dict[str, Any]:
    """What a perfect server answers."""
    expected = asked.expected
    if asked.type == "noul":
        return {"type": "noul", "noul": 0.9 if expected else 0.1}
    if asked.type == "choice":
        return {"type": "choice", "choice": expected}
    if asked.type == "score":
        levels = range(len(asked.question["criteria"]))
        return {"type": "score", "probabilities": {str(n): float(n == expected) for n in levels}}
    items = [item(case.source[start:end], start) for start, end in case.places(asked)]
    if asked.type == "spans":
        return {"type": "spans", "found": bool(items), "items": items, "reads": 2}
    return {"type": "span", "found": bool(items), **(items[0] if items else {}), "reads": 1}


@pytest.fixture
def serve() -> Iterator[Callable[[Answering], str]]:
    """Starts a server that answers as a function says, and gives its URL."""
    running: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(answering: Answering) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, answer = answering(self.path, {"headers": dict(self.headers.items()), **body})
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.send_header("retry-after", "0")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Keep the test's output clean."""

        listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((listening, thread))
        return f"http://127.0.0.1:{listening.server_address[1]}"

    yield start
    for listening, thread in running:
        listening.shutdown()
        thread.join()
        listening.server_close()


KNOWN = {json.dumps(case.state): case for part in PARTS for case in cases(part)}


def all_right(path: str, body: dict[str, Any]) -> Reply:
    """A server of every kind of question, but the chat form, that knows the answers."""
    if path != "/v1/systemone":
        return 404, {"detail": "Not Found"}
    found = KNOWN.get(json.dumps(body["state"]))
    if found is None:
        return 200, {"answers": {}}
    answers = {asked.id: right_answer(found, asked) for asked in found.asked}
    return 200, {"answers": answers, "diagnostics": {"reads": [{}] * len(answers)}}


def labels_only(path: str, body: dict[str, Any]) -> Reply:
    """A server of System One as its makers have it."""
    if any(question["type"] in ("span", "spans") for question in body.get("questions", {}).values()):
        return 400, {"detail": {"error_type": "api_usage_error", "message": "unknown question type"}}
    return all_right(path, body)


def run(url: str, *parts: str) -> list[PartResult]:
    return run_battery(Server(url, "m"), parts or PARTS, lambda name: None)


def canvass(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["canvass", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_the_material_is_as_large_as_promised() -> None:
    types = [(part, asked.type) for part in PARTS for case in cases(part) for asked in case.asked]
    assert sum(part == "labels" for part, _ in types) >= 22
    assert {type for part, type in types if part == "labels"} == {"noul", "choice", "score"}
    assert types.count(("spans", "span")) >= 49
    assert types.count(("lists", "spans")) == 5
    assert {type for part, type in types if part == "mixed"} == {"noul", "choice", "score", "span", "spans"}


def test_each_part_has_names_of_its_own_and_ids_that_are_kept_apart() -> None:
    for part in PARTS:
        names = [case.name for case in cases(part)]
        assert len(set(names)) == len(names)


def test_expected_answers_are_among_those_that_can_be_given() -> None:
    for one in (one for part in PARTS for one in cases(part)):
        for asked in one.asked:
            criteria = asked.question.get("criteria") or {}
            if asked.type == "noul":
                assert isinstance(asked.expected, bool)
            elif asked.type == "choice":
                assert asked.expected in criteria
            elif asked.type == "score":
                assert asked.expected in range(len(criteria))
            else:
                # Raises where the text is not there.
                assert len(one.places(asked)) == (
                    len(asked.expected) if asked.type == "spans" else int(asked.expected is not None)
                )
            assert set(asked.question) <= {"type", "instructions", "criteria"}


def test_no_two_questions_are_taken_for_each_other_by_a_script() -> None:
    rules = script_rules([case for part in PARTS for case in cases(part)])["rules"]
    for rule in rules:
        alike = [
            other["phrase"]
            for other in rules
            if other["state_contains"] == rule["state_contains"] and other["phrase"] in rule["phrase"]
        ]
        assert alike == [rule["phrase"]]


def test_a_span_is_right_only_at_the_first_occurrence_of_its_text() -> None:
    red = case("span", "red")
    assert hit(red, {"found": True, **item("red", 0)})
    assert not hit(red, {"found": True, **item("red", 11)})
    assert not hit(red, {"found": True, **item("red,", 0)})
    assert not hit(red, {"found": False})
    assert hit(case("span", None), {"found": False})
    assert not hit(case("span", None), {"found": True, **item("red", 0)})


def test_a_list_is_right_with_every_mention_in_order_and_nothing_else() -> None:
    reds = case("spans", ["red", "red"])
    assert hit(reds, {"items": [item("red", 0), item("red", 11)]})
    assert not hit(reds, {"items": [item("red", 0)]})
    assert not hit(reds, {"items": [item("red", 0), item("red", 0)]})
    assert not hit(reds, {"items": [item("red", 0), item("blue", 5), item("red", 11)]})
    assert hit(case("spans", []), {"items": []})


def test_a_piece_that_is_not_at_its_offsets_is_a_miss_and_a_wrong_offset() -> None:
    red = case("span", "red")
    outcome = judged(red, red.asked[0], {"type": "span", "found": True, "text": "blue", "start": 0, "end": 3})
    assert (outcome.hit, outcome.wrong) == (False, 1)


def test_label_answers_are_judged_by_their_most_probable_alternative() -> None:
    assert hit(case("noul", True), {"noul": 0.5})
    assert not hit(case("noul", True), {"noul": 0.49})
    assert hit(case("choice", "a"), {"choice": "a"})
    assert hit(case("score", 1), {"probabilities": {"0": 0.4, "1": 0.6}})
    assert not hit(case("score", 1), {"probabilities": {"0": 0.6, "1": 0.4}})


def test_an_answer_without_its_value_or_of_another_type_is_a_miss() -> None:
    for type, expected in (("noul", False), ("choice", "a"), ("score", 0)):
        assert not hit(case(type, expected), {})
    assert not hit(case("noul", True), {"type": "choice", "noul": 0.9})


def test_a_server_that_knows_everything_gets_everything(serve: Callable[[Answering], str]) -> None:
    results = run(serve(all_right))
    assert [result.part for result in results if result.misses or result.failures] == []
    assert sum(result.hits for result in results) == sum(len(result.outcomes) for result in results) >= 90
    assert [result.reads for result in results if result.part == "labels"] == [24]
    assert {result.part for result in results if result.not_served} == {"chat"}


def test_of_a_server_of_labels_alone_the_labels_are_checked(serve: Callable[[Answering], str]) -> None:
    results = {result.part: result for result in run(serve(labels_only))}
    assert results["labels"].hits == len(results["labels"].outcomes) == 24
    assert {part for part, result in results.items() if result.not_served} == {*NEED_SPANS, "chat"}
    assert "unknown question type" in str(results["spans"].not_served)
    assert failed(list(results.values()), strict=True) is None


def test_a_refusal_after_span_questions_were_accepted_is_a_failure(serve: Callable[[Answering], str]) -> None:
    def refusing(path: str, body: dict[str, Any]) -> Reply:
        return (422, {"detail": []}) if len(body["questions"]) > 1 else all_right(path, body)

    (spans,) = run(serve(refusing), "spans")
    assert len(spans.failures) == len(cases("spans"))
    assert failed([spans], strict=False) == f"The battery failed: {len(cases('spans'))} failures."


@pytest.mark.parametrize("answer", [{}, {"answers": []}, {"answers": {"scam": None}}, [1]])
def test_a_body_without_its_answers_is_a_failure(answer: Any, serve: Callable[[Answering], str]) -> None:
    (labels,) = run(serve(lambda path, body: (200, answer)), "labels")
    assert len(labels.failures) >= len(cases("labels"))
    assert labels.outcomes == []


def test_a_busy_server_is_asked_again_and_told_so(serve: Callable[[Answering], str]) -> None:
    counts: list[str | None] = []

    def busy(path: str, body: dict[str, Any]) -> Reply:
        headers = {name.lower(): value for name, value in body["headers"].items()}
        counts.append(headers.get("x-typesafe-retry-count"))
        return (529, {"detail": "busy"}) if len(counts) < TRIES else all_right(path, body)

    (mixed,) = run_battery(Server(serve(busy), "m"), ["chat"], lambda name: None)
    assert counts == [None, "1", "2"]
    assert mixed.not_served == "404: Not Found"


def test_a_key_goes_along_as_a_bearer_token(serve: Callable[[Answering], str]) -> None:
    seen: list[str] = []

    def keyed(path: str, body: dict[str, Any]) -> Reply:
        seen.append({name.lower(): value for name, value in body["headers"].items()}["authorization"])
        return all_right(path, body)

    run_battery(Server(serve(keyed), "m", key="k"), ["mixed"], lambda name: None)
    assert set(seen) == {"Bearer k"}


def chat_reply(content: str) -> Answering:
    return lambda path, body: (200, {"choices": [{"message": {"role": "assistant", "content": content}}]})


def test_the_chat_form_is_judged_where_it_is_served(serve: Callable[[Answering], str]) -> None:
    (one,) = cases("chat")
    answers = {asked.id: right_answer(one, asked) for asked in one.asked}
    for told in (answers, [{"id": id, **answer} for id, answer in answers.items()]):
        (chat,) = run(serve(chat_reply(json.dumps({"answers": told}))), "chat")
        assert chat.hits == len(one.asked)


@pytest.mark.parametrize("content", ["Karim takes the shift.", "[1]", "{}"])
def test_ordinary_chat_is_not_the_chat_form(content: str, serve: Callable[[Answering], str]) -> None:
    (chat,) = run(serve(chat_reply(content)), "chat")
    assert chat.not_served == "the server answers with ordinary chat"


def test_the_chat_form_lists_questions_in_a_system_message() -> None:
    (one,) = cases("chat")
    system, user = chat_body("m", one)["messages"]
    questions = json.loads(system["content"])["questions"]
    assert [question["id"] for question in questions] == [asked.id for asked in one.asked]
    assert questions[1]["options"][0] == {"name": "holiday", "description": None}
    assert questions[2]["levels"] == ["Nobody is there", "Somebody else takes it"]
    assert user == {"role": "user", "content": one.state}


def test_a_server_that_is_not_there_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ServerUnreachable):
        run(url)
    assert canvass(monkeypatch, "battery", url) == 1
    assert url in capfd.readouterr().err


def test_the_table_and_the_object_tell_the_same(serve: Callable[[Answering], str]) -> None:
    def one_wrong(path: str, body: dict[str, Any]) -> Reply:
        status, answer = all_right(path, body)
        if "amount" in answer["answers"] and "garage" in answer["answers"]:
            answer["answers"]["amount"] |= {"text": "900 euros"}
        return status, answer

    results = run(serve(one_wrong), "labels", "mixed")
    out = StringIO()
    Console(file=out, width=150).print(report_view(results))
    assert "23 of 24" not in out.getvalue()
    assert "6 of 7" in out.getvalue()
    assert "900 euros" in out.getvalue()
    assert "890 euros" in out.getvalue()
    told = report_json("u", results)
    assert (told["hits"], told["asked"], told["wrong_offsets"]) == (30, 31, 1)
    assert told["parts"]["mixed"]["by_type"]["span"] == {"hits": 2, "asked": 3}
    assert told["parts"]["mixed"]["misses"][0]["said"] == "900 euros"
    assert failed(results, strict=True) == "The battery failed: 1 wrong offset, 1 wrong answer."


def test_wrong_answers_fail_only_when_strict(
    serve: Callable[[Answering], str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def always_no(path: str, body: dict[str, Any]) -> Reply:
        return 200, {"answers": {id: {"type": "noul", "noul": 0.0} for id in body["questions"]}}

    url = serve(always_no)
    assert canvass(monkeypatch, "battery", url, "--kinds", "labels") == 0
    assert canvass(monkeypatch, "battery", url, "--kinds", "labels", "--strict") == 1
    assert "wrong answers" in capfd.readouterr().err


def test_json_prints_one_object(
    serve: Callable[[Answering], str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert canvass(monkeypatch, "battery", serve(all_right), "--json", "--kinds", "mixed,labels") == 0
    told = json.loads(capfd.readouterr().out)
    assert list(told["parts"]) == ["labels", "mixed"]
    assert told["wrong_offsets"] == 0


@pytest.mark.parametrize(
    "arguments", [["--kinds", "labels,boxes"], ["--kinds", ","], ["http://x", "--embedded"]]
)
def test_what_cannot_be_asked_is_a_usage_error(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert canvass(monkeypatch, "battery", *arguments) == 2


def test_parts_are_asked_in_their_own_order() -> None:
    assert parts_named("long, labels") == ("labels", "long")
    assert requests_planned(("mixed", "chat")) == 2


def test_a_script_is_written_for_the_parts_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "script.json"
    assert canvass(monkeypatch, "battery", "--script", str(file), "--kinds", "lists") == 0
    assert len(json.loads(file.read_text())["rules"]) == 5
    assert canvass(monkeypatch, "battery", "--script", str(tmp_path / "nowhere" / "s.json")) == 1
    assert "nowhere" in capfd.readouterr().err
