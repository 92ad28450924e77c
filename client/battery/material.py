"""The battery's material: cases of a state and questions, each with the answer that is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import orjson

from client.marks import source_text

PARTS = ("labels", "spans", "lists", "mixed", "chat", "long")
"""The parts of the battery, in the order in which they are asked."""

NEED_SPANS = frozenset({"spans", "lists", "mixed", "long"})
"""The parts that only a server of span questions can answer."""

_OURS = ("expected", "written")

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is sent, and the answer expected.

    `expected` is a bool for a noul, an option's name for a choice, a level's number for a score; the
    text of a span, the first such in the source, or None where there is none; the texts of a list, in
    order. `written` is what a model writes for a span where it is not the text itself.
    """

    id: str
    question: Mapping[str, Any]
    expected: Any
    written: str | None = None

    @property
    def type(self) -> str:
        """The question's type."""
        return str(self.question["type"])


@dataclass(frozen=True, slots=True)
class Case:
    """A state and the questions that one request asks about it."""

    name: str
    state: Any
    asked: tuple[Asked, ...]

    @property
    def source(self) -> str:
        """The text that offsets index."""
        return source_text(self.state)

    @property
    def questions(self) -> dict[str, Mapping[str, Any]]:
        """The questions by id, as System One takes them."""
        return {asked.id: asked.question for asked in self.asked}

    def places(self, asked: Asked) -> list[Place]:
        """Where the expected texts of a span question stand: each the first after the one before."""
        texts = asked.expected if asked.type == "spans" else [asked.expected]
        found: list[Place] = []
        for text in texts:
            if text is not None:
                start = self.source.index(text, found[-1][1] if found else 0)
                found.append((start, start + len(text)))
        return found


def cases(part: str) -> tuple[Case, ...]:
    """The cases of a part."""
    content: list[dict[str, Any]] = orjson.loads((files("client.battery") / f"{part}.json").read_bytes())
    return tuple(_case(value) for value in content)


def _case(value: Mapping[str, Any]) -> Case:
    return Case(
        name=value["name"],
        state=value["state"],
        asked=tuple(
            Asked(
                id=id,
                question={name: field for name, field in question.items() if name not in _OURS},
                expected=question["expected"],
                written=question.get("written"),
            )
            for id, question in value["questions"].items()
        ),
    )
