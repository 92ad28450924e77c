"""One model over many states: a bounded number at a time, each result as it comes."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Generator, Iterable, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic

from client.sdk.decision import Decision, M
from client.sdk.progress import shown

SLICE_S = 5.0
"""How long one request of a `map` in threads waits at most: a `map` that is given up ends within it."""


@dataclass(frozen=True, slots=True)
class Mapped(Generic[M]):
    """What one state of a `map` came to: a decision, or the error that it ended with.

    `index` counts the states from 0.
    """

    index: int
    state: Any
    decision: Decision[M] | None
    error: Exception | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a decision."""
        return self.error is None

    @property
    def value(self) -> M:
        """The value. Raises the error where there is none."""
        if self.decision is None:
            raise self.error or AssertionError("a result has a decision or an error")
        return self.decision.value


def in_threads(
    decide: Callable[[Any, threading.Event], Decision[M]],
    states: Iterable[Any],
    concurrency: int,
    progress: bool,
    raise_on_error: bool,
) -> Generator[Mapped[M], None, None]:
    """The results, in the order in which they come.

    States are taken in the caller's thread: as many as run at once, then one more ahead of each result. What
    their iterator raises is raised once the results of those before it were given.
    """
    source, broken = enumerate(states), None
    done: queue.SimpleQueue[tuple[int, Any, Future[Decision[M]]]] = queue.SimpleQueue()
    stopping = threading.Event()
    threads = ThreadPoolExecutor(concurrency, thread_name_prefix="canvass-map")

    def begin() -> bool:
        nonlocal source, broken
        try:
            taken = next(source, None)
        except Exception as error:  # noqa: BLE001 - raised below, when nothing can be lost any more
            source, broken, taken = enumerate(()), error, None
        if taken is None:
            return False
        future = threads.submit(decide, taken[1], stopping)
        future.add_done_callback(lambda future: done.put((*taken, future)))
        return True

    try:
        with shown(progress, _total(states)) as advance:
            running = 0
            while running < concurrency and begin():
                running += 1
            while running:
                index, state, future = done.get()
                running += begin() - 1
                result = _mapped(index, state, future)
                advance(result.ok)
                yield _checked(result, raise_on_error)
        if broken is not None:
            raise broken
    finally:
        stopping.set()
        threads.shutdown(wait=False, cancel_futures=True)


async def on_loop(
    decide: Callable[[Any], Coroutine[Any, Any, Decision[M]]],
    states: Iterable[Any] | AsyncIterable[Any],
    concurrency: int,
    progress: bool,
    raise_on_error: bool,
) -> AsyncGenerator[Mapped[M], None]:
    """The results, in the order in which they come; the next state is awaited beside them. What the states'
    iterator raises is raised once the results of those before it were given.
    """
    source, broken = _numbered(states), None
    running: dict[asyncio.Task[Decision[M]], tuple[int, Any]] = {}
    upcoming: asyncio.Task[tuple[int, Any] | None] | None = asyncio.create_task(_next(source))
    try:
        with shown(progress, _total(states)) as advance:
            while upcoming or running:
                room = len(running) < concurrency
                awaited = {*running, *([upcoming] if upcoming and room else [])}
                finished, _ = await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                if upcoming in finished:
                    broken = upcoming.exception()
                    taken = None if broken else upcoming.result()
                    upcoming = asyncio.create_task(_next(source)) if taken else None
                    if taken:
                        running[asyncio.create_task(decide(taken[1]))] = taken
                for task in [task for task in running if task in finished]:
                    result = _mapped(*running.pop(task), task)
                    advance(result.ok)
                    yield _checked(result, raise_on_error)
        if broken is not None:
            raise broken
    finally:
        left = [*running, *([upcoming] if upcoming else [])]
        for one in left:
            one.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await source.aclose()


async def _numbered(states: Iterable[Any] | AsyncIterable[Any]) -> AsyncGenerator[tuple[int, Any], None]:
    index = 0
    if isinstance(states, AsyncIterable):
        async for state in states:
            yield index, state
            index += 1
    else:
        for state in states:
            yield index, state
            index += 1


async def _next(source: AsyncGenerator[tuple[int, Any], None]) -> tuple[int, Any] | None:
    return await anext(source, None)


def _mapped(index: int, state: Any, ended: Future[Decision[M]] | asyncio.Task[Decision[M]]) -> Mapped[M]:
    """What a call that ended came to. Raises what is more than an error: being interrupted."""
    error = ended.exception()
    if error is None:
        return Mapped(index, state, ended.result())
    if not isinstance(error, Exception):
        raise error
    return Mapped(index, state, None, error)


def _checked(result: Mapped[M], raise_on_error: bool) -> Mapped[M]:
    if raise_on_error and result.error is not None:
        raise result.error
    return result


def _total(states: object) -> int | None:
    return len(states) if isinstance(states, Sized) else None
