"""How long an engine takes: continuous batching, prefill, and a bounded queue.

A step costs `base + slope x batch` seconds for the sequences that run in it, at most `batch` of them;
the others wait. A sequence that joins adds the prefill of its uncached tokens to its first step. A canvas
read takes its denoise steps; a generation takes one step per `TOKENS_PER_STEP` tokens.

With slope 0 nothing is gained from stepping together, so a read takes exactly `base` seconds from its
arrival. The profile `zero` waits for nothing and never gives up the event loop.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from engine.errors import QueueFull
from engine.metrics import Metrics

# Assumed: a block diffusion model settles about this many tokens per denoise step.
TOKENS_PER_STEP = 16


@dataclass(frozen=True, slots=True)
class Profile:
    """Seconds per step and per sequence of it; `batch` sequences at most; tokens/s of prefill (0: free)."""

    base: float
    slope: float
    batch: int
    prefill: float = 0.0

    @property
    def free(self) -> bool:
        """Whether it takes no time at all."""
        return not (self.base or self.slope or self.prefill)


# gb10 and h200: base and slope fitted to published figures (gb10: 9.6 requests/s at one client, 87.7 at 32).
# Their prefill rates are assumptions, of the order of what these chips do with 4 billion active parameters.
PROFILES = {
    "zero": Profile(0.0, 0.0, 1024),
    "gb10": Profile(0.10, 0.0085, 32, prefill=5_000),
    "h200": Profile(0.027, 0.0015, 32, prefill=40_000),
}


def custom_profile(text: str) -> Profile:
    """`BASE_MS,SLOPE_MS,BATCH`, as in `50,0,1000`: a constant 50 ms. Raises `ValueError`."""
    base, slope, batch = text.split(",")
    return Profile(float(base) / 1000, float(slope) / 1000, int(batch))


@dataclass(slots=True, eq=False)
class _Sequence:
    steps: int
    prefill: float
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Gate:
    """Admission and time. `max_queued` requests may wait beyond the batch (None: any number)."""

    def __init__(self, profile: Profile, metrics: Metrics, batch: int, max_queued: int | None) -> None:
        self._profile = profile
        self._metrics = metrics
        self._batch = batch
        self._max_queued = max_queued
        self._admitted = 0
        self._waiting: deque[_Sequence] = deque()
        self._running: list[_Sequence] = []
        self._loop: asyncio.Task[None] | None = None
        self._constant = asyncio.Semaphore(batch) if not profile.slope else None

    def enter(self) -> None:
        """Take a place. Raises `QueueFull` when too many wait already."""
        waiting = self._admitted - self._batch
        if self._max_queued is not None and waiting >= self._max_queued:
            self._metrics.admission_rejections_total += 1
            raise QueueFull(f"{max(waiting, 0)} requests are waiting, at most {self._max_queued} may")
        self._count(1)

    def leave(self) -> None:
        """Give the place back."""
        self._count(-1)

    async def spend(self, steps: int, prefill_tokens: int = 0) -> None:
        """Wait as long as the steps and the prefill take, the queue included."""
        profile = self._profile
        if profile.free:
            return
        prefill = prefill_tokens / profile.prefill if profile.prefill else 0.0
        if self._constant is not None:
            async with self._constant:
                await asyncio.sleep(profile.base * steps + prefill)
            return
        sequence = _Sequence(steps, prefill)
        self._waiting.append(sequence)
        if self._loop is None or self._loop.done():
            self._loop = asyncio.create_task(self._step())
        await sequence.done

    def _count(self, change: int) -> None:
        self._admitted += change
        self._metrics.num_requests_running = min(self._admitted, self._batch)
        self._metrics.num_requests_waiting = max(self._admitted - self._batch, 0)

    async def _step(self) -> None:
        while self._waiting or self._running:
            joining: list[_Sequence] = []
            while self._waiting and len(self._running) + len(joining) < self._batch:
                joining.append(self._waiting.popleft())
            self._running += joining
            prefill = sum(sequence.prefill for sequence in joining)
            await asyncio.sleep(self._profile.base + self._profile.slope * len(self._running) + prefill)
            for sequence in self._running:
                sequence.steps -= 1
                if sequence.steps <= 0 and not sequence.done.done():
                    sequence.done.set_result(None)
            # A sequence whose client went away was cancelled: it leaves too.
            self._running = [sequence for sequence in self._running if not sequence.done.done()]
