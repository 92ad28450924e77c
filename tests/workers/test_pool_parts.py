from __future__ import annotations

import asyncio

import pytest

from planner.canvas import Canvas
from planner.reads import Read
from workers.pool.breaker import FAILURES, OPEN_S, Breaker
from workers.pool.draws import in_draws
from workers.pool.hedging import BURST, EVERY, LEAST, SHARE, Hedging
from workers.pool.warming import Warming
from workers.routing.policy import Prefix

LONG = Prefix(key=5, tokens=4000)


def test_a_breaker_opens_after_failures_in_a_row_and_half_opens_later() -> None:
    breaker = Breaker()
    assert [breaker.failed(now=100) for _ in range(FAILURES)] == [False] * (FAILURES - 1) + [True]
    assert not breaker.half_open(100 + OPEN_S - 0.1)
    assert breaker.half_open(100 + OPEN_S)


def test_a_success_closes_what_failed_before() -> None:
    breaker = Breaker()
    for _ in range(3 * FAILURES):
        assert not breaker.failed(now=1)
        breaker.succeeded()


def test_hedges_wait_until_it_is_known_what_slow_means() -> None:
    hedging = Hedging()
    for _ in range(LEAST - 1):
        hedging.took("label", 0.1)
    assert hedging.delay_s("label") is None
    for number in range(EVERY * 4):
        hedging.took("label", 1.0 if number % 50 == 0 else 0.1)
    assert hedging.delay_s("label") == pytest.approx(0.1)
    assert hedging.delay_s("span") is None


def test_hedges_are_at_most_a_share_of_reads() -> None:
    hedging = Hedging()
    while hedging.spend():
        pass
    sent = 0
    for _ in range(2000):
        hedging.took("label", 0.1)
        sent += hedging.spend()
    assert sent == pytest.approx(2000 * SHARE, abs=1)
    for _ in range(10_000):
        hedging.took("label", 0.1)
    assert sum(hedging.spend() for _ in range(100)) == int(BURST)


def test_the_first_read_of_a_long_prompt_goes_alone() -> None:
    async def story() -> list[str]:
        warming, told = Warming(), list[str]()

        async def read(name: str, takes_s: float) -> None:
            async with warming.turn("engine", LONG):
                told.append(f"{name} in")
                await asyncio.sleep(takes_s)
                told.append(f"{name} out")

        await asyncio.gather(read("a", 0.05), read("b", 0.02), read("c", 0.02))
        return told

    told = asyncio.run(story())
    assert told[:2] == ["a in", "a out"]
    assert told[2:4] == ["b in", "c in"]


def test_when_the_first_fails_the_next_goes_first() -> None:
    async def story() -> list[str]:
        warming, told = Warming(), list[str]()

        async def failing() -> None:
            async with warming.turn("engine", LONG):
                await asyncio.sleep(0.02)
                raise ValueError

        async def read(name: str) -> None:
            async with warming.turn("engine", LONG):
                told.append(f"{name} in")
                await asyncio.sleep(0.02)
                told.append(f"{name} out")

        await asyncio.gather(failing(), read("b"), read("c"), return_exceptions=True)
        return told

    assert asyncio.run(story()) == ["b in", "b out", "c in", "c out"]


def test_an_engine_that_was_away_is_cold_again() -> None:
    async def story() -> bool:
        warming = Warming()
        async with warming.turn("engine", LONG):
            pass
        warming.forget("engine")
        order: list[str] = []

        async def read(name: str) -> None:
            async with warming.turn("engine", LONG):
                order.append(name)
                await asyncio.sleep(0.02)
                order.append(name)

        await asyncio.gather(read("a"), read("b"))
        return order == ["a", "a", "b", "b"]

    assert asyncio.run(story())


HEAD = (1, 2, 3)
CANVAS = Canvas((1, 2, 0), (1,), 100)


def read(id: str, *, seed: int = 0, ids: tuple[int, ...] = (7, 8), kind: str = "label") -> Read:
    return Read(id, kind, HEAD, (4,), CANVAS, ids, seed, steps=1)  # type: ignore[arg-type]


def test_draws_of_one_canvas_go_together_up_to_the_most() -> None:
    reads = [read(f"a{seed}", seed=seed) for seed in range(5)]
    assert [[one.id for one in group] for group in in_draws(reads, 4)] == [["a0", "a1", "a2", "a3"], ["a4"]]
    assert all(len(group) == 1 for group in in_draws(reads, 1))


def test_reads_of_other_labels_or_kinds_are_no_draws_of_it() -> None:
    reads = [read("a"), read("b", ids=(7, 9)), read("c", kind="span"), read("d", kind="span")]
    assert sorted(len(group) for group in in_draws(reads, 8)) == [1, 1, 1, 1]
