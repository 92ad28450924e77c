"""pydantic's messages in JSON's words: a client sends lists and objects, and knows nothing of Python."""

from __future__ import annotations

_SAID = {
    "Input should be a valid tuple": "Input should be a list",
    "Input should be a valid list": "Input should be a list",
    "Input should be a valid dictionary": "Input should be an object",
    "Tuple should": "List should",
    "Dictionary should": "Object should",
}
"""How messages begin that speak of Python's types, and what is told."""


def in_json_words(message: str) -> str:
    """A message as it is told to clients."""
    for begins, said in _SAID.items():
        if message.startswith(begins):
            # What pydantic has to say of a model ends in its name, which is nobody's business.
            return said + message[len(begins) :].partition(" or instance of ")[0]
    return message
