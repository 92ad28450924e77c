"""`canvass jobs`: a server's jobs, listed, looked at, watched and canceled over HTTP."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

import orjson
import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from client.cells import cell
from client.errors import JobEnded
from client.http import DEFAULT_URL, OK, bearer, object_of, post, send
from client.job_events import DONE, follow
from client.view import decision_view

ACCEPTED = 202
PAGE = 100
"""Most jobs of one page."""

LONG_POLL_S = 30.0

Status = Literal["queued", "running", "succeeded", "failed", "canceled", "expired"]

_WIDEST = 1000
_STYLES = {
    "queued": "dim",
    "running": "cyan",
    "succeeded": "green",
    "failed": "red",
    "canceled": "yellow",
    "expired": "red",
}

app = typer.Typer(no_args_is_help=True, help="Jobs: decisions that run, and those that ended lately.")

Id = Annotated[str, typer.Argument(metavar="ID", help="dec_..., as `canvass jobs list` shows it.")]
Url = Annotated[str, typer.Option(envvar="CANVASS_URL", help="Base URL of a Canvass API.")]
Key = Annotated[str | None, typer.Option(envvar="CANVASS_KEY", help="API key, where the server wants one.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the JSON as it came.")]


@app.command("list")
def list_jobs(
    url: Url = DEFAULT_URL,
    key: Key = None,
    status: Annotated[Status | None, typer.Option(help="Only jobs of this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most jobs to list.")] = 20,
    json: AsJson = False,
) -> None:
    """List the jobs, newest first."""
    jobs = _jobs(url, key, status, limit)
    if json:
        return print_json(jobs)
    table = Table("id", "status", "stage", "reads", "created", "took", "metadata", box=None)
    for job in jobs:
        table.add_row(*_row(job))
    # As wide as it needs to be: an id that was cut could not be given to the other commands.
    width = max(80, Console(width=_WIDEST).measure(table).maximum)
    return Console(width=width, highlight=False).print(table)


@app.command()
def get(
    id: Id,
    url: Url = DEFAULT_URL,
    key: Key = None,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for its end.")] = 0,
    json: AsJson = False,
) -> None:
    """Show a job as it stands, and its answers once it has them."""
    job = _job(url, id, key, wait)
    if json:
        return print_json(job)
    return console().print(job_view(job))


@app.command()
def watch(id: Id, url: Url = DEFAULT_URL, key: Key = None, json: AsJson = False) -> None:
    """Follow a job to its end, and show its answers. Fails when it has none."""
    job = _watched(url, id, key)
    if json:
        print_json(job)
    elif job["status"] == "succeeded":
        console().print(decision_view(job["result"]))
    if job["status"] != "succeeded":
        raise JobEnded(_ending(job))


@app.command()
def cancel(
    id: Id,
    url: Url = DEFAULT_URL,
    key: Key = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Ask for it alone.")] = False,
) -> None:
    """Have a job canceled, and wait until its reads have stopped. Fails when it ended otherwise."""
    job = object_of(post(url, f"{_path(id)}/cancel", None, bearer(key)), ACCEPTED)
    while not no_wait and not job["done"]:
        job = _job(url, id, key, LONG_POLL_S)
    if job["done"] and job["status"] != "canceled":
        raise JobEnded(_ending(job))
    typer.echo(f"{id} is {job['status'] if job['done'] else 'about to be canceled'}.")


def submitted(url: str, body: Mapping[str, Any], key: str | None) -> str:
    """The id of a decision that is not waited for. Raises `ServerUnreachable` or `ServerRefused`."""
    headers = {**bearer(key), "prefer": "respond-async"}
    return str(object_of(post(url, "/v1/systemone", body, headers), ACCEPTED)["id"])


def job_view(job: Mapping[str, Any]) -> RenderableType:
    """A job as a table of what is known of it, with its answers below. Pure: a job in."""
    progress = job["progress"]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    grid.add_row("job", cell(job["id"]))
    grid.add_row("status", Text(job["status"], style=_STYLES.get(job["status"], "")))
    if job.get("queue_position"):
        grid.add_row("place in the queue", str(job["queue_position"]))
    grid.add_row("stage", f"{progress['stage']} of {progress['stages']}")
    grid.add_row("reads", f"{progress['reads_done']} of {progress['reads_planned']}")
    for name in ("created", "started", "finished", "cancel_requested", "deadline", "expires"):
        if job.get(f"{name}_at"):
            grid.add_row(name.replace("_", " "), cell(job[f"{name}_at"]))
    if job.get("metadata") is not None:
        grid.add_row("metadata", cell(orjson.dumps(job["metadata"]).decode()))
    if error := job.get("error"):
        grid.add_row("error", cell(f"{error['code']}: {error['message']}"))
    shown = Table.grid()
    shown.add_row(grid)
    if isinstance(job.get("result"), dict):
        shown.add_row(decision_view(job["result"]))
    return shown


def _watched(url: str, id: str, key: str | None) -> dict[str, Any]:
    """A job once it is done; its progress is drawn meanwhile, on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("queued", total=None)
        for event in follow(url, f"{_path(id)}/events", key):
            if event.name == DONE:
                return event.data
            bar.update(task, description=_step(event.name, event.data))
            if "reads_planned" in event.data:
                bar.update(task, completed=event.data["reads_done"], total=event.data["reads_planned"])
    raise AssertionError("a stream of events is followed up to `done`")


def _step(name: str, data: Mapping[str, Any]) -> str:
    return f"stage {data['stage']} of {data['stages']}" if "stage" in data else name


def _jobs(url: str, key: str | None, status: str | None, most: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = {"status": status} if status else {}
    while len(found) < most:
        query["limit"] = min(PAGE, most - len(found))
        page = object_of(send("GET", url, f"/v1/jobs?{urlencode(query)}", bearer(key)), OK)
        found += page["data"]
        if page["next"] is None:
            break
        query["after"] = page["next"]
    return found


def _job(url: str, id: str, key: str | None, wait: float) -> dict[str, Any]:
    """A job once it is done, or as it stands when the wait, in seconds, is over."""
    until = time.monotonic() + wait
    while True:
        left = min(LONG_POLL_S, max(0.0, until - time.monotonic()))
        job = object_of(send("GET", url, f"{_path(id)}?wait={left:.3f}", bearer(key)), OK)
        if job["done"] or time.monotonic() >= until:
            return job


def _row(job: Mapping[str, Any]) -> list[Text]:
    progress = job["progress"]
    metadata = job.get("metadata")
    return [
        cell(job["id"]),
        Text(job["status"], style=_STYLES.get(job["status"], "")),
        cell(f"{progress['stage']}/{progress['stages']}"),
        cell(f"{progress['reads_done']}/{progress['reads_planned']}"),
        cell(f"{job['created_at'][:10]} {job['created_at'][11:19]}"),
        cell(_took(job)),
        cell("" if metadata is None else orjson.dumps(metadata).decode()[:60]),
    ]


def _took(job: Mapping[str, Any]) -> str:
    """Seconds between the start of a job and its end."""
    if not (job.get("started_at") and job.get("finished_at")):
        return ""
    started, finished = (_seconds(job[f"{name}_at"]) for name in ("started", "finished"))
    return f"{finished - started:.2f} s"


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _ending(job: Mapping[str, Any]) -> str:
    error = job.get("error")
    return f"{job['id']} is {job['status']}{': ' + error['message'] if error else ''}. {JobEnded.__doc__}"


def _path(id: str) -> str:
    return f"/v1/jobs/{quote(id, safe='')}"


def print_json(value: Any) -> None:
    """JSON on standard output, to be read by people too."""
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def console() -> Console:
    """A console on standard output, wide enough for tables where that is no terminal."""
    return Console(markup=False, emoji=False, highlight=False, width=None if sys.stdout.isatty() else 118)
