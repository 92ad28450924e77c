"""`canvass battery`: which server, which parts, and how the result is told."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from client.battery.material import PARTS, cases
from client.battery.report import failed, report_json, report_view
from client.battery.run import PartResult, requests_planned, run_battery
from client.battery.script import script_rules
from client.battery.server import Server
from client.errors import BatteryFailed, CannotWrite
from client.stack import Stack
from client.up import PATIENT, stop_signals, watched


def write_script(file: Path, parts: Sequence[str]) -> int:
    """Write a script of the stand-in engine that answers these parts right; the number of its rules.

    Raises `CannotWrite`.
    """
    script = script_rules([case for part in parts for case in cases(part)])
    try:
        file.write_bytes(orjson.dumps(script, option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise CannotWrite(f"Cannot write {file}: {error.strerror}.") from error
    return len(script["rules"])


def check_server(
    server: Server, parts: Sequence[str], console: Console, *, as_json: bool, strict: bool
) -> None:
    """Ask a server everything and print what came of it. Raises `BatteryFailed`."""
    _tell(server.url, _with_progress(server, parts), console, as_json=as_json, strict=strict)


def check_embedded(
    parts: Sequence[str], model: str, console: Console, *, as_json: bool, strict: bool
) -> None:
    """The same on a stack of its own, on the stand-in's small model. Nothing is left."""
    stopping = threading.Event()
    stack = Stack(env=PATIENT, stopping=stopping)
    with stop_signals(stopping, stack), stack:
        results = watched(stack, lambda: _with_progress(Server(stack.url, model), parts))
    _tell("embedded", results, console, as_json=as_json, strict=strict)


def parts_named(names: str) -> tuple[str, ...]:
    """The parts of a comma-separated list, in the battery's order. Raises ValueError naming a wrong one."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in PARTS]
    if unknown or not wanted:
        raise ValueError(f"{', '.join(unknown) or 'nothing'} is no part; there are {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in wanted)


def _with_progress(server: Server, parts: Sequence[str]) -> list[PartResult]:
    """Run, with a bar on standard error where that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("starting", total=requests_planned(parts))
        begun = 0

        def step(name: str) -> None:
            nonlocal begun
            progress.update(task, description=name, completed=begun)
            begun += 1

        return run_battery(server, parts, step)


def _tell(url: str, results: Sequence[PartResult], console: Console, *, as_json: bool, strict: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(report_json(url, results), option=orjson.OPT_APPEND_NEWLINE))
        sys.stdout.buffer.flush()
    else:
        console.print(Text(f"Battery against {url}", style="bold"))
        console.print(report_view(results))
    reason = failed(results, strict=strict)
    if reason is not None:
        raise BatteryFailed(reason)
