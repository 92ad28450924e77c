"""How the questions about a schema's fields are worded. Ids never reach the model, so each says all it
needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from planner.schemas.keywords import same_as

_SEAM = re.compile(r"[_\-.\s]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def label_of(schema: Any, name: str) -> str:
    """What a field is called: its title where that says more than its name, else its name in plain words."""
    words = (word for word in _SEAM.split(name) if word)
    plain = " ".join(word if len(word) > 1 and word.isupper() else word.lower() for word in words)
    title = told(schema, "title")
    return title if title and title.lower() != plain.lower() else plain or json.dumps(name)


def told(schema: Any, keyword: str) -> str:
    """The text of an annotation, on one line; empty where there is none."""
    value = schema.get(keyword) if isinstance(schema, dict) else None
    return " ".join(value.split()) if isinstance(value, str) else ""


def within(context: str, text: str) -> str:
    """A text about a part, after what it is a part of."""
    return f"{context.rstrip('.:')}: {text}" if context else text


def sentence(text: str) -> str:
    """A text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def item_of(number: int, label: str) -> str:
    """What the item of that number, from one, is called."""
    return f"item {number} of {label}"


def names_of(values: Sequence[Any]) -> list[str]:
    """Distinct JSON scalars as option names: strings as themselves, others as JSON.

    A string that would read like another value, or like nothing, is written as JSON too.
    """
    plain = [one if isinstance(one, str) else json.dumps(one) for one in values]
    taken = {json.dumps(one) for one in values if not isinstance(one, str)} | {""}
    names: list[str] = []
    for value, name in zip(values, plain, strict=True):
        if isinstance(value, str) and (name in taken or name.isspace()):
            name = json.dumps(value, ensure_ascii=False)
        while name in names:
            name += "'"
        names.append(name)
    return names


def distinct(values: Sequence[tuple[Any, str]]) -> list[tuple[Any, str]]:
    """Values with what is told of them, each value once."""
    found: dict[Any, tuple[Any, str]] = {}
    for value, text in values:
        found.setdefault(same_as(value), (value, text))
    return list(found.values())
