"""The load generator: closed loops of one client each, over one aiohttp session."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from string import ascii_lowercase
from time import perf_counter

import aiohttp
import orjson


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked: a URL, and the bodies that are posted to it in turn.

    Bodies differ as real ones do, by their state, so that nobody's cache answers for the work.
    """

    url: str
    bodies: Sequence[bytes]

    def body(self, number: int) -> bytes:
        """The body of a request by its number."""
        return self.bodies[number % len(self.bodies)]


@dataclass(frozen=True, slots=True)
class Load:
    """What came of a load: the time of each request in ms, and of the whole in seconds."""

    latencies_ms: tuple[float, ...]
    seconds: float

    @property
    def per_s(self) -> float:
        """Requests per second."""
        return len(self.latencies_ms) / self.seconds

    @property
    def median_ms(self) -> float:
        """The median latency."""
        return median(self.latencies_ms)


def decision_body(questions: int, number: int) -> bytes:
    """A System One body with so many yes/no questions, about the state of that number."""
    state = f"Ticket {number}: my printer is on fire since {number % 24} o'clock and nobody answers."
    return orjson.dumps(
        {
            "model": "jev-latest",
            "state": state,
            "questions": {
                f"q{number}": {"type": "noul", "instructions": f"Is statement {number} true?"}
                for number in range(questions)
            },
        }
    )


def prose(characters: int, seed: int) -> str:
    """A text of made-up words in sentences, with as many different words as a long report has."""
    random = Random(seed)
    words = ["".join(random.choices(ascii_lowercase, k=random.randint(2, 9))) for _ in range(4000)]
    sentences: list[str] = []
    length = 0
    while length < characters:
        sentences.append(" ".join(random.choices(words, k=12)).capitalize() + ". ")
        length += len(sentences[-1])
    return "".join(sentences)[:characters]


def one_after_another(targets: list[Target], rounds: int) -> list[Load]:
    """Each target in turn, `rounds` times, one request at a time: noise falls on all alike."""
    return asyncio.run(_one_after_another(targets, rounds))


def side_by_side(target: Target, clients: int, seconds: float) -> Load:
    """`clients` closed loops on one target for some seconds."""
    return asyncio.run(_side_by_side(target, clients, seconds))


async def _one_after_another(targets: list[Target], rounds: int) -> list[Load]:
    times: list[list[float]] = [[] for _ in targets]
    start = perf_counter()
    async with _session() as session:
        for number in range(rounds):
            for target, seen in zip(targets, times, strict=True):
                seen.append(await _request(session, target, number))
    seconds = perf_counter() - start
    return [Load(tuple(seen), seconds) for seen in times]


async def _side_by_side(target: Target, clients: int, seconds: float) -> Load:
    times: list[float] = []
    numbers = itertools.count()
    start = perf_counter()

    async def client(session: aiohttp.ClientSession) -> None:
        while perf_counter() - start < seconds:
            times.append(await _request(session, target, next(numbers)))

    async with _session() as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return Load(tuple(times), perf_counter() - start)


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), trust_env=False)


async def _request(session: aiohttp.ClientSession, target: Target, number: int) -> float:
    """The time of one request in ms. Raises when the answer is no 200: a figure over errors is none."""
    start = perf_counter()
    async with session.post(
        target.url, data=target.body(number), headers={"content-type": "application/json"}
    ) as answer:
        content = await answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{target.url} answered {answer.status}: {content[:300]!r}")
    return 1000 * (perf_counter() - start)
