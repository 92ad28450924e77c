"""Hedging: a read that takes longer than most is asked of a second engine, within a budget.

Each read earns a share of a hedge, so that hedges add at most that share of reads, however slow a pool
gets. What "longer than most" means is learned per kind of read, from those that came back lately.
"""

from __future__ import annotations

from collections import defaultdict, deque

SHARE = 0.05
"""Hedges per read."""

BURST = 10.0
"""Hedges that may be saved up."""

PERCENTILE = 0.95
WINDOW = 512
"""Reads of a kind whose times are remembered."""

LEAST = 50
"""Reads of a kind before its percentile means anything."""

EVERY = 32
"""Reads after which the percentile is worked out again."""

LEAST_DELAY_S = 0.01


class Hedging:
    """The times of reads by kind, and what may be spent on second ones."""

    def __init__(self) -> None:
        self._times: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=WINDOW))
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._slow: dict[str, float] = {}
        self._budget = BURST

    def took(self, kind: str, seconds: float) -> None:
        """Remember a read that came back."""
        times = self._times[kind]
        times.append(seconds)
        self._counts[kind] += 1
        if len(times) >= LEAST and self._counts[kind] % EVERY == 0:
            self._slow[kind] = sorted(times)[int(PERCENTILE * len(times))]
        self._budget = min(BURST, self._budget + SHARE)

    def slow_s(self, kind: str) -> float | None:
        """The time that 95 % of reads of a kind keep within, once that is known."""
        return self._slow.get(kind)

    def delay_s(self, kind: str) -> float | None:
        """How long a read may take before a second engine is asked; None when that is not known yet."""
        slow = self._slow.get(kind)
        return None if slow is None else max(slow, LEAST_DELAY_S)

    def spend(self) -> bool:
        """Whether a hedge may be sent now; it then counts."""
        if self._budget < 1:
            return False
        self._budget -= 1
        return True
