"""Span answers as rich renderables: a row of the table of answers, and the text with the pieces marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from client.cells import cell, clip, count, number, percent, printable_lines
from client.marks import Gap, Mark, Stretch, faults, items_of, marks_of, source_text, stretches

WHOLE = 1200
"""Code points up to which a text is shown whole."""

ITEMS_SHOWN = 16
_TEXT_COLUMNS = 48
_COLORS = ("yellow", "cyan", "green", "magenta", "blue", "red")


def span_said(answer: Mapping[str, Any]) -> Text:
    """What a span question was answered with, in a few words."""
    items = items_of(answer)
    if not items:
        return Text("not found", style="bold yellow")
    if answer.get("type") == "spans":
        return Text(count(len(items), "piece"), style="bold green")
    return cell(clip(str(items[0].get("text")), _TEXT_COLUMNS), "bold green")


def span_detail(answer: Mapping[str, Any]) -> RenderableType:
    """Where the pieces stand and how sure they are, what it took, and what settled a disagreement."""
    grid = Table.grid(padding=(0, 1))
    items = items_of(answer)
    for item in items[:ITEMS_SHOWN]:
        place = f"{item.get('start')} to {item.get('end')}"
        sure = f"coverage {number(item.get('coverage'))}"
        if answer.get("type") == "spans":
            sure = f"confidence {number(item.get('confidence'))}, {sure}"
            grid.add_row(cell(clip(str(item.get("text")), _TEXT_COLUMNS)), cell(place), Text(sure, "dim"))
        else:
            grid.add_row(cell(place), Text(sure, "dim"))
    lines: list[RenderableType] = [grid] if items else []
    if len(items) > ITEMS_SHOWN:
        lines.append(Text(f"and {count(len(items) - ITEMS_SHOWN, 'more piece')}", style="dim"))
    lines.append(Text(effort(answer), style="dim"))
    for text, p in (answer.get("resolved") or {}).items():
        lines.append(Text.assemble("chosen between: ", cell(clip(text, _TEXT_COLUMNS)), f" {percent(p)}"))
    return Group(*lines)


def effort(answer: Mapping[str, Any]) -> str:
    """The reads and windows that a span answer took."""
    windows = int(answer.get("windows", 1))
    reads = count(int(answer.get("reads", 0)), "read")
    return reads if windows == 1 else f"{reads}, {count(windows, 'window')}"


def text_view(state: Any, answers: Mapping[str, Any], whole: int = WHOLE) -> RenderableType:
    """The text that was asked about, each found piece in its question's colour with its tag behind it."""
    source = source_text(state)
    body, left_out = Text(), 0
    for part in stretches(source, marks_of(source, answers), whole):
        if isinstance(part, Gap):
            left_out += part.size
            body.append(f" … ({count(part.size, 'character')} left out) … ", style="dim italic")
        else:
            body.append_text(_stretch(part))
    size = count(len(source), "character")
    title = f"Text: {size}" if not left_out else f"Text: {size}, {left_out:,} of them left out"
    wrong = [cell(f"Wrong offsets: {fault}", "bold red") for fault in faults(source, answers)]
    return Group(Text(title, style="bold"), body, *wrong, Text())


def _stretch(part: Stretch) -> Text:
    style = ""
    if part.marks:
        style = f"black on {_color(part.marks[0])}{' underline' if len(part.marks) > 1 else ''}"
    shown = Text.assemble(*(("⟦", _color(mark)) for mark in part.opens))
    shown.append(printable_lines(part.text), style=style)
    for mark in part.closes:
        shown.append("⟧", style=_color(mark))
        shown.append_text(cell(f"({mark.tag})", f"bold {_color(mark)}"))
    return shown


def _color(mark: Mark) -> str:
    return _COLORS[mark.color % len(_COLORS)]
