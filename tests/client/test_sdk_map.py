"""One model over many states: bounded, each result as it comes, nothing lost."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from client import AsyncCanvass, BadRequest, Canvass, Mapped
from tests.client.recorded import BODY, ID_HEADER, INVALID, Asked, Reply, Serve, Ticket

ROOT = Path(__file__).parents[2]


def some_fail(asked: Asked) -> Reply:
    number = asked.body["state"]["number"]
    if number % 5 == 3:
        return Reply(422, {"detail": INVALID})
    return Reply(200, {**BODY, "value": {"urgent": True, "stars": 1 + number % 2}}, ID_HEADER, 0.02)


def numbered(results: list[Mapped[Ticket]]) -> None:
    assert sorted(result.index for result in results) == list(range(20))
    for result in results:
        assert result.state == {"number": result.index}
        if result.index % 5 == 3:
            assert isinstance(result.error, BadRequest)
            with pytest.raises(BadRequest):
                _ = result.value
        else:
            assert result.ok
            assert result.value.stars == 1 + result.index % 2


STATES = [{"number": number} for number in range(20)]


def test_a_map_keeps_every_result_and_every_error(serve: Serve) -> None:
    server = serve(by=some_fail)
    with Canvass(server.url) as canvass:
        numbered(list(canvass.map(Ticket, STATES, concurrency=4, progress=False)))
    assert 1 < server.most_at_once <= 4


def test_a_map_on_a_loop_keeps_every_result_and_every_error(serve: Serve) -> None:
    server = serve(by=some_fail)

    async def mapped() -> list[Mapped[Ticket]]:
        async with AsyncCanvass(server.url) as canvass:
            return [result async for result in canvass.map(Ticket, STATES, concurrency=4)]

    numbered(asyncio.run(mapped()))
    assert 1 < server.most_at_once <= 4


def endless() -> Iterator[dict[str, int]]:
    number = 0
    while True:
        yield {"number": number}
        number += 1


def test_a_map_takes_no_more_of_endless_states_than_it_works_on(serve: Serve) -> None:
    server = serve(by=some_fail)
    with Canvass(server.url) as canvass:
        results = canvass.map(Ticket, endless(), concurrency=4, progress=False)
        assert len([next(results) for _ in range(10)]) == 10
        results.close()
    assert len(server.asked) <= 14


def test_a_map_may_raise_the_first_error(serve: Serve) -> None:
    server = serve(by=some_fail)
    with Canvass(server.url) as canvass, pytest.raises(BadRequest):
        list(canvass.map(Ticket, endless(), concurrency=2, raise_on_error=True, progress=False))


def test_a_map_that_could_decide_nothing_says_so_at_once() -> None:
    with Canvass("http://127.0.0.1:9") as canvass, pytest.raises(ValueError, match="0 at a time"):
        canvass.map(Ticket, STATES, concurrency=0)


def test_results_on_a_loop_do_not_wait_for_the_next_state(serve: Serve) -> None:
    server = serve(by=some_fail)

    async def one_and_then_nothing() -> AsyncIterator[dict[str, int]]:
        yield {"number": 0}
        await asyncio.sleep(3600)

    async def first() -> Mapped[Ticket]:
        async with AsyncCanvass(server.url) as canvass:
            results = canvass.map(Ticket, one_and_then_nothing())
            result = await anext(results)
            await results.aclose()
            return result

    assert asyncio.run(asyncio.wait_for(first(), 10)).value.stars == 1


def breaks_off() -> Iterator[dict[str, int]]:
    yield from ({"number": number} for number in range(5))
    raise LookupError("the table ends here")


def test_states_that_break_off_lose_nothing_that_came_before(serve: Serve) -> None:
    server = serve(by=some_fail)
    with Canvass(server.url) as canvass:
        results = canvass.map(Ticket, breaks_off(), concurrency=2, progress=False)
        assert {next(results).index for _ in range(5)} == set(range(5))
        with pytest.raises(LookupError):
            next(results)

    async def on_a_loop() -> None:
        async with AsyncCanvass(server.url) as client:
            results = client.map(Ticket, breaks_off(), concurrency=2)
            assert {(await anext(results)).index for _ in range(5)} == set(range(5))
            with pytest.raises(LookupError):
                await anext(results)

    asyncio.run(on_a_loop())


MAPS = """
from client import Canvass
from tests.client.recorded import Ticket

states = [{"number": number} for number in range(20)]
for result in Canvass("URL").map(Ticket, states):
    print("result", result.index)
"""


def drawn_on(terminal: int) -> str:
    """What comes on a terminal until nobody writes there any more."""
    drawn = b""
    while True:
        try:
            block = os.read(terminal, 4096)
        except OSError:  # EIO: the other side was closed
            return drawn.decode()
        if not block:
            return drawn.decode()
        drawn += block


def test_a_bar_is_drawn_on_a_terminals_standard_error_and_leaves_standard_output_alone(serve: Serve) -> None:
    server = serve(by=some_fail)
    reading, terminal = pty.openpty()
    command = [sys.executable, "-c", MAPS.replace("URL", server.url)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=terminal, text=True) as maps:
        os.close(terminal)
        drawn = drawn_on(reading)
        os.close(reading)
        said, _ = maps.communicate(timeout=60)
    assert maps.returncode == 0
    assert sorted(said.split()[1::2], key=int) == [str(number) for number in range(20)]
    assert "\x1b" not in said
    assert "20/20" in drawn
    assert "4 failed" in drawn


def test_no_bar_is_drawn_where_there_is_no_terminal(serve: Serve) -> None:
    server = serve(by=some_fail)
    command = [sys.executable, "-c", MAPS.replace("URL", server.url)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert len(told.stdout.splitlines()) == 20
    assert told.stderr == ""
