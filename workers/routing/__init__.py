"""Routing policies: which engine takes a read. One per file; each says its algorithm, cost and limits."""

from __future__ import annotations

from collections.abc import Callable

from workers.routing.least_loaded import least_loaded
from workers.routing.policy import Policy
from workers.routing.prefix import by_prefix
from workers.routing.round_robin import round_robin

POLICIES: dict[str, Callable[[], Policy]] = {
    "prefix": lambda: by_prefix,
    "least-loaded": lambda: least_loaded,
    "round-robin": round_robin,
}
"""Every policy under the name that CANVASS_ROUTING knows it by."""
