"""Dialects: how each front door's requests are read and its answers written. Pure.

A dialect is a module with `parse(body) -> Decision` and `render(decision, answers, timing) -> dict`.
It lies on this floor because a worker that finishes a decision writes the answer in the words of
the door that the decision came through.
"""

from planner.dialects import chat, decisions, systemone
from planner.dialects.chat_request import decision_fields
from planner.dialects.dialect import Dialect

DIALECTS: dict[str, Dialect] = {
    "systemone": Dialect(systemone.parse, systemone.render, systemone.images_in),
    "decisions": Dialect(decisions.parse, decisions.render, decisions.images_in),
    "chat": Dialect(chat.parse, chat.render, chat.images_in, decision_fields),
}
"""Every dialect under the name that `Decision.door` carries."""
