"""The troubles: what is done to the processes of a stack while it serves.

Each is a row of TROUBLES. Whatever died is started again, a worker with the next fail-point armed that has
not killed one yet (workers/failpoints.py), an API with its own. One thread does all of it.
"""

from __future__ import annotations

import heapq
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from random import Random
from threading import Event
from time import monotonic, time

from bench.chaos.recovery import Recovery
from client.process import Child
from client.stack import Stack
from workers.failpoints import POINTS, VARIABLE

LOOK_EVERY_S = 0.02

BACK_AFTER_S = {"worker": 0.3, "api": 0.3, "engine": 2.0, "redis": 0.1}
"""Seconds until something that died is started again."""

MOST_ARMED = 2
"""Workers that are armed at once, so that one at least does its work."""

ARMED_FOR_S = 20.0
"""Seconds after which a point that nothing reached gives way to another, and comes again later."""

SETTLED_AFTER_S = 6.0
"""Seconds that a worker needs to start: another is left alone until then."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is done to a child of a kind. `lasts_s`: how long it is stopped, 0 where it is killed."""

    kind: str
    sent: signal.Signals
    lasts_s: float = 0.0


TROUBLES: Mapping[str, Trouble] = {
    "worker killed": Trouble("worker", signal.SIGKILL),
    "worker stopped": Trouble("worker", signal.SIGSTOP, 8.0),
    "worker asked to end": Trouble("worker", signal.SIGTERM),
    "api killed": Trouble("api", signal.SIGKILL),
    "api stopped": Trouble("api", signal.SIGSTOP, 2.0),
    "api asked to end": Trouble("api", signal.SIGTERM),
    "engine killed": Trouble("engine", signal.SIGKILL),
    "engine stopped": Trouble("engine", signal.SIGSTOP, 6.0),
    "redis paused": Trouble("redis", signal.SIGSTOP, 2.5),
    "redis killed": Trouble("redis", signal.SIGKILL),
}


class Troubles:
    """Makes trouble until every kind came `rounds` times and every fail-point killed once.

    `kills`: further workers killed per round. `every_s`: seconds between troubles. `done` is set once all
    came; it goes on until `ending` is set.
    """

    def __init__(
        self, stack: Stack, recovery: Recovery, *, seed: int, every_s: float, rounds: int, kills: int
    ) -> None:
        self._stack = stack
        self._recovery = recovery
        self._random = Random(seed)
        self._every_s = every_s
        self._points = deque(name for name, (file, _) in POINTS.items() if not file.startswith("api/"))
        self._api_points = deque(name for name, (file, _) in POINTS.items() if file.startswith("api/"))
        self._armed: dict[Child, tuple[str, float]] = {}
        self._dead: dict[Child, float] = {}
        self._stopped: set[Child] = set()
        self._since: dict[Child, float] = {}
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._plan = deque(name for _ in range(rounds) for name in self._shuffled(kills))
        self.ending, self.done = Event(), Event()
        self.came: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()

    @property
    def missing(self) -> list[str]:
        """The fail-points that have killed nothing yet."""
        return [name for name in POINTS if not self.reached[name]]

    def run(self) -> None:
        """Make trouble until told to end; then let everything go on."""
        at = monotonic() + self._every_s
        try:
            while not self.ending.wait(LOOK_EVERY_S):
                self._look()
                while self._later and self._later[0][0] <= monotonic():
                    heapq.heappop(self._later)[2]()
                if self._plan and monotonic() >= at and self._begin(self._plan[0]):
                    self.came[self._plan.popleft()] += 1
                    at = monotonic() + self._every_s * self._random.uniform(0.7, 1.3)
                if not self._plan and not self.missing and not self._later:
                    self.done.set()
        finally:
            self._calm()

    def _shuffled(self, kills: int) -> list[str]:
        names = [*TROUBLES, *["worker killed"] * kills]
        self._random.shuffle(names)
        return names

    def _children(self, kind: str) -> list[Child]:
        stack = self._stack
        redis = [stack.redis] if stack.redis else []
        return {"worker": stack.workers, "api": stack.apis, "engine": stack.engines, "redis": redis}[kind]

    def _begin(self, name: str) -> bool:
        """Begin a trouble; False when there is nobody to whom it may happen now."""
        trouble = TROUBLES[name]
        children = self._children(trouble.kind)
        well = [child for child in children if child.running and child not in self._stopped]
        if trouble.kind in ("worker", "api") and (
            any(map(self._is_young, well)) or len(well) < len(children)
        ):
            return False
        if len(well) < min(2, len(children)):
            return False
        child = self._random.choice(well)
        if trouble.sent == signal.SIGSTOP:
            _send(child, signal.SIGSTOP)
            self._stopped.add(child)
            self._do_later(trouble.lasts_s, lambda: self._go_on(child))
        elif trouble.sent == signal.SIGTERM:
            child.terminate()
        else:
            self._kill(child)
        return True

    def _kill(self, child: Child) -> None:
        at, pid = time(), child.pid
        child.kill()
        if child in self._stack.workers:
            self._recovery.killed(pid, at)

    def _go_on(self, child: Child) -> None:
        _send(child, signal.SIGCONT)
        self._stopped.discard(child)

    def _look(self) -> None:
        """See who died, at a fail-point maybe, and start them again."""
        for kind, after_s in BACK_AFTER_S.items():
            for child in self._children(kind):
                if not child.running and child not in self._dead:
                    self._died(child, kind)
                    self._dead[child] = monotonic() + after_s
                elif child in self._dead and self._dead[child] <= monotonic():
                    del self._dead[child]
                    self._start(child, kind)
        self._have_one_armed()
        for child, (point, since) in list(self._armed.items()):
            if child.running and child not in self._stopped and monotonic() - since > ARMED_FOR_S:
                # Nothing reaches it now: another may have its turn, and this one comes again.
                del self._armed[child]
                self._points_of(child).append(point)
                self._kill(child)

    def _have_one_armed(self) -> None:
        """Kill a worker that is well while points are left and too few workers armed: it comes back armed."""
        workers = self._stack.workers
        busy = any(self._is_young(child) or child in self._stopped for child in workers) or self._dead
        if self._points and not busy and sum(child in self._armed for child in workers) < MOST_ARMED:
            self._kill(next(child for child in workers if child not in self._armed))
        apis = self._stack.apis
        if self._api_points and not any(map(self._is_young, apis)) and not self._dead.keys() & set(apis):
            self._kill(apis[-1])

    def _is_young(self, child: Child) -> bool:
        return monotonic() - self._since.get(child, 0.0) < SETTLED_AFTER_S

    def _died(self, child: Child, kind: str) -> None:
        point, _ = self._armed.pop(child, ("", 0.0))
        if child.ended_unasked and child.returncode != -signal.SIGKILL:
            self.came[f"{kind} ended by itself with {child.returncode}"] += 1
        if point and child.ended_unasked:
            self.reached[point] += 1
            if kind == "worker":
                self._recovery.killed(child.pid, time())
        elif point:
            self._points_of(child).appendleft(point)

    def _start(self, child: Child, kind: str) -> None:
        child.env.pop(VARIABLE, None)
        armed = sum(one in self._armed for one in self._children(kind))
        points = self._points_of(child) if kind in ("worker", "api") else deque[str]()
        if points and armed < (MOST_ARMED if kind == "worker" else 1):
            point = points.popleft()
            child.env[VARIABLE] = f"{point}:{self._random.randint(1, 6)}"
            self._armed[child] = (point, monotonic())
        child.start()
        self._since[child] = monotonic()

    def _points_of(self, child: Child) -> deque[str]:
        return self._api_points if child in self._stack.apis else self._points

    def _do_later(self, after_s: float, work: Callable[[], None]) -> None:
        heapq.heappush(self._later, (monotonic() + after_s, next(self._numbers), work))

    def _calm(self) -> None:
        """Let everything that is stopped go on, and start what is not there, unarmed."""
        for child in list(self._stopped):
            self._go_on(child)
        for kind in BACK_AFTER_S:
            for child in self._children(kind):
                child.env.pop(VARIABLE, None)
                if child in self._armed and child.running:
                    child.kill()
                if not child.running:
                    child.start()


def _send(child: Child, sent: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, sent)
