"""`canvass ask` against a real HTTP server that answers what the test says."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from client.cli import main
from client.ports import free_port

DECISION = {"state": "a state", "questions": {"q": {"type": "noul"}}}
ANSWER = {"model": "m", "answers": {"q": {"type": "noul", "noul": 0.75, "x_label_mass": 0.5}}, "usage": {}}


@dataclass
class Server:
    """What the server answers next, and the bodies it was sent."""

    url: str = ""
    status: int = 200
    content: bytes = json.dumps(ANSWER).encode()
    received: list[Any] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    said = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            said.received.append((self.path, json.loads(self.rfile.read(length))))
            self.send_response(said.status)
            self.send_header("content-length", str(len(said.content)))
            self.end_headers()
            self.wfile.write(said.content)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        said.url = f"http://127.0.0.1:{listening.server_address[1]}"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield said
        listening.shutdown()
        thread.join()


@pytest.fixture
def decision(tmp_path: Path) -> Path:
    file = tmp_path / "decision.json"
    file.write_text(json.dumps(DECISION))
    return file


def canvass(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command in this process; its exit status."""
    monkeypatch.setattr(sys, "argv", ["canvass", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    status = ended.value.code
    assert isinstance(status, int)
    return status


def test_a_decision_is_posted_with_the_default_model_and_diagnostics(
    server: Server, decision: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert canvass(monkeypatch, "ask", str(decision), "--url", server.url) == 0
    assert server.received == [("/v1/systemone", {**DECISION, "model": "jev-latest", "diagnostics": True})]
    assert "75.0 %" in capfd.readouterr().out


def test_a_model_in_the_file_stays(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "named.json"
    file.write_text(json.dumps({**DECISION, "model": "mine"}))
    assert canvass(monkeypatch, "ask", str(file), "--url", server.url) == 0
    assert server.received[0][1]["model"] == "mine"


def test_json_prints_the_body_as_it_came_and_asks_for_nothing_more(
    server: Server, decision: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server.content = b'{ "answers":  {} }'
    assert canvass(monkeypatch, "ask", str(decision), "--url", server.url, "--json") == 0
    assert capfd.readouterr().out == '{ "answers":  {} }\n'
    assert "diagnostics" not in server.received[0][1]


def test_a_decision_comes_from_standard_input(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(json.dumps(DECISION).encode())))
    assert canvass(monkeypatch, "ask", "-", "--url", server.url) == 0
    assert server.received[0][1]["state"] == "a state"


def test_a_refusal_is_shown_with_its_status_and_message(
    server: Server, decision: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server.status = 529
    server.content = b'{"detail": {"error_type": "overloaded_error", "message": "no engine is in"}}'
    assert canvass(monkeypatch, "ask", str(decision), "--url", server.url) == 1
    assert capfd.readouterr().err == "529 overloaded_error: no engine is in\n"


def test_what_is_wrong_in_a_body_is_shown_by_its_path(
    server: Server, decision: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    problem = {"loc": ["body", "questions", "q", "criteria"], "msg": "at most 10 levels", "type": "x"}
    server.status = 422
    server.content = json.dumps({"detail": [problem]}).encode()
    assert canvass(monkeypatch, "ask", str(decision), "--url", server.url) == 1
    assert "  questions.q.criteria: at most 10 levels\n" in capfd.readouterr().err


@pytest.mark.parametrize(("status", "content"), [(502, b"<h1>Bad gateway</h1>"), (500, b""), (404, b"[1]")])
def test_an_error_that_is_no_json_of_ours_is_shown_by_its_status(
    server: Server,
    decision: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    status: int,
    content: bytes,
) -> None:
    server.status, server.content = status, content
    assert canvass(monkeypatch, "ask", str(decision), "--url", server.url) == 1
    assert capfd.readouterr().err.startswith(f"{status}: ")


def test_a_success_that_is_no_decision_is_an_error(
    server: Server, decision: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server.content = b"<h1>It works!</h1>"
    assert canvass(monkeypatch, "ask", str(decision), "--url", server.url) == 1
    assert "no decision" in capfd.readouterr().err


def test_no_server_names_the_url_and_how_to_start_one(
    decision: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert canvass(monkeypatch, "ask", str(decision), "--url", url) == 1
    said = capfd.readouterr().err
    assert url in said
    assert "`canvass up`" in said


@pytest.mark.parametrize("content", ["no json", "[1]"])
def test_a_file_that_is_no_decision_is_refused_before_anything_is_sent(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    content: str,
) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(content)
    assert canvass(monkeypatch, "ask", str(file), "--url", server.url) == 1
    assert "wrong.json" in capfd.readouterr().err
    assert server.received == []


def test_a_missing_file_is_named(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert canvass(monkeypatch, "ask", "/nowhere.json") == 1
    assert "/nowhere.json" in capfd.readouterr().err


@pytest.mark.parametrize("engines", ["causal", "script:/nowhere", "http://a,llama"])
def test_engines_that_are_no_engines_are_a_usage_error(engines: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert canvass(monkeypatch, "up", "--engines", engines) == 2
