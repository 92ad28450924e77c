"""What the battery found: a table for people, an object for programs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from client.battery.run import PartResult
from client.cells import cell, clip, count

MISSES_SHOWN = 40
_SAID_COLUMNS = 44
_RIGHT = ("hits", "share", "wrong offsets", "requests", "reads", "seconds")


def report_view(results: Sequence[PartResult]) -> RenderableType:
    """The table of parts with its sum, then failures and misses."""
    lines: list[RenderableType] = [_parts_table(results)]
    failures = [(result.part, failure) for result in results for failure in result.failures]
    lines += [cell(f"Failed: {part} {failure}", "red") for part, failure in failures]
    misses = [(result.part, miss) for result in results for miss in result.misses]
    if misses:
        lines.append(_misses_table(misses[:MISSES_SHOWN]))
    if len(misses) > MISSES_SHOWN:
        lines.append(Text(f"and {count(len(misses) - MISSES_SHOWN, 'more question')} missed", style="dim"))
    return Group(*lines)


def report_json(url: str, results: Sequence[PartResult]) -> dict[str, Any]:
    """The same as an object."""
    return {
        "url": url,
        **_sum(results),
        "parts": {
            result.part: {
                **_sum([result]),
                "by_type": {type: {"hits": hits, "asked": of} for type, hits, of in _by_type(result)},
                "windows": result.windows,
                "not_served": result.not_served,
                "failures": result.failures,
                "misses": [asdict(miss) for miss in result.misses],
            }
            for result in results
        },
    }


def failed(results: Sequence[PartResult], *, strict: bool) -> str | None:
    """Why the battery fails, None when it does not: misses are reported, unless strict."""
    found = _sum(results)
    counts = [
        (found["wrong_offsets"], "wrong offset"),
        (found["failures"], "failure"),
        (found["asked"] - found["hits"] if strict else 0, "wrong answer"),
    ]
    said = [count(number, noun) for number, noun in counts if number]
    return f"The battery failed: {', '.join(said)}." if said else None


def _sum(results: Sequence[PartResult]) -> dict[str, Any]:
    told = [result.reads for result in results if result.reads is not None]
    return {
        "hits": sum(result.hits for result in results),
        "asked": sum(len(result.outcomes) for result in results),
        "wrong_offsets": sum(result.wrong_offsets for result in results),
        "failures": sum(len(result.failures) for result in results),
        "requests": sum(result.requests for result in results),
        "reads": sum(told) if told else None,
        "seconds": round(sum(result.seconds for result in results), 3),
    }


def _by_type(result: PartResult) -> list[tuple[str, int, int]]:
    """Type, hits and number of each type of question in a part."""
    return [
        (type, sum(outcome.hit for outcome in own), len(own))
        for type in dict.fromkeys(outcome.type for outcome in result.outcomes)
        if (own := [outcome for outcome in result.outcomes if outcome.type == type])
    ]


def _parts_table(results: Sequence[PartResult]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=len(results) > 1)
    total = _row(_sum(results))
    table.add_column("part", style="bold", footer="all")
    for name, footer in zip(_RIGHT, total, strict=True):
        table.add_column(name, justify="right", footer=footer)
    table.add_column("remarks")
    for result in results:
        if result.not_served is not None and not result.outcomes:
            table.add_row(result.part, *[""] * len(_RIGHT), _not_served(result.not_served))
        else:
            table.add_row(result.part, *_row(_sum([result])), cell(_remarks(result)))
    return table


def _row(found: dict[str, Any]) -> list[Text]:
    """The cells of a row, as `_RIGHT` names them."""
    hits, asked, wrong = found["hits"], found["asked"], found["wrong_offsets"]
    return [
        Text(f"{hits} of {asked}"),
        Text(f"{100 * hits / asked:.0f} %" if asked else ""),
        Text(str(wrong), style="bold red" if wrong else "green"),
        Text(str(found["requests"])),
        Text("" if found["reads"] is None else f"{found['reads']:,}"),
        Text(f"{found['seconds']:.1f}"),
    ]


def _remarks(result: PartResult) -> str:
    """Hits by type where there are several, windows where there are several, failures."""
    types = _by_type(result)
    told = [f"{type} {hits}/{of}" for type, hits, of in types] if len(types) > 1 else []
    told += [count(result.windows, "window")] if result.windows > 1 else []
    return ", ".join(told + ([count(len(result.failures), "failure")] if result.failures else []))


def _not_served(reason: str) -> Text:
    return cell(f"not served ({clip(' '.join(reason.split()), 2 * _SAID_COLUMNS)})", "yellow")


def _misses_table(misses: Sequence[tuple[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for name in ("missed", "question", "type", "said", "expected"):
        table.add_column(name)
    for part, miss in misses:
        said, expected = (cell(clip(text, _SAID_COLUMNS)) for text in (miss.said, miss.expected))
        table.add_row(f"{part} {miss.case}", cell(miss.id), miss.type, said, expected)
    return table
