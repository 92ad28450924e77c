"""The plan that ran as rich renderables: counts, stages, label reads one by one, the others by question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from client.cells import cell, count, ids

READS_SHOWN = 12
SPANS_SHOWN = 24
RUNS_SHOWN = 8
_READ_COLUMNS = ["wave", "stage", "questions", "draw", "seed", "engine", "ms", "prompt", "cached", "attempts"]

_BY_WINDOW = ("span", "list", "choose")

Read = Mapping[str, Any]


def plan_view(diagnostics: Mapping[str, Any]) -> RenderableType:
    """One line of counts, the stages when there are several, a row per label read, one per other question."""
    lines: list[RenderableType] = [Text(plan_summary(diagnostics), style="bold")]
    stages = diagnostics.get("stages") or []
    beside = [*(diagnostics.get("spans") or []), *(diagnostics.get("objects") or [])]
    if len(stages) > 1:
        lines += [Text.assemble(f"  stage {number}: ", ids(names)) for number, names in enumerate(stages)]
    if beside:
        lines.append(Text.assemble("  beside the stages: ", ids(beside)))
    reads = diagnostics.get("reads") or []
    labels = [read for read in reads if _kind(read) == "label"]
    if labels:
        lines.append(_reads_table(labels[:READS_SHOWN]))
    if len(labels) > READS_SHOWN:
        lines.append(Text(f"  and {len(labels) - READS_SHOWN} more reads", style="dim"))
    others = [read for read in reads if _kind(read) != "label"]
    if others:
        lines.append(_others_table(others))
    return Group(*lines)


def plan_summary(diagnostics: Mapping[str, Any]) -> str:
    """Stages, waves, reads, draws, engines and milliseconds of a decision, in one line."""
    reads = diagnostics.get("reads") or []
    draws = [int(one.get("draws", 1)) for one in (diagnostics.get("questions") or {}).values()]
    least, most = min(draws, default=0), max(draws, default=0)
    engines = dict.fromkeys(read.get("engine", "") for read in reads)
    timing = diagnostics.get("timing") or {}
    # A decision of several shards waited for several, so it tells no time in the queue.
    queued = timing.get("queued_ms")
    stages = diagnostics.get("stages") or []
    counts = [
        # Stages are those of label questions.
        *([count(len(stages), "stage")] if stages else []),
        count(int(diagnostics.get("waves", 0)), "wave"),
        count(len(reads), "read") + _span_counts(reads),
        *([count(most, "draw") if least == most else f"{least} to {most} draws"] if draws else []),
        count(len(engines), "engine"),
        f"{timing.get('total_ms', 0.0):.1f} ms" + ("" if queued is None else f" ({queued:.1f} ms queued)"),
    ]
    return "Plan: " + ", ".join(counts)


def window_lines(reads: Iterable[Read]) -> list[str]:
    """The reads of one span question by window, windows that were read alike on one line; then the choice.

    A window of a `span` is read in attempts, of a `spans` in draws; each with its seed.
    """
    by_window: dict[int, list[Read]] = {}
    chosen: list[str] = []
    for read in reads:
        if _kind(read) == "choose":
            chosen.append(f"choose between windows (seed {read.get('seed')}, wave {read.get('wave')})")
        else:
            by_window.setdefault(_window(read), []).append(read)
    alike: dict[str, list[int]] = {}
    for window in sorted(by_window):
        alike.setdefault(_tries(by_window[window]), []).append(window)
    return [f"{_windows(windows)}: {tries}" for tries, windows in alike.items()] + chosen


def _span_counts(reads: Sequence[Read]) -> str:
    """What the span reads among all were, where there are any."""
    spans = [read for read in reads if _kind(read) in ("span", "list")]
    if not spans:
        return ""
    retries = sum(int(read.get("attempt", 0)) > 0 for read in spans)
    chosen = sum(_kind(read) == "choose" for read in reads)
    said = [
        f"{len(spans):,} for spans",
        count(len({_window(read) for read in spans}), "window"),
        *([f"{retries:,} {'retry' if retries == 1 else 'retries'}"] if retries else []),
        *([f"{chosen:,} to choose"] if chosen else []),
    ]
    return f" ({', '.join(said)})"


def _others_table(reads: Sequence[Read]) -> RenderableType:
    """A row per question that is read by itself: spans by window, texts by attempt; and the time in all."""
    by_question: dict[str, list[Read]] = {}
    for read in reads:
        by_question.setdefault(str((read.get("questions") or [""])[0]), []).append(read)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for name in ("question", "kind", "windows, attempts and seeds"):
        table.add_column(name)
    for name in ("reads", "ms"):
        table.add_column(name, justify="right")
    for question, own in list(by_question.items())[:SPANS_SHOWN]:
        spent = sum(float(read.get("ms", 0)) for read in own)
        told = Text("\n".join(window_lines(own)) if _kind(own[0]) in _BY_WINDOW else _tries(own))
        table.add_row(cell(question), cell(_kind(own[0])), told, f"{len(own):,}", f"{spent:.1f}")
    if len(by_question) <= SPANS_SHOWN:
        return table
    left = count(len(by_question) - SPANS_SHOWN, "more question")
    return Group(table, Text(f"  and {left}", style="dim"))


def _tries(reads: Sequence[Read]) -> str:
    """The attempts or draws of one window, each with its seed."""
    name = "draw" if _kind(reads[0]) == "list" else "attempt"
    ordered = sorted(reads, key=lambda read: int(read.get(name, 0)))
    listed = ", ".join(f"{read.get(name, 0)} (seed {read.get('seed')})" for read in ordered)
    return f"{name if len(ordered) == 1 else f'{name}s'} {listed}"


def _windows(windows: Sequence[int]) -> str:
    """Windows in words, neighbours as a range."""
    runs: list[tuple[int, int]] = []
    for window in windows:
        if runs and window == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], window)
        else:
            runs.append((window, window))
    said = [str(first) if first == last else f"{first} to {last}" for first, last in runs[:RUNS_SHOWN]]
    more = [f"and {len(runs) - RUNS_SHOWN} more"] if len(runs) > RUNS_SHOWN else []
    return f"{'window' if len(windows) == 1 else 'windows'} {', '.join(said + more)}"


def _window(read: Read) -> int:
    """The window of a span read, which its id names: stage/group/window/draw/attempt."""
    parts = str(read.get("id", "")).split("/")
    return int(parts[2]) if len(parts) > 2 and parts[2].isdigit() else 0


def _kind(read: Read) -> str:
    return str(read.get("kind", "label"))


def _reads_table(reads: Sequence[Read]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for name in _READ_COLUMNS:
        table.add_column(name, justify="left" if name in ("questions", "engine") else "right")
    for read in reads:
        table.add_row(
            str(read.get("wave", "")),
            str(read.get("stage", "")),
            ids(read.get("questions") or []),
            str(read.get("draw", "")),
            str(read.get("seed", "")),
            cell(str(read.get("engine", ""))),
            f"{float(read.get('ms', 0)):.1f}",
            str(read.get("prompt_tokens", "")),
            str(read.get("cached_tokens", "")),
            str(read.get("attempts", "")),
        )
    return table
