"""`canvass jobs` against a real stack, whose reads take 0.3 s."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client import http, job_events
from client.cli import main
from client.job_events import Event, parsed
from client.jobs import submitted
from client.stack import Stack

URGENT = {"type": "noul", "instructions": "Is it urgent?"}
ONE = {"q0": URGENT}
STAGES = {"q0": URGENT, **{f"q{n}": {**URGENT, "depends_on": [f"q{n - 1}"]} for n in range(1, 6)}}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    script = tmp_path_factory.mktemp("script") / "script.json"
    script.write_text(json.dumps({"rules": [{"phrase": "Is it urgent", "labels": {"yes": 0.75}}]}))
    with Stack(engines=f"script:{script}", engine_args=("--latency", "300,0,1000")) as running:
        yield running


@pytest.fixture
def canvass(stack: Stack, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command against the stack; its exit status, what it printed, what it complained of."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["canvass", *arguments])
        monkeypatch.setenv("CANVASS_URL", stack.url)
        monkeypatch.setenv("COLUMNS", "118")
        with pytest.raises(SystemExit) as ended:
            main()
        printed, complained = capfd.readouterr()
        status = ended.value.code
        assert isinstance(status, int)
        return status, printed, complained

    return run


def submit(stack: Stack, questions: dict[str, Any], **more: Any) -> str:
    body = {"model": "jev-latest", "state": "It burns.", "questions": questions, **more}
    return submitted(stack.url, body, None)


def test_a_decision_asked_for_without_waiting_is_a_job_id(canvass: Any, tmp_path: Path) -> None:
    file = tmp_path / "decision.json"
    file.write_text(json.dumps({"state": "It burns.", "questions": ONE}))
    status, printed, _ = canvass("ask", str(file), "--async")
    assert status == 0
    id = printed.strip()
    assert id.startswith("dec_")
    assert canvass("jobs", "watch", id)[0] == 0


def test_watching_ends_with_the_answers(stack: Stack, canvass: Any) -> None:
    status, printed, _ = canvass("jobs", "watch", submit(stack, STAGES))
    assert status == 0
    assert printed.count("75.0 %") == 6
    assert "q5" in printed


def test_watching_as_json_prints_the_job_alone(stack: Stack, canvass: Any) -> None:
    status, printed, _ = canvass("jobs", "watch", submit(stack, ONE), "--json")
    assert status == 0
    assert json.loads(printed)["result"]["answers"]["q0"]["noul"] == 0.75


def test_watching_takes_whatever_stands_in_the_metadata(stack: Stack, canvass: Any) -> None:
    metadata = {"note": "line\u2028paragraph\u2029next\x85"}
    status, printed, _ = canvass("jobs", "watch", submit(stack, ONE, metadata=metadata), "--json")
    assert status == 0
    assert json.loads(printed)["metadata"] == metadata


def test_watching_a_job_without_answers_fails_and_says_why(stack: Stack, canvass: Any) -> None:
    status, printed, complained = canvass("jobs", "watch", submit(stack, STAGES, deadline_ms=400))
    assert status == 1
    assert printed == ""
    assert "expired" in complained
    assert "deadline" in complained


def test_watching_goes_on_through_a_server_that_was_restarted(stack: Stack, canvass: Any) -> None:
    id = submit(stack, STAGES)

    def restart() -> None:
        time.sleep(0.5)
        stack.apis[0].kill()
        stack.restart(stack.apis[0])

    restarting = threading.Thread(target=restart)
    restarting.start()
    status, printed, _ = canvass("jobs", "watch", id)
    restarting.join()
    assert status == 0
    assert printed.count("75.0 %") == 6


def test_events_come_once_through_a_lost_connection(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = http.lines

    def short(url: str, path: str, headers: dict[str, str]) -> Iterator[bytes]:
        asked.append(headers.get("last-event-id", ""))
        for number, line in enumerate(real(url, path, headers)):
            yield line
            if number == 9 and len(asked) < 3:
                return

    monkeypatch.setattr(job_events, "lines", short)
    found = list(job_events.follow(stack.url, f"/v1/jobs/{submit(stack, STAGES)}/events", None))
    assert [event.number for event in found] == list(range(1, len(found) + 1))
    assert asked == ["", "2", "4"], "ten lines are two events and a half"


def test_a_job_is_shown_as_it_stands_and_with_a_wait_once_it_is_done(stack: Stack, canvass: Any) -> None:
    id = submit(stack, STAGES, metadata={"ticket": 7})
    status, printed, _ = canvass("jobs", "get", id)
    assert status == 0
    assert "running" in printed or "queued" in printed
    assert '{"ticket":7}' in printed
    status, printed, _ = canvass("jobs", "get", id, "--wait", "20")
    assert "succeeded" in printed
    assert printed.count("75.0 %") == 6
    status, printed, _ = canvass("jobs", "get", id, "--json")
    assert json.loads(printed)["metadata"] == {"ticket": 7}


def test_cancel_waits_until_the_job_has_stopped(stack: Stack, canvass: Any) -> None:
    id = submit(stack, STAGES)
    status, printed, _ = canvass("jobs", "cancel", id)
    assert (status, printed) == (0, f"{id} is canceled.\n")
    status, _, complained = canvass("jobs", "watch", id)
    assert status == 1
    assert "canceled on request" in complained


def test_cancel_of_a_job_that_is_done_fails(stack: Stack, canvass: Any) -> None:
    id = submit(stack, ONE)
    assert canvass("jobs", "watch", id)[0] == 0
    status, _, complained = canvass("jobs", "cancel", id)
    assert status == 1
    assert "succeeded" in complained


def test_cancel_may_be_asked_for_alone(stack: Stack, canvass: Any) -> None:
    id = submit(stack, STAGES)
    status, printed, _ = canvass("jobs", "cancel", id, "--no-wait")
    assert status == 0
    assert id in printed
    assert canvass("jobs", "get", id, "--wait", "10", "--json")[1].count('"canceled"') >= 1


def test_the_list_shows_the_newest_first(stack: Stack, canvass: Any) -> None:
    ids = [submit(stack, ONE) for _ in range(3)]
    assert canvass("jobs", "watch", ids[-1])[0] == 0
    status, printed, _ = canvass("jobs", "list", "--limit", "3")
    assert status == 0
    assert [line.split()[0] for line in printed.splitlines()[1:]] == ids[::-1]


def test_the_list_may_be_of_one_status_and_json(stack: Stack, canvass: Any) -> None:
    id = submit(stack, STAGES)
    canvass("jobs", "cancel", id)
    found = json.loads(canvass("jobs", "list", "--status", "canceled", "--limit", "500", "--json")[1])
    assert found[0]["id"] == id
    assert {one["status"] for one in found} == {"canceled"}


@pytest.mark.parametrize("command", ["get", "watch", "cancel"])
def test_a_job_that_is_not_there_is_a_sentence(canvass: Any, command: str) -> None:
    status, _, complained = canvass("jobs", command, "dec_nothing")
    assert status == 1
    assert "404: there is no job 'dec_nothing'" in complained


def test_a_server_that_is_not_there_is_a_sentence(canvass: Any) -> None:
    status, _, complained = canvass("jobs", "watch", "dec_1", "--url", "http://127.0.0.1:9")
    assert status == 1
    assert "Cannot reach Canvass" in complained


def test_comments_and_half_an_event_are_no_events() -> None:
    lines = [": ping", "", "event: a", "id: 1", 'data: {"b": 2}', "", ": ping", "", "event: c", "data: {}"]
    assert list(parsed(lines)) == [Event(1, "a", {"b": 2})]
