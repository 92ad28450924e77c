"""`canvass engines`: the engines behind a server, seen and changed over HTTP."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import urlencode

import typer
from rich.console import Console
from rich.table import Table

from client.cells import cell
from client.http import DEFAULT_URL, OK, Response, bearer, object_of, post, send
from client.keys import AdminKey, Url

ACCEPTED = 202
_PATH = "/v1/engines"
_WIDEST = 1000

app = typer.Typer(no_args_is_help=True, help="The engines behind a server.")

EngineUrl = Annotated[str, typer.Argument(metavar="ENGINE", help="The engine's own URL.")]
Key = Annotated[
    str | None, typer.Option(envvar="CANVASS_KEY", help="An API key, where the server wants one.")
]


@app.command("list")
def list_engines(
    url: Url = DEFAULT_URL,
    key: Key = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's answer as it is.")] = False,
) -> None:
    """List the engines: which take reads, what they can do, and why the others do not."""
    answer = object_of(send("GET", url, _PATH, bearer(key)), OK)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    table = Table("engine", "state", "model", "can", "in flight", "reads", "errors", "reason", box=None)
    for engine in answer.get("data", []):
        table.add_row(*map(cell, _row(engine)))
    width = Console(width=_WIDEST).measure(table).maximum
    Console(width=width, highlight=False).print(table)


@app.command()
def add(
    engine: EngineUrl,
    admin_key: AdminKey,
    url: Url = DEFAULT_URL,
    can: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE that canaries shall not find out, as generate=false; repeatable."),
    ] = None,
) -> None:
    """Take an engine into the pool, or back after it was drained: it takes reads once a canary came back."""
    capabilities = dict(map(_capability, can or ()))
    _say(post(url, _PATH, {"url": engine, "capabilities": capabilities}, bearer(admin_key)))
    typer.echo(f"{engine} is taken in; `canvass engines list` shows when it is.")


@app.command()
def drain(engine: EngineUrl, admin_key: AdminKey, url: Url = DEFAULT_URL) -> None:
    """Give an engine no new reads; those that it has are waited for."""
    _say(send("POST", url, f"{_PATH}/drain?{urlencode({'url': engine})}", bearer(admin_key)))
    typer.echo(f"{engine} gets no new reads.")


@app.command()
def remove(engine: EngineUrl, admin_key: AdminKey, url: Url = DEFAULT_URL) -> None:
    """Take an engine out of the pool, once its last read is back."""
    _say(send("DELETE", url, f"{_PATH}?{urlencode({'url': engine})}", bearer(admin_key)))
    typer.echo(f"{engine} is taken out.")


def _say(response: Response) -> None:
    object_of(response, ACCEPTED)


def _row(engine: dict[str, Any]) -> list[str]:
    can = engine.get("capabilities") or {}
    told = [name if value is True else f"{name}={value}" for name, value in can.items() if value]
    names = ("url", "state", "model")
    counts = ("in_flight", "reads", "errors")
    return [
        *(str(engine.get(name) or "-") for name in names),
        ", ".join(told) if engine.get("state") != "out" else "-",
        *(str(engine.get(name, "-")) for name in counts),
        str(engine.get("reason") or "-"),
    ]


def _capability(text: str) -> tuple[str, bool | int]:
    name, _, value = text.partition("=")
    if value in ("true", "false"):
        return name, value == "true"
    if not value.isdigit():
        raise typer.BadParameter(f"{text!r} is no NAME=true, NAME=false or NAME=NUMBER", param_hint="--can")
    return name, int(value)
