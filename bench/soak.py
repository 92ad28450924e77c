"""`python -m bench.soak [--minutes N] [--logs DIR]`: does anything grow while the system serves steadily?

First the stack's capacity is measured, then it serves 70 % of that for some minutes: label decisions, one in
ten asked as a job, and a batch now and then. What has ended is kept for a short time only, so that a steady
state comes within the run. Memory and file descriptors of every process, and Redis's memory and
keys, are told over time. Each is judged by its medians in the third and the last quarter of the settled time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import orjson
import psutil
import redis

from bench.batches import post_batch
from bench.load import Target, decision_body, side_by_side
from client.stack import Stack

CLIENTS = 32
CAPACITY_S = 6.0
SHARE = 0.7
RETENTION_S = 45
DEADLINE_S = 30
SETTLED_AFTER_S = float(RETENTION_S + DEADLINE_S)
"""What ended is kept this long at most, and so are the sets that list it."""

LOOK_EVERY_S = 5.0
TELL_EVERY_S = 30.0
BATCH_EVERY_S = 20.0
BATCH_STATES = 300
ASYNC_EVERY = 10
DISTINCT = 50_000
KEEPALIVE_S = 5.0
"""Seconds that an idle connection of the clients is kept: a burst must not look like a leak of the server."""


MOST_GROWTH = {"MiB": 1.05, "fds": 1.0, "redis MiB": 1.10, "redis keys": 1.10}
"""How much larger the last quarter's median may be than the third's, as a factor."""

SLACK = {"MiB": 3.0, "fds": 5.0, "redis MiB": 1.0, "redis keys": 100.0}
"""How much more it may be on top of that: allocators and pools move in steps."""


@dataclass(slots=True)
class Seen:
    """What was seen of each figure over time: `(kind, of whom)` to pairs of seconds and value."""

    figures: defaultdict[tuple[str, str], list[tuple[float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def look(self, stack: Stack, connection: redis.Redis, at: float) -> None:
        """Look at every process and at Redis, `at` seconds from the start."""
        for child in stack.children:
            process = psutil.Process(child.pid)
            self.figures[("MiB", child.name)].append((at, process.memory_info().rss / 2**20))
            self.figures[("fds", child.name)].append((at, process.num_fds()))
        memory: Any = connection.info("memory")
        self.figures[("redis MiB", "data")].append((at, memory["used_memory"] / 2**20))
        keys: Any = connection.dbsize()
        self.figures[("redis keys", "data")].append((at, float(keys)))

    def line(self) -> str:
        """The latest of each, in one line."""
        told = [f"{name} {points[-1][1]:.0f} {kind}" for (kind, name), points in self.figures.items()]
        return ", ".join(told)

    def judged(self) -> list[tuple[str, float, float, bool]]:
        """Each figure with its medians in the third and the last quarter, and whether it is flat."""
        found: list[tuple[str, float, float, bool]] = []
        for (kind, name), points in self.figures.items():
            settled = [value for at, value in points if at >= SETTLED_AFTER_S]
            half = settled[len(settled) // 2 :]
            if len(half) < 4:
                raise SystemExit("the run was too short to judge: give it more minutes")
            before, after = median(half[: len(half) // 2]), median(half[len(half) // 2 :])
            flat = after <= MOST_GROWTH[kind] * before + SLACK[kind]
            found.append((f"{name} {kind}", before, after, flat))
        return found


def main() -> int:
    """Run it and tell; 1 when something grew or an answer was not right."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--logs", type=Path, help="folder to keep the logs in; it must be empty or new")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"rules": [{"phrase": "true", "labels": {"yes": 0.9}}]}))
        with Stack(
            engines=f"script:{script}",
            engine_count=2,
            workers=2,
            apis=2,
            data=given.logs,
            env={"CANVASS_RETENTION_S": str(RETENTION_S), "CANVASS_DEADLINE_S": str(DEADLINE_S)}
            | {"CANVASS_BATCH_RETENTION_S": str(RETENTION_S), "CANVASS_BATCH_DEADLINE_S": "60"},
        ) as stack:
            seen = _soaked(stack, 60 * given.minutes)
    flat = True
    for what, before, after, held in seen.judged():
        flat &= held
        print(f"{what:24} {before:10.1f} then {after:10.1f}  {'flat' if held else 'GROWS'}")
    return 0 if flat else 1


def _soaked(stack: Stack, seconds: float) -> Seen:
    targets = [
        Target(f"{url}/v1/systemone", [decision_body(1, number) for number in range(4000)])
        for url in stack.urls
    ]
    side_by_side(targets[0], CLIENTS, CAPACITY_S / 2)
    capacity = side_by_side(targets[0], CLIENTS, CAPACITY_S).per_s
    per_s = SHARE * capacity
    print(f"capacity {capacity:.0f} decisions/s; {per_s:.0f}/s for {seconds:.0f} s", flush=True)
    seen = Seen()
    asyncio.run(_serve(stack, per_s, seconds, seen))
    return seen


async def _serve(stack: Stack, per_s: float, seconds: float, seen: Seen) -> None:
    """Ask at a steady rate, whatever comes back, and look at the processes meanwhile."""
    start, number, told, looked, batch_at, batches = time.monotonic(), 0, 0.0, 0.0, 0.0, 0
    wrong: list[str] = []
    running: set[asyncio.Task[None]] = set()
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S)
    with redis.Redis.from_url(stack.redis_url) as connection:
        async with aiohttp.ClientSession(connector=connector) as session:
            while (passed := time.monotonic() - start) < seconds:
                while number < passed * per_s:
                    asked = asyncio.create_task(_ask(session, stack.urls, number, wrong))
                    running.add(asked)
                    asked.add_done_callback(running.discard)
                    number += 1
                if passed >= batch_at:
                    await asyncio.to_thread(post_batch, stack, BATCH_STATES)
                    batch_at, batches = passed + BATCH_EVERY_S, batches + 1
                if passed >= looked:
                    seen.look(stack, connection, passed)
                    looked = passed + LOOK_EVERY_S
                if passed >= told:
                    line = f"{passed:5.0f} s  {number} asked, {len(running)} open, {seen.line()}"
                    print(line, flush=True)
                    told = passed + TELL_EVERY_S
                if wrong:
                    raise SystemExit(f"not right: {wrong[:3]}")
                await asyncio.sleep(0.01)
            await asyncio.gather(*running)
    print(f"{number} decisions, {batches} batches of {BATCH_STATES} states", flush=True)


async def _ask(session: aiohttp.ClientSession, urls: Sequence[str], number: int, wrong: list[str]) -> None:
    """One decision, or now and then a job that is polled to its end."""
    url, headers = urls[number % len(urls)], {"content-type": "application/json"}
    is_job = number % ASYNC_EVERY == 0
    if is_job:
        headers["prefer"] = "respond-async"
    body = decision_body(1, number % DISTINCT)
    async with session.post(f"{url}/v1/systemone", data=body, headers=headers) as response:
        said: Mapping[str, Any] = orjson.loads(await response.read())
    if is_job and response.status == 202:
        async with session.get(f"{url}/v1/jobs/{said['id']}?wait=20") as response:
            said = orjson.loads(await response.read()).get("result") or {}
    if response.status != 200 or "answers" not in said:
        wrong.append(f"{response.status} {said}")


if __name__ == "__main__":
    raise SystemExit(main())
