"""Dialects: how each front door's requests are read and its answers written. Pure.

A dialect is a module with `parse(body) -> Decision` and `render(decision, answers, timing) -> dict`.
It lies on this floor because a worker that finishes a decision writes the answer in the words of
the door that the decision came through.
"""

from planner.dialects import systemone
from planner.dialects.dialect import Dialect

DIALECTS: dict[str, Dialect] = {"systemone": Dialect(systemone.parse, systemone.render)}
"""Every dialect under the name that `Decision.door` carries."""
