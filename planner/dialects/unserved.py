"""Fields that would change the answer, and that a door does not serve: refused, never ignored."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticCustomError

from planner.errors import Invalid


def refuse_unserved(body: Any, *names: str) -> Any:
    """The body, when it is an object that uses none of these fields. Raises Invalid."""
    if not isinstance(body, dict):
        raise PydanticCustomError("dict_type", "Input should be a JSON object")
    for name in names:
        if body.get(name):
            raise Invalid(
                (name,), f"`{name}` is not served on this door", kind="not_served", given=body[name]
            )
    return body
