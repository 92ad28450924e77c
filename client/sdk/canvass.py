"""The client for programs that wait in their thread."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

import httpx2
from pydantic import BaseModel

from client.sdk import flow
from client.sdk.clients import Client, Handle, check_map
from client.sdk.decision import Decision, M
from client.sdk.drive import run, sync_http
from client.sdk.flow import Flow
from client.sdk.mapping import SLICE_S, Mapped, in_threads
from client.sdk.options import MapOptions, Options, WaitOptions

T = TypeVar("T")


class Canvass(Client[httpx2.Client]):
    """A Canvass server, asked for values of Pydantic models.

        with Canvass("http://127.0.0.1:8011") as canvass:
            decision = canvass.decide(Ticket, "My printer is on fire.")

    `base_url` is `CANVASS_URL` of the environment by default, or else the server on this machine;
    `api_key` is `CANVASS_KEY`. `model` is the name of the served model. `timeout` is how many seconds a
    call waits in all: for the server, for the limits of its key, for the decision. `retries` is how often
    a request is repeated that the server had no room for, or that got no answer: it is the same decision
    each time, never a second one. `http_client` is an
    `httpx2.Client` to use, which stays the caller's to close. May be used from several threads. Raises
    `BadUrl` or `BadKey`.
    """

    @staticmethod
    def _connected(url: str) -> httpx2.Client:
        return sync_http(url)

    def decide(self, form: type[M], /, state: Any = None, **options: Unpack[Options]) -> Decision[M]:
        """A validated instance of a model about a state, with the evidence of each field.

        `state` is JSON, or models, dataclasses, dates and decimals, which become JSON; or there are
        `messages`. A decision that takes longer than one request may wait is gone on with, up to
        `timeout`.

        Raises `InvalidValue` and `ModelRejected` where there is no value to give, `CheckFailed` for one
        that a check refuses, `DecisionFailed` (`Expired`, `Canceled`) for a decision that ended without
        one, `StillRunning` when the time is over, `ApiError` and `Unreachable` for a request that came to
        nothing, `NotExpressible` and `NotJson` for one that could not be made; TypeError and ValueError for a
        call without a state or messages, and for checks that could not be told apart in an audit.
        """
        return self._run(flow.deciding(self._server, form, state, options))

    def submit(self, form: type[M], /, state: Any = None, **options: Unpack[Options]) -> Submitted[M]:
        """The same decision, not waited for. Raises what is wrong with the request as `decide` does."""
        id = self._run(flow.submitting(self._server, form, state, options))
        return Submitted(self, id, form, options)

    def wait(self, job_id: str, form: type[M], /, **options: Unpack[WaitOptions]) -> Decision[M]:
        """The decision of a job that was submitted about this model, once it is done.

        `audit` adds the results of the checks to the job's audit. Raises as `decide`; `NotFound` for a job
        that is not, or no longer, kept.
        """
        return self._run(flow.waiting(self._server, form, job_id, options))

    def map(
        self,
        form: type[M],
        /,
        states: Iterable[Any],
        *,
        concurrency: int = 8,
        progress: bool = True,
        raise_on_error: bool = False,
        **options: Unpack[MapOptions],
    ) -> Generator[Mapped[M], None, None]:
        """A decision about each state, `concurrency` at a time, each result as it comes, out of order.

        `states` may be endless: they are taken in the caller's thread, one more with each result. An error is
        kept in its result, unless `raise_on_error`. With `progress` there is a bar on standard error, where
        that is a terminal. Whoever stops taking results begins no more; what is under way runs on at the
        server. Raises `NotExpressible`, and ValueError for a concurrency under 1 or for what is wrong with
        the checks, at once.
        """
        check_map(form, concurrency, options)
        server = replace(self._server, slice_s=SLICE_S)

        def decide(state: Any, stopping: threading.Event) -> Decision[M]:
            return run(
                flow.deciding(server, form, state, cast("Options", options)), server, self._http, stopping
            )

        return in_threads(decide, states, concurrency, progress, raise_on_error)

    def compile(
        self, form: type[BaseModel] | Mapping[str, Any], /, *, state: Any = None, model: str | None = None
    ) -> dict[str, Any]:
        """The plan that a model, or a JSON Schema, becomes, without running it: the body of `/v1/compile`."""
        return self._run(flow.compiling(self._server, form, state, model))

    def job(self, job_id: str) -> dict[str, Any]:
        """A job as it stands. Raises `NotFound`."""
        return self._run(flow.looking(self._server, job_id))

    def cancel(self, job_id: str) -> dict[str, Any]:
        """A job that was asked to stop, as it stands: canceled once its reads have. Raises `NotFound`."""
        return self._run(flow.canceling(self._server, job_id))

    def audit(self, job_id: str) -> list[dict[str, Any]]:
        """What was kept of a decision with `audit`, a record each. Raises `NotFound`."""
        return self._run(flow.auditing(self._server, job_id))

    def close(self) -> None:
        """Close the connections, unless the client's were given."""
        if self._owned:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, steps: Flow[T]) -> T:
        return run(steps, self._server, self._http)


class Submitted(Handle[M]):
    """A decision on its way. `id` is its job's."""

    def __init__(self, canvass: Canvass, id: str, form: type[M], options: WaitOptions) -> None:
        super().__init__(id, form, options)
        self._canvass = canvass

    def wait(self, timeout: float | None = None) -> Decision[M]:
        """The decision once it is done; `timeout` in seconds, the client's by default. Raises as `decide`."""
        return self._canvass.wait(self.id, self._form, **self._told(timeout))

    def job(self) -> dict[str, Any]:
        """The job as it stands. Raises `NotFound`."""
        return self._canvass.job(self.id)

    def status(self) -> str:
        """`queued`, `running`, `succeeded`, `failed`, `canceled` or `expired`. Raises `NotFound`."""
        return str(self.job()["status"])

    def cancel(self) -> str:
        """Have it canceled; its status, which is `canceled` once its reads have stopped."""
        return str(self._canvass.cancel(self.id)["status"])
