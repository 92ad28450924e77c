"""The client for programs on an event loop: `Canvass` with await."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

import httpx2
from pydantic import BaseModel

from client.sdk import flow
from client.sdk.clients import Client, Handle, check_map
from client.sdk.decision import Decision, M
from client.sdk.drive import async_http, run_async
from client.sdk.flow import Flow
from client.sdk.mapping import Mapped, on_loop
from client.sdk.options import MapOptions, Options, WaitOptions

T = TypeVar("T")


class AsyncCanvass(Client[httpx2.AsyncClient]):
    """As `Canvass`, for an event loop.

        async with AsyncCanvass() as canvass:
            decision = await canvass.decide(Ticket, "My printer is on fire.")

    `http_client` is an `httpx2.AsyncClient`. Checks and a model's validators run on the loop.
    """

    @staticmethod
    def _connected(url: str) -> httpx2.AsyncClient:
        return async_http(url)

    async def decide(self, form: type[M], /, state: Any = None, **options: Unpack[Options]) -> Decision[M]:
        """As `Canvass.decide`. One that is canceled here runs on at the server."""
        return await self._run(flow.deciding(self._server, form, state, options))

    async def submit(
        self, form: type[M], /, state: Any = None, **options: Unpack[Options]
    ) -> AsyncSubmitted[M]:
        """As `Canvass.submit`."""
        id = await self._run(flow.submitting(self._server, form, state, options))
        return AsyncSubmitted(self, id, form, options)

    async def wait(self, job_id: str, form: type[M], /, **options: Unpack[WaitOptions]) -> Decision[M]:
        """As `Canvass.wait`."""
        return await self._run(flow.waiting(self._server, form, job_id, options))

    def map(
        self,
        form: type[M],
        /,
        states: Iterable[Any] | AsyncIterable[Any],
        *,
        concurrency: int = 8,
        progress: bool = True,
        raise_on_error: bool = False,
        **options: Unpack[MapOptions],
    ) -> AsyncGenerator[Mapped[M], None]:
        """As `Canvass.map`, for `async for`. States that come one by one are awaited beside the results."""
        check_map(form, concurrency, options)

        async def decide(state: Any) -> Decision[M]:
            return await self._run(flow.deciding(self._server, form, state, cast("Options", options)))

        return on_loop(decide, states, concurrency, progress, raise_on_error)

    async def compile(
        self, form: type[BaseModel] | Mapping[str, Any], /, *, state: Any = None, model: str | None = None
    ) -> dict[str, Any]:
        """As `Canvass.compile`."""
        return await self._run(flow.compiling(self._server, form, state, model))

    async def job(self, job_id: str) -> dict[str, Any]:
        """As `Canvass.job`."""
        return await self._run(flow.looking(self._server, job_id))

    async def cancel(self, job_id: str) -> dict[str, Any]:
        """As `Canvass.cancel`."""
        return await self._run(flow.canceling(self._server, job_id))

    async def audit(self, job_id: str) -> list[dict[str, Any]]:
        """As `Canvass.audit`."""
        return await self._run(flow.auditing(self._server, job_id))

    async def aclose(self) -> None:
        """Close the connections, unless the client's were given."""
        if self._owned:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _run(self, steps: Flow[T]) -> T:
        return await run_async(steps, self._server, self._http)


class AsyncSubmitted(Handle[M]):
    """As `Submitted`, with await."""

    def __init__(self, canvass: AsyncCanvass, id: str, form: type[M], options: WaitOptions) -> None:
        super().__init__(id, form, options)
        self._canvass = canvass

    async def wait(self, timeout: float | None = None) -> Decision[M]:  # noqa: ASYNC109 - as the one in threads
        """As `Submitted.wait`."""
        return await self._canvass.wait(self.id, self._form, **self._told(timeout))

    async def job(self) -> dict[str, Any]:
        """As `Submitted.job`."""
        return await self._canvass.job(self.id)

    async def status(self) -> str:
        """As `Submitted.status`."""
        return str((await self.job())["status"])

    async def cancel(self) -> str:
        """As `Submitted.cancel`."""
        return str((await self._canvass.cancel(self.id))["status"])
