"""Bounds of lists and objects in a body, looked at before anything in them.

pydantic's own `max_length` counts what was valid: of a list of 400,000 wrong items it tells every one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

MOST_WRONG = 5
"""Wrong values of an object that are told one by one."""


def at_most(most: int) -> BeforeValidator:
    """Refuses a longer list or object, with the limit and the length."""

    def check(value: Any) -> Any:
        if isinstance(value, list | dict) and len(value) > most:
            raise PydanticCustomError(
                "too_long",
                "{kind} should have at most {most} items, not {length}",
                {"kind": "List" if isinstance(value, list) else "Object", "most": most, "length": len(value)},
            )
        return value

    return BeforeValidator(check)


def few_wrong(is_right: Callable[[Any], bool], what: str) -> BeforeValidator:
    """Refuses an object with many wrong values by one error, which says `what` they should be."""

    def check(value: Any) -> Any:
        wrong = sum(not is_right(one) for one in value.values()) if isinstance(value, dict) else 0
        if wrong > MOST_WRONG:
            told = {"wrong": wrong, "what": what}
            raise PydanticCustomError("wrong_values", "{wrong} of its values should be {what}", told)
        return value

    return BeforeValidator(check)
