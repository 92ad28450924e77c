"""Unions that a field tells apart. Their tags are marked, so that the path of an error can leave them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import Discriminator

from planner.errors import Location

MARK = "<"


def tag(name: str) -> str:
    """The tag of a union's member."""
    return f"{MARK}{name}>"


def by_field(field: str, names: Sequence[str]) -> Discriminator:
    """Members told apart by a field, whose value is one of these names."""

    def name_of(value: Any) -> str | None:
        given = value.get(field) if isinstance(value, dict) else None
        return tag(given) if isinstance(given, str) and given in names else None

    listed = ", ".join(names)
    return by(name_of, "unknown_type", f"Input should be an object whose `{field}` is one of: {listed}")


def by(name_of: Callable[[Any], str | None], kind: str, message: str) -> Discriminator:
    """Members told apart by what `name_of` says of a value; None is none of them."""
    return Discriminator(name_of, custom_error_type=kind, custom_error_message=message)


def untagged(loc: Location) -> Location:
    """The path of an error without tags."""
    return tuple(part for part in loc if not (isinstance(part, str) and part.startswith(MARK)))
