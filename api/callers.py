"""Callers: who sends a request, and what is theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request.

    `id` is that of their API key, empty on an open server: jobs belong to it. `most_open` is how many open
    decisions they may have (0: any number), `salt` keeps their prompts' caches apart from others',
    `headers` tell them how much of their rate is left.
    """

    id: str = ""
    most_open: int = 0
    salt: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


ANYONE = Caller()
"""Whoever calls an open server."""
