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

from client.ask import DEFAULT_MODEL, completed, parse_answer, read_decision
from client.batch import batch
from client.battery.command import check_embedded, check_server, parts_named, write_script
from client.battery.material import PARTS
from client.battery.server import Server
from client.cells import printable
from client.demo import run_demo
from client.engines import app as engines
from client.errors import ClientError, ServerRefused
from client.explain import explain
from client.http import DEFAULT_URL, OK, decide, is_url_list
from client.jobs import app as jobs
from client.jobs import submitted
from client.keys import app as keys
from client.page import write_page
from client.stack import Stack
from client.up import default_data, passed_settings, stay_up, webhook_settings
from client.view import decision_view
from client.webhook import app as webhook

# Columns of output that goes to no terminal: wide enough for the table of reads.
_COLUMNS = 118

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Typed questions about a state, answered with probabilities.",
)
app.command()(batch)
app.command()(explain)
app.add_typer(engines, name="engines")
app.add_typer(jobs, name="jobs")
app.add_typer(keys, name="keys")
app.add_typer(webhook, name="webhook")


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
    workers: Annotated[int, typer.Option(min=1, help="Worker processes, beside one for batches.")] = 1,
    data: Annotated[
        Path | None, typer.Option(help="Folder of Redis's data and the logs; a per-user one by default.")
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(
            envvar="CANVASS_PAGES",
            metavar="DIR",
            exists=True,
            file_okay=False,
            resolve_path=True,
            help="Serve the web pages of a folder: /name is its name.html.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the ready line alone.")] = False,
) -> None:
    """Run everything on this machine: Redis, engine, workers and API. Ctrl-C ends all of it.

    CANVASS_REDIS_URL names a Redis to use instead of one of its own; other CANVASS_ variables are passed
    on to API and workers.
    """
    console, stopping = _console(), threading.Event()
    stand_in, folder = not is_url_list(engines), data or default_data()
    env = {**webhook_settings(folder, host), **passed_settings(os.environ, stand_in=stand_in)}
    if pages is not None:
        env["CANVASS_PAGES"] = str(pages)
    stack = Stack(
        engines=engines,
        profile=profile,
        workers=workers,
        batch_workers=1,
        host=host,
        port=port,
        redis_url=os.environ.get("CANVASS_REDIS_URL"),
        data=folder,
        env=env,
        # An engine that loads a large model takes minutes; the wait says what it waits for.
        timeout_s=120.0 if stand_in else None,
        stopping=stopping,
        report=(lambda line: None) if quiet else (lambda line: console.print(line, soft_wrap=True)),
    )
    stay_up(stack, stopping, console, secret=env["CANVASS_WEBHOOK_SECRET"], quiet=quiet)


@app.command()
def ask(
    file: Annotated[str, typer.Argument(metavar="FILE.json|-", help="A decision; - is standard input.")],
    url: Annotated[str, typer.Option(envvar="CANVASS_URL", help="Base URL of a Canvass API.")] = DEFAULT_URL,
    key: Annotated[
        str | None, typer.Option(envvar="CANVASS_KEY", help="API key, where the server wants one.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the response body as it came.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the answers as a web page, too.")
    ] = None,
    respond_async: Annotated[
        bool, typer.Option("--async", help="Wait for nothing: print the job's id for `canvass jobs`.")
    ] = False,
) -> None:
    """Post a decision and show its answers, those from the text marked in it, and the plan that ran."""
    asked = completed(read_decision(file), diagnostics=not json)
    if respond_async:
        typer.echo(submitted(url, asked, key))
        return
    content = decide(url, asked, key)
    body = parse_answer(content)
    if html is not None and body is not None:
        write_page(html, body, asked.get("state"))
    if json:
        sys.stdout.buffer.write(content.rstrip(b"\n") + b"\n")
        return
    if body is None:
        raise ServerRefused(OK, f"{url} answered 200 with a body that is no decision. Is it Canvass?")
    _console().print(decision_view(body, asked.get("state")))


def _kinds(value: str) -> str:
    try:
        return ",".join(parts_named(value))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@app.command()
def battery(
    url: Annotated[str | None, typer.Argument(metavar="[URL]", help="Base URL of a System One API.")] = None,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Start a stack of its own on the small model, and end it.")
    ] = False,
    kinds: Annotated[
        str, typer.Option(callback=_kinds, help="Which parts to ask, comma-separated.")
    ] = ",".join(PARTS),
    model: Annotated[str, typer.Option(help="Model to name in the requests.")] = DEFAULT_MODEL,
    key: Annotated[
        str | None, typer.Option(envvar="CANVASS_KEY", help="API key, where the server wants one.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail when an answer is not the right one.")
    ] = False,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Ask nothing: write a script of the stand-in engine with every right answer."
        ),
    ] = None,
) -> None:
    """Ask a running server questions whose answers are known, and count what it gets right.

    Fails when an offset is wrong or a request fails; wrong answers are reported.
    """
    parts = parts_named(kinds)
    if embedded and url is not None:
        raise typer.BadParameter("--embedded asks a server of its own, so it takes no URL")
    if script is not None:
        rules = write_script(script, parts)
        _console().print(
            f"Wrote {rules} rules to {script}. Serve them with `canvass up --engines script:{script}`.",
            soft_wrap=True,
        )
    elif embedded:
        check_embedded(parts, model, _console(), as_json=json, strict=strict)
    else:
        check_server(Server(url or DEFAULT_URL, model, key), parts, _console(), as_json=json, strict=strict)


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
