"""Checks of single fields: each returns the value or raises `BadRequest` naming the field."""

from collections.abc import Mapping
from typing import Any

from engine.errors import BadRequest

Body = Mapping[str, Any]


def integer(body: Body, name: str, low: int, high: int | None = None, default: int | None = None) -> int:
    """A whole number within bounds, or the default when absent (0 when there is none)."""
    value = body.get(name)
    if value is None:
        return default or 0
    if type(value) is not int or value < low or (high is not None and value > high):
        bound = f"at least {low}" if high is None else f"between {low} and {high}"
        raise BadRequest(f"{name} must be an integer of {bound}, not {value!r}", name)
    return value


def number(body: Body, name: str, low: float, high: float) -> float | None:
    """A number within bounds, or None when absent."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise BadRequest(f"{name} must be a number between {low:g} and {high:g}, not {value!r}", name)
    return float(value)


def flag(body: Body, name: str) -> bool:
    """true, false, 1 or 0; false when absent."""
    value = body.get(name)
    if value is None:
        return False
    if value not in (0, 1) or not isinstance(value, int):
        raise BadRequest(f"{name} must be true, false, 1 or 0, not {value!r}", name)
    return bool(value)


def string(body: Body, name: str) -> str | None:
    """A string, or None when absent."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRequest(f"{name} must be a string", name)
    return value


def strings(body: Body, name: str) -> tuple[str, ...]:
    """A string or a list of strings, as a tuple."""
    value = body.get(name)
    if value is None:
        return ()
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or any(type(item) is not str for item in items):
        raise BadRequest(f"{name} must be a string or a list of strings", name)
    return tuple(items)


def token_ids(value: Any, name: str, vocabulary: int) -> tuple[int, ...]:
    """A list of ids in the vocabulary. `set(map(type))` keeps it cheap for long prompts."""
    if not isinstance(value, list) or not set(map(type, value)) <= {int}:
        raise BadRequest(f"{name} must be a list of token ids", name)
    if value and not (min(value) >= 0 and max(value) < vocabulary):
        wrong = next(item for item in value if not 0 <= item < vocabulary)
        raise BadRequest(f"{name}: token id {wrong} is outside the vocabulary of {vocabulary}", name)
    return tuple(value)


def mapping(body: Body, name: str) -> dict[str, Any]:
    """A JSON object, empty when absent."""
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"{name} must be an object", name)
    return value
