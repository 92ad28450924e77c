"""`canvass batch` against a real HTTP server that answers what the test says."""

from __future__ import annotations

import csv
import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from client.batch_table import row_of
from client.cli import main

QUESTIONS = {
    "ok": {"type": "noul"},
    "team": {"type": "choice", "criteria": {"a": None, "b": None}},
    "when": {"type": "span"},
}
ANSWERS = {
    "ok": {"type": "noul", "noul": 0.75},
    "team": {"type": "choice", "choice": "a", "probabilities": {"a": 0.9, "b": 0.1}, "confidence": 0.8},
    "when": {"type": "span", "found": True, "text": "at\u2028noon", "start": 3, "end": 10, "confidence": 0.5},
}


def line(index: int) -> dict[str, Any]:
    """A line of results; every third is a failure."""
    head = {"index": index, "custom_id": f"t{index}"}
    if index % 3 == 2:
        return {**head, "status": "failed", "error": {"code": "missing_state", "message": "none"}}
    return {**head, "status": "succeeded", "result": {"model": "m", "answers": ANSWERS}}


@dataclass
class Server:
    """A batch of `total` states. `breaks` are the numbers of lines after which a connection is cut."""

    url: str = ""
    total: int = 7
    status: str = "succeeded"
    breaks: list[int] = field(default_factory=list)
    refused: int = 0
    posts: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        failed = sum(index % 3 == 2 for index in range(self.total))
        return {
            "total": self.total, "queued": 0, "running": 0, "succeeded": self.total - failed,
            "failed": failed, "canceled": 0, "expired": 0,
        }  # fmt: skip


@pytest.fixture
def server() -> Iterator[Server]:
    said = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.path.endswith("/cancel"):
                said.status = "canceled"
                return self.say(202, {})
            said.posts.append(({name.lower(): value for name, value in self.headers.items()}, content))
            if said.refused:
                return self.say(said.refused, {"code": "invalid_request", "detail": "questions: wrong"})
            return self.say(202, {"id": "bat_1"})

        def do_GET(self) -> None:
            if "/results" not in self.path:
                return self.say(200, {"id": "bat_1", "status": said.status, "counts": said.counts})
            said.reads.append(self.path)
            first = int(self.path.rpartition("after=")[2]) + 1 if "after=" in self.path else 0
            last = said.breaks.pop(0) if said.breaks else said.total
            lines = [json.dumps(line(n), ensure_ascii=False) + "\n" for n in range(first, last)]
            cut = "" if last == said.total else '{"index": '
            content = ("".join(lines) + cut).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content) + bool(cut)))
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = True
            return None

        def say(self, status: int, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            if status == 409:
                self.send_header("retry-after", "1")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        said.url = f"http://127.0.0.1:{listening.server_address[1]}"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield said
        listening.shutdown()
        thread.join()


Run = Callable[..., int]


@pytest.fixture
def run(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in a folder of its own; its exit status."""
    (tmp_path / "states.jsonl").write_text('{"state": "a"}\n')
    (tmp_path / "q.json").write_text(json.dumps(QUESTIONS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("client.batch._PAUSE_S", 0.01)

    def running(*more: str, out: str = "out.jsonl", url: str = server.url) -> int:
        arguments = ["states.jsonl", "--questions", "q.json", "-o", out, "--url", url, *more]
        monkeypatch.setattr(sys, "argv", ["canvass", "batch", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return running


def test_results_come_into_the_file_and_nothing_else_is_left(
    run: Run, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--key", "cvs_1") == 0
    lines = (tmp_path / "out.jsonl").read_text().split("\n")
    assert [json.loads(text)["index"] for text in lines[:-1]] == list(range(7))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "q.json", "states.jsonl"]
    ((headers, content),) = server.posts
    assert headers["authorization"] == "Bearer cvs_1"
    assert headers["idempotency-key"]
    assert b'filename="states.jsonl"' in content
    assert b'"model":"jev-latest"' in content
    assert "5 succeeded, 2 failed" in capsys.readouterr().err


def test_a_lost_connection_is_made_again_after_the_last_line(
    run: Run, server: Server, tmp_path: Path
) -> None:
    server.breaks = [3, 5]
    assert run() == 0
    assert server.reads == [f"/v1/batches/bat_1/results{query}" for query in ("", "?after=2", "?after=4")]
    assert len((tmp_path / "out.jsonl").read_text().split("\n")) == 8


def test_the_same_command_goes_on_from_what_it_has(run: Run, server: Server, tmp_path: Path) -> None:
    server.breaks = [3, 3, 3, 3, 3, 3]
    assert run() == 1
    assert not (tmp_path / "out.jsonl").exists()
    with (tmp_path / "out.jsonl.part").open("a") as part:
        part.write('{"index": 3, "cust')
    server.breaks, server.reads = [], []
    assert run() == 0
    assert server.reads == ["/v1/batches/bat_1/results?after=2"]
    assert len(server.posts) == 1
    lines = (tmp_path / "out.jsonl").read_text().split("\n")[:-1]
    assert [json.loads(text)["index"] for text in lines] == list(range(7))


def test_results_that_were_removed_are_taken_again(run: Run, server: Server, tmp_path: Path) -> None:
    server.breaks = [3, 3, 3, 3, 3, 3]
    assert run() == 1
    (tmp_path / "out.jsonl.part").unlink()
    server.breaks = []
    assert run() == 0
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 7


def test_another_file_does_not_go_on_with_a_batch(
    run: Run, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.breaks = [3] * 6
    assert run() == 1
    (tmp_path / "states.jsonl").write_text('{"state": "b"}\n')
    assert run() == 1
    assert "another file" in capsys.readouterr().err


def test_a_batch_can_be_canceled_and_what_it_has_is_taken(
    run: Run, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.breaks = [3] * 6
    assert run() == 1
    server.breaks = []
    assert run("--cancel") == 1
    assert "canceled" in capsys.readouterr().err
    assert (tmp_path / "out.jsonl").exists()


def test_a_refused_batch_says_why_and_leaves_no_state(
    run: Run, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.refused = 422
    assert run() == 1
    assert "422 invalid_request: questions: wrong" in capsys.readouterr().err
    assert not list(tmp_path.glob("out.jsonl*"))


def test_a_batch_that_may_be_accepted_is_asked_for_again_under_its_key(run: Run, server: Server) -> None:
    for server.refused in (409, 503, 0):
        assert run() == (1 if server.refused else 0)
    assert len(server.posts) == 3
    assert len({headers["idempotency-key"] for headers, _ in server.posts}) == 1


def test_a_table_has_a_row_per_state_and_columns_per_question(run: Run, tmp_path: Path) -> None:
    assert run(out="out.csv") == 0
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "index", "custom_id", "status", "error", "ok", "team", "team.confidence",
        "when", "when.start", "when.end", "when.confidence",
    ]  # fmt: skip
    assert len(rows) == 7
    assert (rows[0]["ok"], rows[0]["team"], rows[0]["when"]) == ("0.75", "a", "at\u2028noon")
    assert (rows[2]["error"], rows[2]["ok"]) == ("missing_state: none", "")


def test_a_skipped_question_and_several_spans_have_their_cells() -> None:
    answers = {"a": None, "b": {"type": "spans", "found": True, "items": [{"text": "x"}, {"text": "y"}]}}
    row = row_of({"index": 0, "custom_id": None, "status": "succeeded", "result": {"answers": answers}})
    assert row["b"] == '["x","y"]'
    assert "a" not in row


def test_ctrl_c_says_how_to_go_on_and_how_to_cancel(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> Iterator[bytes]:
        yield json.dumps(line(0)).encode()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("client.batch.lines", interrupted)
        assert run() == 1
    said = capsys.readouterr().err
    assert "bat_1 runs on" in said
    assert "--cancel" in said
    assert run() == 0
    assert len((tmp_path / "out.jsonl").read_text().split("\n")) == 8
