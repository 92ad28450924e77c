"""A decision: a state, typed questions about it, and the options of how to read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter

from planner.once import once

QuestionType = Literal["noul", "choice", "score", "span", "spans", "object"]
ChunkPrompt = Literal["own", "shared"]

YES, NO = "yes", "no"


IMAGE_MARK = "\ue000"
"""A character of private use, on both sides of an image's number: where a text shows that image."""


def mark_of(image: int) -> str:
    """What stands in a text where it shows the image of that number."""
    return f"{IMAGE_MARK}{image}{IMAGE_MARK}"


def as_text(value: Any) -> str:
    """The text that the model reads for a JSON value: a string as itself, anything else as JSON.

    Non-ASCII characters stay themselves, so that the text is what a reader of the state would see.
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Alternative:
    """One possible answer: the name the client knows it by, and what the model reads about it."""

    name: str
    text: str | None = None
    source: Any = None


@dataclass(frozen=True)
class Question:
    """One typed question. `ask_if` maps an earlier question to the answers under which this is asked.

    A span question has no alternatives: it is answered with pieces of the text, of up to `max_tokens`
    tokens in all (None: as many as fit the canvas, up to its type's usual number), and `spans` with at
    most `max_items` of them. An object question has none either: the model writes a JSON value for it, valid
    against `schema`, of up to `max_tokens` tokens.

    `name` is what the client calls it on a door whose questions are known by their places.
    """

    id: str
    type: QuestionType
    instructions: str | None
    alternatives: tuple[Alternative, ...]
    depends_on: tuple[str, ...] = ()
    ask_if: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    alone: bool = False
    max_tokens: int | None = None
    max_items: int = 1
    schema: Any = None
    name: str | None = None

    @property
    def is_span(self) -> bool:
        """Whether the answer is found in the text rather than among labels."""
        return self.type in ("span", "spans")

    @property
    def is_label(self) -> bool:
        """Whether the answer is one of the alternatives, read as a label."""
        return self.type in ("noul", "choice", "score")

    @once
    def needs(self) -> tuple[str, ...]:
        """The questions that must be settled before this one, each once."""
        return tuple(dict.fromkeys((*self.depends_on, *self.ask_if)))


@dataclass(frozen=True, slots=True)
class Options:
    """How a decision is read.

    `samples` is the number of draws per read, or None for automatic: one draw, then up to
    `auto_max` in all when a slot's entropy (nats) is over `auto_threshold`. `steps` counts denoise
    steps. `ask` names the questions to ask, None meaning all of them. `chunk_rows` is the most
    questions one canvas of a joint stage may hold, None meaning as many as fit. `think` is the most tokens
    of a thought ahead of the answers, 0 for none. `audit` keeps every result as it came.
    """

    instructions: str | None = None
    samples: int | None = 1
    auto_threshold: float = 0.1
    auto_max: int = 4
    steps: int = 1
    joint: bool = False
    ask: tuple[str, ...] | None = None
    chunk_rows: int | None = None
    chunk_prompt: ChunkPrompt = "own"
    sequential: bool = False
    seed: int = 0
    think: int = 0
    diagnostics: bool = False
    audit: bool = False


@dataclass(frozen=True)
class Decision:
    """One request, whichever front door it came through.

    `model` is the name the client used, `door` the dialect its answer is written in, `extended`
    whether it used any extension of that dialect. `salt` keeps its prompts apart from other clients' in the
    engines' prefix caches. `images` are the SHA-256 (hex) of the images that its texts show, in the places
    that `mark_of` writes. `schema` is the JSON Schema that the questions were compiled from, where they were
    (planner/schemas/compiler.py), `schema_version` what its owner calls it.
    """

    model: str
    state: Any
    questions: tuple[Question, ...]
    options: Options = Options()
    door: str = "systemone"
    extended: bool = False
    salt: str = ""
    images: tuple[str, ...] = ()
    schema: Any = None
    schema_version: str | None = None

    @once
    def text(self) -> str:
        """The state as the model reads it."""
        return as_text(self.state)

    @once
    def source(self) -> str:
        """The text that span offsets index: a string state, the `text` of an object, else its JSON."""
        if isinstance(self.state, dict) and isinstance(self.state.get("text"), str):
            return str(self.state["text"])
        return self.text

    @once
    def by_id(self) -> dict[str, Question]:
        """The questions under their ids."""
        return {question.id: question for question in self.questions}

    def to_json(self) -> bytes:
        """The decision as bytes for the store; `from_json` gives an equal one back."""
        return _CODEC.dump_json(self)

    @staticmethod
    def from_json(data: bytes | str) -> Decision:
        """The decision that `to_json` wrote."""
        return _CODEC.validate_json(data)


_CODEC: TypeAdapter[Decision] = TypeAdapter(Decision)
