"""`canvass batch`: the same questions about every state of a file, on a server.

Beside the output OUT stand two files while it is not complete: OUT.part, the lines of results that came so
far, and OUT.batch, which batch they are of. The same command goes on from there.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from client.ask import DEFAULT_MODEL
from client.batch_table import write_table
from client.cells import printable
from client.errors import BadBatchFile, BatchStopped, CannotWrite, ServerRefused, ServerUnreachable
from client.http import DEFAULT_URL, OK, Response, bearer, lines, refused, send, upload

ACCEPTED = 202
NOT_FOUND = 404
SERVER_ERRORS = 500
_PATH = "/v1/batches"
_TRIES = 5
_PAUSE_S = 1.0
_ENDED = ("succeeded", "failed", "canceled", "expired")
_BLOCK = 1 << 20
_KINDS = (".jsonl", ".csv")


@dataclass(frozen=True, slots=True)
class Started:
    """What OUT.batch says: the server, the batch's id (empty until it was accepted), the key under which it
    was posted, and a digest of what was asked.
    """

    url: str
    id: str
    idempotency_key: str
    digest: str


def batch(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="States: JSON Lines (.jsonl), or CSV (.csv).")],
    questions: Annotated[
        Path, typer.Option(metavar="Q.json", help="Questions by id, or a whole body without its state.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT", help="Results: .jsonl or .csv.")],
    model: Annotated[str | None, typer.Option(help="Model to name in the request.")] = None,
    url: Annotated[str, typer.Option(envvar="CANVASS_URL", help="Base URL of a Canvass API.")] = DEFAULT_URL,
    key: Annotated[
        str | None, typer.Option(envvar="CANVASS_KEY", help="API key, where the server wants one.")
    ] = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel the batch that OUT is of, and take what it has.")
    ] = False,
) -> None:
    """Ask the same questions about every state of a file; one result per state, in its order.

    Ctrl-C leaves the batch running: the same command goes on from the results it has.
    """
    for path in (file, out):
        if path.suffix.lower() not in _KINDS:
            raise BadBatchFile(f"{path}: its name must end in {' or '.join(_KINDS)}.")
    request = read_request(questions, model)
    run = Run(file, request, out, url, key)
    try:
        run.start(cancel=cancel)
        run.follow()
    except KeyboardInterrupt as error:
        raise BatchStopped(
            f"Stopped reading; batch {run.started.id or '(not accepted yet)'} runs on at the server. "
            "The same command goes on from here; with --cancel it cancels the batch."
        ) from error
    run.finish()


class Run:
    """One batch on its way into a file."""

    def __init__(self, file: Path, request: dict[str, Any], out: Path, url: str, key: str | None) -> None:
        self._file = file
        self._request = request
        self._out = out
        self._headers = bearer(key)
        self._part = out.with_name(f"{out.name}.part")
        self._state = out.with_name(f"{out.name}.batch")
        self._console = Console(stderr=True, highlight=False)
        self.started = self._read_state(url) or Started(url, "", uuid.uuid4().hex, self._digest())

    def start(self, *, cancel: bool) -> None:
        """Post the batch, unless it was posted before. Raises `ClientError`."""
        if not self.started.id:
            if cancel:
                raise BadBatchFile(f"{self._state} names no batch that could be canceled.")
            self._write_state(self.started)
            self._part.write_bytes(b"")
            self._write_state(replace(self.started, id=self._post()))
        elif cancel:
            self._send("POST", "/cancel", ACCEPTED)

    def follow(self) -> None:
        """Take results until the batch ends and all are here. Raises `ClientError`."""
        total = self._send("GET", "", OK)["counts"]["total"]
        done, failed = self._kept()
        if done:
            self._console.print(f"Going on after {done} of {total} results.")
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[failures]}"),
        )
        shown = Progress(*columns, console=self._console, disable=not self._console.is_terminal)
        start, before = time.monotonic(), done
        with shown, self._part.open("ab") as part:
            task = shown.add_task("", total=total, completed=done, rate="", failures="")
            for line in self._lines(done, total):
                part.write(line + b"\n")
                part.flush()
                done += 1
                failed += orjson.loads(line)["status"] != "succeeded"
                rate = (done - before) / max(1e-3, time.monotonic() - start)
                failures = f"[red]{failed} failed" if failed else ""
                shown.update(task, completed=done, rate=f"{rate:.0f}/s", failures=failures)

    def finish(self) -> None:
        """Make OUT of the results, and say how the batch ended. Raises `BatchStopped` unless it did well."""
        ended = self._send("GET", "", OK)
        try:
            if self._out.suffix.lower() == ".csv":
                write_table(self._part, self._out, self._request.get("questions"))
                self._part.unlink()
            else:
                self._part.replace(self._out)
            self._state.unlink()
        except OSError as error:
            raise CannotWrite(f"Cannot write {self._out}: {error.strerror}.") from error
        counts = ended["counts"]
        told = ", ".join(f"{counts[name]} {name}" for name in _ENDED if counts[name])
        if ended["status"] != "succeeded":
            raise BatchStopped(f"The batch is {printable(ended['status'])}: {told}. Results in {self._out}.")
        self._console.print(f"{told}. Results in {printable(str(self._out))}.", soft_wrap=True)

    def _lines(self, done: int, total: int) -> Iterator[bytes]:
        """The lines from index `done` on. A connection that is lost is made again, a few times in a row."""
        failures = 0
        while done < total:
            after = f"?after={done - 1}" if done else ""
            path = f"{_PATH}/{self.started.id}/results{after}"
            try:
                for line in lines(self.started.url, path, self._headers):
                    yield line
                    done, failures = done + 1, 0
            except ServerUnreachable:
                failures += 1
                if failures == _TRIES:
                    raise
                time.sleep(_PAUSE_S)

    def _post(self) -> str:
        headers = {**self._headers, "idempotency-key": self.started.idempotency_key}
        with self._file.open("rb") as content:
            response = upload(
                self.started.url, _PATH, headers, orjson.dumps(self._request), self._file.name, content
            )
        if response.status != ACCEPTED:
            if response.status < SERVER_ERRORS and "retry-after" not in response.headers:
                self._state.unlink()
                self._part.unlink()
            raise _told(response)
        return str(orjson.loads(response.content)["id"])

    def _send(self, method: str, path: str, wanted: int) -> dict[str, Any]:
        response = send(method, self.started.url, f"{_PATH}/{self.started.id}{path}", self._headers)
        if response.status == NOT_FOUND:
            raise BatchStopped(
                f"{self.started.url} no longer keeps batch {self.started.id}. Remove {self._state} to start "
                "anew."
            )
        if response.status != wanted:
            raise _told(response)
        body: dict[str, Any] = orjson.loads(response.content)
        return body

    def _kept(self) -> tuple[int, int]:
        """How many whole lines are here, and how many of them failed. One that was cut short is dropped."""
        done = failed = size = 0
        self._part.touch()
        with self._part.open("r+b") as part:
            for line in part:
                if not line.endswith(b"\n"):
                    break
                done, size = done + 1, size + len(line)
                failed += orjson.loads(line)["status"] != "succeeded"
            part.truncate(size)
        return done, failed

    def _digest(self) -> str:
        digest = sha256(orjson.dumps(self._request))
        try:
            with self._file.open("rb") as content:
                while block := content.read(_BLOCK):
                    digest.update(block)
        except OSError as error:
            raise BadBatchFile(f"Cannot read {self._file}: {error.strerror}.") from error
        return digest.hexdigest()

    def _read_state(self, url: str) -> Started | None:
        try:
            started = Started(**orjson.loads(self._state.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise BadBatchFile(f"{self._state} cannot be read; remove it to start anew.") from error
        if started.digest != self._digest() or started.url != url:
            raise BadBatchFile(
                f"{self._state} is of another file, other questions or another server ({started.url}). "
                "Choose another output, or remove it to start anew."
            )
        return started

    def _write_state(self, started: Started) -> None:
        try:
            self._state.write_bytes(orjson.dumps(asdict(started)) + b"\n")
        except OSError as error:
            raise CannotWrite(f"Cannot write {self._state}: {error.strerror}.") from error
        self.started = started


def read_request(questions: Path, model: str | None) -> dict[str, Any]:
    """The body that all states share, of a file with questions by id, or with a body that has questions or a
    schema. Raises `BadBatchFile`.
    """
    try:
        body = orjson.loads(questions.read_bytes())
    except OSError as error:
        raise BadBatchFile(f"Cannot read {questions}: {error.strerror}.") from error
    except orjson.JSONDecodeError as error:
        raise BadBatchFile(f"No JSON in {questions}: {error}.") from error
    if not isinstance(body, dict):
        raise BadBatchFile(f"{questions} holds no JSON object.")
    listed = body.get("questions")
    if "schema" not in body and (not isinstance(listed, dict) or "type" in listed):
        body = {"questions": body}
    body.pop("state", None)
    return {"model": DEFAULT_MODEL, **body, **({"model": model} if model else {})}


def _told(response: Response) -> ServerRefused:
    """What a problem document says."""
    try:
        body = orjson.loads(response.content)
        message = f"{response.status} {body['code']}: {body['detail']}"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return refused(response)
    return ServerRefused(response.status, message)
