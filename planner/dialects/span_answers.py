"""Span answers as every door writes them: text with its offsets in the source."""

from __future__ import annotations

from typing import Any

from planner.answers import SpanReading
from planner.decision import Decision, Question
from planner.reads import Item

DECIMALS = 6


def span_answer(decision: Decision, question: Question, reading: SpanReading) -> dict[str, Any]:
    """The answer of a `span` or `spans` question.

    Offsets count Unicode code points of the source text; with diagnostics UTF-16 code units as well,
    which is how JavaScript and Java index strings.
    """
    items = [_item(decision, item) for item in reading.items]
    if question.type == "span":
        found: dict[str, Any] = items[0] if items else dict.fromkeys(_fields(decision))
        body = {"type": "span", "found": bool(items), **found, "reads": reading.reads}
    else:
        body = {"type": "spans", "found": bool(items), "items": items, "reads": reading.reads}
    if reading.windows > 1:
        body["windows"] = reading.windows
    if reading.resolved is not None:
        body["resolved"] = {text: round(p, DECIMALS) for text, p in reading.resolved.items()}
    return body


def _fields(decision: Decision) -> list[str]:
    """The names of an item's fields, in order."""
    return list(_item(decision, Item(0, 0, 0.0, 0.0)))


def _item(decision: Decision, item: Item) -> dict[str, Any]:
    source = decision.source
    fields: dict[str, Any] = {"text": source[item.start : item.end], "start": item.start, "end": item.end}
    if decision.options.diagnostics:
        fields |= {
            "start_utf16": _utf16_length(source[: item.start]),
            "end_utf16": _utf16_length(source[: item.end]),
        }
    return fields | {
        "confidence": round(item.confidence, DECIMALS),
        "coverage": round(item.coverage, DECIMALS),
    }


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
