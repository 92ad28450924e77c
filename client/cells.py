"""Small pieces of output, alike in every table: text that is safe to print, numbers, counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from rich.text import Text

SHORT = 160
# No-break space and the joiners: not printable by Unicode's word, yet part of how a text looks.
_HARMLESS = frozenset("\u00a0\u200c\u200d")


def printable(text: str) -> str:
    """The text with control characters escaped: what a server sends must not steer the terminal."""
    return "".join(
        c if c.isprintable() or c in _HARMLESS else c.encode("unicode_escape").decode() for c in text
    )


def printable_lines(text: str) -> str:
    """`printable`, with line ends and tabs as they are."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(printable(cell) for cell in line.split("\t")) for line in lines)


def cell(text: str, style: str = "") -> Text:
    """A table's cell. Text, because a string in a table would be read as rich's markup."""
    return Text(printable(text), style=style)


def ids(names: Iterable[Any]) -> Text:
    """Question ids on one line, the end cut off where there are many."""
    return cell(clip(", ".join(str(name) for name in names), SHORT))


def number(value: Any) -> str:
    """A number from 0 to 1, or nothing."""
    return "" if value is None else f"{float(value):.3f}"


def percent(probability: float) -> str:
    """A probability as people read it."""
    return "< 0.1 %" if 0 < probability < 0.001 else f"{100 * probability:.1f} %"


def count(many: int, noun: str) -> str:
    """A number with its noun."""
    return f"{many:,} {noun}" if many == 1 else f"{many:,} {noun}s"


def as_text(value: Any) -> str:
    """A JSON value as text: a string as itself."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def clip(text: str, columns: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= columns else text[: columns - 1] + "…"


def short_state(state: Any) -> str:
    """The beginning of a state on one line."""
    return clip(" ".join(as_text(state).split()), SHORT)
