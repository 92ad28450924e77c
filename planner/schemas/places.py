"""Where the compiler is in a schema: what a question about a field there says, and what it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.schemas.keywords import Pointer
from planner.schemas.wording import sentence, within


@dataclass(frozen=True, slots=True)
class Place:
    """Where the compiler is.

    `path` is the field's JSON pointer, `id` the same with the branches on the way; `label` what the field is
    called, `text` what is asked of it, `context` what it is a part of. `earlier` are the questions it
    depends on, `ask_if` the nearest condition, `is_there` that the field is known not to
    be null. `open` are the references followed on the way.
    """

    path: str = ""
    id: str = ""
    label: str = ""
    text: str = ""
    context: str = ""
    is_told: bool = False
    is_there: bool = False
    earlier: tuple[str, ...] = ()
    ask_if: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    open: frozenset[Pointer] = frozenset()
    alone: bool = False
    depth: int = 0

    @property
    def question(self) -> str:
        """The id of the question that answers the field itself."""
        return self.id or "~root"

    def asked(self, suffix: str = "") -> str:
        """The instructions of a question about the field."""
        return sentence(within(self.context, f"{self.text} {suffix}" if suffix else self.text))

    @property
    def joined(self) -> str:
        """What the parts of the field are told to be parts of."""
        return within(self.context, self.text.rstrip(".:?!"))
