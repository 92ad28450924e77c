"""How far a `map` is, on a terminal's standard error."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[bool], None]
"""To be called with each result: whether it is a value."""


@contextmanager
def shown(wanted: bool, total: int | None) -> Iterator[Advance]:
    """A bar while the block runs, where it is wanted, there is a terminal, and rich is installed."""
    if not (wanted and sys.stderr.isatty() and importlib.util.find_spec("rich")):
        yield lambda good: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[failures]}", style="red"),
    )
    # What the caller prints goes above the bar; where it does not go to a terminal, it is left alone.
    console = Console(stderr=True)
    with Progress(*columns, console=console, redirect_stdout=sys.stdout.isatty()) as bar:
        task, failed = bar.add_task("", total=total, failures=""), 0

        def advance(good: bool) -> None:
            nonlocal failed
            failed += not good
            bar.update(task, advance=1, failures=f"{failed} failed" if failed else "")

        yield advance
