"""The `canvass` command."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from client.ask import completed, parse_answer, read_decision
from client.demo import run_demo
from client.errors import ClientError, ServerRefused
from client.http import DEFAULT_URL, OK, decide, is_url_list
from client.stack import Stack
from client.up import default_data, passed_settings, stay_up
from client.view import decision_view, printable

# Columns of output that goes to no terminal: wide enough for the table of reads.
_COLUMNS = 118

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Typed questions about a state, answered with probabilities.",
)


def _console() -> Console:
    fixed = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _COLUMNS
    return Console(width=fixed, markup=False, emoji=False, highlight=False)


def _engines(value: str) -> str:
    """What --engines may say, with the path of a script made absolute."""
    kind, _, rest = value.partition(":")
    if value == "llama" or (kind == "upstream" and is_url_list(rest)):
        return value
    if kind == "script":
        if not Path(rest).is_file():
            raise typer.BadParameter(f"{rest or 'the script'} is no file; say script:FILE")
        return f"script:{Path(rest).resolve()}"
    urls = [url.strip() for url in value.split(",") if url.strip()]
    if urls and all(is_url_list(url) for url in urls):
        return ",".join(urls)
    raise typer.BadParameter(f"{value!r} is neither URL,URL nor llama nor script:FILE")


@app.command()
def up(
    engines: Annotated[
        str,
        typer.Option(
            callback=_engines,
            envvar="CANVASS_ENGINES",
            help="URL,URL of running engines; or a stand-in: llama, script:FILE or upstream:URL.",
        ),
    ] = "llama",
    profile: Annotated[
        Literal["zero", "gb10", "h200"], typer.Option(help="How fast the stand-in pretends to be.")
    ] = "zero",
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, envvar="CANVASS_PORT", help="Port of the API; 0 takes a free one."),
    ] = 8011,
    host: Annotated[
        str, typer.Option(envvar="CANVASS_HOST", help="Address the API listens on.")
    ] = "127.0.0.1",
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    data: Annotated[
        Path | None, typer.Option(help="Folder of Redis's data and the logs; a per-user one by default.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the ready line alone.")] = False,
) -> None:
    """Run everything on this machine: Redis, engine, workers and API. Ctrl-C ends all of it.

    CANVASS_REDIS_URL names a Redis to use instead of one of its own; other CANVASS_ variables are passed
    on to API and workers.
    """
    console, stopping = _console(), threading.Event()
    stand_in = not is_url_list(engines)
    stack = Stack(
        engines=engines,
        profile=profile,
        workers=workers,
        host=host,
        port=port,
        redis_url=os.environ.get("CANVASS_REDIS_URL"),
        data=data or default_data(),
        env=passed_settings(os.environ, stand_in=stand_in),
        # An engine that loads a large model takes minutes; the wait says what it waits for.
        timeout_s=120.0 if stand_in else None,
        stopping=stopping,
        report=(lambda line: None) if quiet else (lambda line: console.print(line, soft_wrap=True)),
    )
    stay_up(stack, stopping, console, quiet=quiet)


@app.command()
def ask(
    file: Annotated[str, typer.Argument(metavar="FILE.json|-", help="A decision; - is standard input.")],
    url: Annotated[str, typer.Option(help="Base URL of a Canvass API.")] = DEFAULT_URL,
    json: Annotated[bool, typer.Option("--json", help="Print the response body as it came.")] = False,
) -> None:
    """Post a decision and show its answers, with the plan that ran."""
    content = decide(url, completed(read_decision(file), diagnostics=not json))
    if json:
        sys.stdout.buffer.write(content.rstrip(b"\n") + b"\n")
        return
    body = parse_answer(content)
    if body is None:
        raise ServerRefused(OK, f"{url} answered 200 with a body that is no decision. Is it Canvass?")
    _console().print(decision_view(body))


@app.command()
def demo() -> None:
    """Start a stack of its own, send it the example decisions, and end it."""
    run_demo(_console())


def main() -> None:
    """Run the command; a foreseen failure is a sentence on standard error and exit status 1."""
    try:
        app()
    except ClientError as error:
        message = "\n".join(printable(line) for line in str(error).splitlines())
        Console(stderr=True, highlight=False).print(Text(message, style="red"), soft_wrap=True)
        sys.exit(1)
