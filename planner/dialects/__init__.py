"""Dialects: how each front door's requests are read and its answers written. Pure.

A dialect is a module with `parse(body) -> Decision` and `render(decision, answers, timing) -> dict`.
It lies on this floor because a worker that finishes a decision writes the answer in the words of
the door that the decision came through.
"""

from planner.dialects import chat, decisions, systemone
from planner.dialects.chat_request import decision_fields
from planner.dialects.dialect import Dialect

DIALECTS: dict[str, Dialect] = {
    "systemone": Dialect(systemone.parse, systemone.render),
    "decisions": Dialect(decisions.parse, decisions.render, images=decisions.images_in),
    "chat": Dialect(chat.parse, chat.render, decision_fields, chat.images_in),
}
"""Every dialect under the name that `Decision.door` carries."""
