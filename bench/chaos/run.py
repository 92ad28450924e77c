"""One run: a stack, its troubles in a thread, the producers on an event loop, and the verdict at the end."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import aiohttp
import redis

from bench.chaos.ledger import Ledger
from bench.chaos.producers import Producers
from bench.chaos.receiver import SECRET, Receiver
from bench.chaos.recovery import Held, Recovery
from bench.chaos.troubles import Troubles
from bench.chaos.verdict import GRACE_S, Kept, judged, settled
from bench.chaos.workload import script
from client.stack import Stack

WORKERS, APIS, ENGINES = 3, 2, 4
DEADLINE_S = 60
BATCH_STATES = 40
BATCH_EVERY_S = 6.0
FIRST_OF_BATCHES = 1_000_000
SLOWEST = 5
"""The slowest recoveries, which the report names so that a log can be read for them."""

LATENCY = ("--latency", "100,0,1000")
FAULTS: Sequence[Sequence[str]] = (
    ("reset:0.01", "500:0.01"),
    ("503:0.02", "slow:0.005", "truncated:0.001"),
    ("garbage:0.001", "refuse:0.01", "wrong-rows:0.001"),
    ("hang:0.001", "503:0.01", "reset:0.005"),
)
"""What each engine does beside its work. A read has 100 ms, so that there is always one under way."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long a run is: decisions at least, how many a second, the pace of troubles, rounds of them, workers
    killed beside in each round, and a limit in s.
    """

    decisions: int
    per_s: float
    every_s: float
    rounds: int
    kills: int
    limit_s: float


FULL = Plan(decisions=5000, per_s=22, every_s=4.0, rounds=4, kills=4, limit_s=480)
SHORT = Plan(decisions=600, per_s=15, every_s=3.0, rounds=1, kills=0, limit_s=75)


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a run."""

    ledger: Ledger
    kept: Kept
    troubles: Mapping[str, int]
    reached: Mapping[str, int]
    held: Sequence[Held]
    unmeasured: int
    seconds: float
    settling_s: float

    @property
    def violations(self) -> list[str]:
        """What breaks the promise."""
        return self.ledger.violations

    @property
    def recovery_p99_s(self) -> float | None:
        """Seconds from a kill until another worker had the decision, of 99 % of those a killed one held."""
        return _percentile(self._taken("held", "chord", "wave"), 0.99)

    def figures(self) -> dict[str, float]:
        """The figures for bench/latest.json."""
        found = {
            "recovery_p99_s": self.recovery_p99_s,
            "recovery_end_p99_s": _percentile(self._ended(), 0.99),
        }
        return {name: round(value, 4) for name, value in found.items() if value is not None}

    def lines(self) -> Iterator[str]:
        """The report, a line each."""
        ledger, kept = self.ledger, self.kept
        yield f"{self.seconds:.0f} s of trouble, {self.settling_s:.1f} s until nothing was open any more"
        yield f"decisions   {sum(kept.statuses.values())}: {_told(kept.statuses)}"
        yield f"kinds       {_told(Counter(kept.kinds.values()))}"
        yield f"failures    {_told(kept.failures) or 'none'}"
        yield f"latest      {kept.latest_s:.1f} s after a deadline (negative: before)"
        yield f"clients     {ledger.answered} answered; asked by {_told(ledger.ways)}"
        yield f"came again  {_told(ledger.tries)}"
        hooked = f"{len(ledger.events)} events of {len(ledger.hooked)} decisions"
        yield f"webhooks    {hooked}; calls: {_told(ledger.calls)}"
        yield f"batches     lines {_told(ledger.lines)}"
        yield f"troubles    {_told(self.troubles)}"
        yield f"fail-points {_told(self.reached)}"
        yield f"recovery    {_spread(self._taken('held', 'chord', 'wave'))}, from SIGKILL to another worker"
        yield f"            {_spread(self._ended())}, from SIGKILL to its end, less its kind's usual time"
        yield f"            {_spread(self._taken('queued'))}, of those that nobody had begun"
        kinds = _told(Counter(held.kind for held in self.held))
        yield f"            {kinds}; kills that were not measured: {self.unmeasured}"
        for held in sorted(self.held, key=lambda held: held.taken_s or 0.0, reverse=True)[:SLOWEST]:
            yield f"            {held}"

    def _taken(self, *kinds: str) -> list[float]:
        return [held.taken_s for held in self.held if held.kind in kinds and held.taken_s is not None]

    def _ended(self) -> list[float]:
        return [
            max(0.0, held.ended_s - self.kept.usual_s(held.id))
            for held in self.held
            if held.kind != "queued" and held.ended_s is not None
        ]


def run(plan: Plan, *, seed: int, data: Path | None = None, say: Callable[[str], None]) -> Report:
    """Run it. Raises what a stack raises that does not start; all else is in the report."""
    ledger = Ledger()
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "script.json"
        rules.write_text(json.dumps(script()))
        stack = Stack(
            engines=f"script:{rules}",
            engine_count=ENGINES,
            engine_args=LATENCY,
            each_engine_args=[
                ("--seed", str(seed + place), *(part for fault in faults for part in ("--fault", fault)))
                for place, faults in enumerate(FAULTS)
            ],
            workers=WORKERS,
            apis=APIS,
            redis_args=("--appendfsync", "always"),
            data=data,
            env=_settings(),
        )
        with stack:
            say(f"up: {WORKERS} workers, {APIS} APIs, {ENGINES} engines, in {stack.logs.parent}")
            return _with_trouble(stack, plan, ledger, seed, say)


def _with_trouble(stack: Stack, plan: Plan, ledger: Ledger, seed: int, say: Callable[[str], None]) -> Report:
    recovery = Recovery(stack.redis_url)
    troubles = Troubles(
        stack, recovery, seed=seed, every_s=plan.every_s, rounds=plan.rounds, kills=plan.kills
    )
    thread = threading.Thread(target=troubles.run)
    start = monotonic()
    with recovery.following():
        thread.start()
        try:

            def calm() -> float:
                thread.join()
                with redis.Redis.from_url(stack.redis_url) as connection:
                    return settled(connection, DEADLINE_S + GRACE_S)

            settling_s = asyncio.run(_produced(stack.urls, plan, ledger, seed, troubles, calm, say))
        finally:
            troubles.ending.set()
            thread.join()
        seconds = monotonic() - start - settling_s
        with redis.Redis.from_url(stack.redis_url) as connection:
            kept = judged(connection, ledger)
    for name in troubles.missing:
        ledger.broken(f"fail-point {name}", "killed nothing, so that nothing is known of it")
    if not troubles.done.is_set() and not troubles.missing:
        ledger.broken("the run", "ended before all its troubles came")
    return Report(
        ledger,
        kept,
        troubles.came,
        troubles.reached,
        recovery.held,
        recovery.unmeasured,
        seconds,
        settling_s,
    )


async def _produced(
    urls: Sequence[str],
    plan: Plan,
    ledger: Ledger,
    seed: int,
    troubles: Troubles,
    calm: Callable[[], float],
    say: Callable[[str], None],
) -> float:
    """Ask at the plan's pace until all was asked and all troubles came. Then wait for what is open, webhooks
    too; the seconds that this took.
    """
    receiver = Receiver(ledger, seed)
    connector = aiohttp.TCPConnector(limit=0)
    limit = aiohttp.ClientTimeout(total=DEADLINE_S, sock_connect=5)
    session = aiohttp.ClientSession(connector=connector, timeout=limit)
    async with session, receiver.listening():
        producers = Producers(urls, ledger, receiver, session, seed, 2 * DEADLINE_S + GRACE_S)
        async with asyncio.TaskGroup() as asked:
            await _asked(asked, producers, plan, troubles, say)
        return await asyncio.to_thread(calm)


async def _asked(
    asked: asyncio.TaskGroup, producers: Producers, plan: Plan, troubles: Troubles, say: Callable[[str], None]
) -> None:
    start, number, batches, ledger = monotonic(), 0, 0, producers.ledger
    while number < plan.decisions or not troubles.done.is_set():
        passed = monotonic() - start
        if passed > plan.limit_s:
            say(f"the limit of {plan.limit_s:.0f} s is over; missing: {', '.join(troubles.missing)}")
            break
        while number < passed * plan.per_s:
            asked.create_task(producers.ask(number))
            number += 1
            if number % 500 == 0:
                say(f"{passed:5.0f} s  {number} asked, {ledger.answered} answered, {_told(troubles.came)}")
        if batches * BATCH_EVERY_S < passed:
            first = FIRST_OF_BATCHES + batches * BATCH_STATES
            asked.create_task(producers.batch(first, BATCH_STATES))
            batches += 1
        await asyncio.sleep(0.01)
    troubles.ending.set()


def _settings() -> dict[str, str]:
    return {
        "CANVASS_DEADLINE_S": str(DEADLINE_S),
        "CANVASS_SHARD_READS": "8",
        "CANVASS_DRAIN_S": "1",
        "CANVASS_READ_TIMEOUT_S": "10",
        "CANVASS_WEBHOOK_SECRET": SECRET,
        "CANVASS_WEBHOOK_ALLOW": "127.0.0.1",
        "CANVASS_WEBHOOK_TIMEOUT_S": "4",
        "CANVASS_WEBHOOK_PACE": "0.02",
    }


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _percentile(values: Sequence[float], share: float) -> float | None:
    """The value that a share of all keeps within, None of nothing."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else None


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "none"
    middle, high = (_percentile(values, share) or 0.0 for share in (0.5, 0.99))
    return f"{len(values)}: p50 {middle:.2f} s, p99 {high:.2f} s, max {max(values):.2f} s"
