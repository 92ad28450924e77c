"""A batch's results as a table: a row per state, a few columns per question, or those of a schema's value."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

Cells = dict[str, Any]


def _noul(answer: Mapping[str, Any]) -> Cells:
    return {"": answer["noul"]}


def _choice(answer: Mapping[str, Any]) -> Cells:
    return {"": answer["choice"], "confidence": answer["confidence"]}


def _score(answer: Mapping[str, Any]) -> Cells:
    return {"": answer["score"], "confidence": answer["confidence"]}


def _span(answer: Mapping[str, Any]) -> Cells:
    return {"": answer["text"], **{name: answer[name] for name in _PLACE}}


def _spans(answer: Mapping[str, Any]) -> Cells:
    return {"": orjson.dumps([item["text"] for item in answer["items"]]).decode()}


def _object(answer: Mapping[str, Any]) -> Cells:
    return {"": orjson.dumps(answer["value"]).decode(), "valid": answer["valid"]}


def _other(answer: Mapping[str, Any]) -> Cells:
    return {"": orjson.dumps(answer).decode()}


_PLACE = ("start", "end", "confidence")

_COLUMNS: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Cells]]] = {
    "noul": (("",), _noul),
    "choice": (("", "confidence"), _choice),
    "score": (("", "confidence"), _score),
    "span": (("", *_PLACE), _span),
    "spans": (("",), _spans),
    "object": (("", "valid"), _object),
}
"""Per type: its columns after the question's id, and how an answer fills them. `spans`
are a cell with a JSON list of their texts, and any other type is one of JSON."""

_OTHER = (("",), _other)

_VALUE = ("value", "valid")
"""The columns of a batch that asks for values by a schema; the value is JSON."""

_FIRST = ("index", "custom_id", "status", "error")


def write_table(results: Path, out: Path, questions: Mapping[str, Any] | None) -> None:
    """Write a file of result lines as CSV; without questions they are values of a schema. Raises OSError."""
    with results.open("rb") as lines, out.open("w", encoding="utf-8", newline="") as file:
        columns = _VALUE if questions is None else _columns(questions)
        table = csv.DictWriter(file, [*_FIRST, *columns], restval="", extrasaction="ignore")
        table.writeheader()
        for line in lines:
            table.writerow(row_of(orjson.loads(line)))


def row_of(line: Mapping[str, Any]) -> Cells:
    """The cells of one line by column. A question that was not asked leaves its cells empty."""
    error = line.get("error")
    row: Cells = {
        "index": line["index"],
        "custom_id": line["custom_id"],
        "status": line["status"],
        "error": f"{error['code']}: {error['message']}" if error else None,
    }
    result = line.get("result") or {}
    if "value" in result:
        return row | {"value": orjson.dumps(result["value"]).decode(), "valid": result["valid"]}
    for id, answer in (result.get("answers") or {}).items():
        if answer is not None:
            row |= {_named(id, column): value for column, value in _kind(answer)[1](answer).items()}
    return row


def _columns(questions: Mapping[str, Any]) -> list[str]:
    return [_named(id, column) for id, question in questions.items() for column in _kind(question)[0]]


def _kind(question: Any) -> tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Cells]]:
    type = question.get("type") if isinstance(question, Mapping) else None
    return _COLUMNS.get(str(type), _OTHER)


def _named(id: str, column: str) -> str:
    return f"{id}.{column}" if column else id
