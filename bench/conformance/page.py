"""docs/compatibility.md: every row, and the reasons for what is not kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.conformance.rows import WORDS, Row, Section

_HEAD = """\
# Compatibility

`make conformance` writes this page. It starts a stack on the script engine, asks it everything below, and
fails when a line is not kept without a reason given here. What each door takes and gives is in
[api.md](api.md).
"""


def page(sections: Sequence[Section]) -> str:
    """The page, as Markdown."""
    return "\n".join([_HEAD, *(line for section in sections for line in _section(section))])


def _section(section: Section) -> Iterable[str]:
    levels = any(row.level for row in section.rows)
    yield f"## {section.title}\n\n{section.intro}\n"
    yield "| | what | kept |\n| --- | --- | --- |" if levels else "| what | kept |\n| --- | --- |"
    for row in section.rows:
        cells = [row.level, f"`{row.name}`: {row.title}"] if levels else [row.title]
        yield f"| {' | '.join(map(_cell, cells))} | {WORDS[row.outcome]} |"
    yield ""
    noted = [row for row in section.rows if row.note]
    if noted:
        yield "Not kept, and why:\n"
        yield from map(_note, noted)
        yield ""


def _note(row: Row) -> str:
    return f"* `{row.name}`: {row.note}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
