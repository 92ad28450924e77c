"""What a model says to Canvass beside its types: this is a piece of the text, this stands alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic_core import CoreSchema

KEYWORD = "x-canvass"
"""The keyword of a JSON Schema under which Canvass is told something."""


def _grounded(schema: dict[str, Any]) -> None:
    # The docstring is for who reads the code; what is looked for is the field's own description.
    schema.pop("description", None)
    schema[KEYWORD] = {"span": True}


class Span(BaseModel):
    """A piece of the state's text: a field of this type is found there, never written.

    `text` is `source[start:end]`; `start` and `end` count Unicode code points. The source is the state when
    that is a string; else its field `text` when that is one; else the state as JSON. `list[Span]` is every
    such piece, `Span | None` one that may be missing. `str()` of a span is its text.
    """

    model_config = ConfigDict(frozen=True, json_schema_extra=_grounded)

    text: str
    start: int
    end: int

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class _Alone:
    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        return {**schema, KEYWORD: {**schema.get(KEYWORD, {}), "alone": True}}


Alone: Final = _Alone()
"""Marks a field that does not see the fields before it: `urgent: Annotated[bool, Alone]`. Fields that do not
see each other are read side by side. `Field(json_schema_extra={"alone": True})` says the same.
"""
