"""Object answers, the same on every door."""

from __future__ import annotations

from typing import Any

from planner.answers import ObjectReading


def object_answer(reading: ObjectReading) -> dict[str, Any]:
    """The JSON of an object answer: its value, or what is wrong with what the model wrote."""
    told: dict[str, Any] = {
        "type": "object",
        "value": reading.value,
        "valid": reading.valid,
        "attempts": reading.attempts,
        "finish_reason": reading.finish,
    }
    if reading.fault is not None:
        told["error"] = {"path": reading.fault.path, "message": reading.fault.message}
    return told
