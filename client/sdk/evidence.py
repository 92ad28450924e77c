"""The evidence of a value: how each of its fields came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pydantic import BaseModel

Kind = Literal["read", "span", "generated", "skipped", "fixed"]
"""How a field was answered: by reads with probabilities; by a piece of the text; written under a grammar; not
at all, because what it hangs on did not hold; or by the schema, which lets only one value be.
"""


@dataclass(frozen=True, slots=True, repr=False)
class Evidence:
    """How one field came about. What does not apply to its kind is None.

    `type` and `question` are the question's type and its id among `Decision.answers`; a list that is asked
    value by value has `questions`, their ids by value. `distribution` has the probability of each value by
    name (of a list: that it is in it), `confidence` that of the given one, or of the weakest part,
    `expectation` the expected integer of a score. `mended`: a list was made to keep to its bounds. `present`
    is the probability that there is a value at all, of a field that may be None. `start` and `end` are a
    span's place in the source, in code points; `items` has those of a list of spans, each with its
    confidence. `reason` says why a field was skipped. `attempts` counts the reads or generations it took,
    `tokens` those that were written, `finish_reason` says why the writing ended ("length": it was cut).
    `engine` and `model` say who read. `raw` is all that the server said.
    """

    kind: Kind
    type: str | None = None
    question: str | None = None
    questions: Mapping[str, str] | None = None
    distribution: Mapping[str, float] | None = None
    confidence: float | None = None
    expectation: float | None = None
    mended: bool | None = None
    present: float | None = None
    start: int | None = None
    end: int | None = None
    items: Sequence[Mapping[str, Any]] | None = None
    reason: str | None = None
    attempts: int | None = None
    tokens: int | None = None
    finish_reason: str | None = None
    engine: str | None = None
    model: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        shown = ((one.name, getattr(self, one.name)) for one in fields(self) if one.repr)
        return f"Evidence({', '.join(f'{name}={value!r}' for name, value in shown if value is not None)})"


_PLAIN = (
    *(
        "type",
        "question",
        "questions",
        "confidence",
        "expectation",
        "mended",
        "start",
        "end",
        "items",
        "reason",
    ),
    *("attempts", "tokens", "finish_reason", "engine", "model"),
)
"""What has the same name in the server's answer."""


class EvidenceMap(Mapping[str, Evidence]):
    """Evidence by JSON pointer (`/offers/0/price`), in the order of the server's answer.

    A field is there if a question stood for it; of a list or a model the fields within it are.
    """

    def __init__(self, fields: Mapping[str, Mapping[str, Any]]) -> None:
        self._fields = {
            pointer: Evidence(
                kind=told.get("kind", "read"),
                distribution=told.get("probabilities"),
                present=(told.get("present") or {}).get("probability"),
                raw=told,
                **{name: told.get(name) for name in _PLAIN},
            )
            for pointer, told in fields.items()
        }

    def __getitem__(self, pointer: str) -> Evidence:
        try:
            return self._fields[pointer]
        except KeyError:
            known = ", ".join(self._fields) or "none"
            raise KeyError(f"no evidence at {pointer!r}; there is some at: {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __contains__(self, pointer: object) -> bool:
        return pointer in self._fields

    def __repr__(self) -> str:
        return f"EvidenceMap({self._fields!r})"


def pointer_of(value: Any, path: str) -> str:
    """The JSON pointer of a path of attributes (`offers.0.price`) in a value; a pointer is left as it is.

    A field of a model is named by its attribute, and stands in JSON under its alias. Where the value has
    nothing at a part of the path, as in a list that is empty, the part is taken as it stands.
    """
    if not path or path.startswith("/"):
        return path
    pointer = ""
    for part in path.split("."):
        value, key = _step(value, part)
        pointer += "/" + key.replace("~", "~0").replace("/", "~1")
    return pointer


def _step(value: Any, part: str) -> tuple[Any, str]:
    """What is at one part of a path, None where nothing is, and its key in JSON."""
    if isinstance(value, BaseModel) and (info := type(value).model_fields.get(part)) is not None:
        return getattr(value, part), _alias(info.validation_alias, part)
    if isinstance(value, Mapping):
        return value.get(part), part
    if isinstance(value, (list, tuple)) and part.isdigit() and int(part) < len(value):
        return value[int(part)], part
    return None, part


def _alias(alias: Any, name: str) -> str:
    """The key that a field has in the JSON Schema: its alias, or the first of several that is a name."""
    for one in getattr(alias, "choices", [alias]):
        if isinstance(one, str):
            return one
    return name
