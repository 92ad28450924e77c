"""One engine as this worker knows it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from planner.canvas import WIDTH_STEP
from workers.pool.breaker import Breaker
from workers.pool.vllm import ServedModel


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do, as its canaries showed or its settings say.

    `least_width` is the narrowest canvas it takes, in tokens; `generate` whether it writes text under a
    grammar; `constrained` whether it reads over the label ids alone; `engine_samples` the most draws
    that one request may ask for (0: one request per draw); `images` whether it takes them.
    """

    canvas: bool = True
    least_width: int = WIDTH_STEP
    generate: bool = False
    constrained: bool = False
    engine_samples: int = 0
    images: bool = False

    def but(self, said: dict[str, Any]) -> Capabilities:
        """These, except for what someone said."""
        return replace(self, **{name: value for name, value in said.items() if name in _NAMES})


_NAMES = frozenset(Capabilities.__dataclass_fields__)


@dataclass(slots=True, eq=False)
class Engine:
    """One engine.

    `room` bounds the reads at it, and `in_flight` counts them with those that wait for room. `joined`: a
    canary came back, `learned`: all did; `reason` says why it is out, `outs` counts how often it went out.
    `draining`: it takes no new reads. `last_read` is when it last gave one, `under_way` holds the start of
    each request that it has now (both on the loop's clock).
    """

    url: str
    room: asyncio.Semaphore
    joined: bool = False
    draining: bool = False
    reason: str = "not yet probed"
    model: ServedModel = field(default_factory=lambda: ServedModel(""))
    can: Capabilities = Capabilities()
    learned: bool = False
    said: dict[str, Any] = field(default_factory=dict)
    breaker: Breaker = field(default_factory=Breaker)
    in_flight: int = 0
    last_read: float = 0.0
    last_health: float = 0.0
    reads: int = 0
    errors: int = 0
    outs: int = 0
    under_way: dict[asyncio.Task[Any], Started] = field(default_factory=dict)

    @property
    def takes_reads(self) -> bool:
        """Whether a read may be sent to it."""
        return self.joined and not self.draining

    def view(self) -> dict[str, Any]:
        """The engine for `GET /v1/engines` and for the other processes."""
        return {
            "url": self.url,
            "joined": self.joined,
            "draining": self.draining,
            "reason": self.reason,
            "model": self.model.name,
            "context": self.model.context,
            "created": self.model.created,
            "capabilities": asdict(self.can),
            "learned": self.learned,
            "in_flight": self.in_flight,
            "reads": self.reads,
            "errors": self.errors,
        }


@dataclass(frozen=True, slots=True)
class Started:
    """A request under way: when it was sent (on the loop's clock), and until when it is not stalled."""

    at: float
    patience_until: float
