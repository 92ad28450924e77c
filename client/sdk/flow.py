"""What the SDK does, step by step, without doing it: a flow yields the calls and pauses it wants, is sent the
response of each call, and returns a result. `client.sdk.drive` runs flows, in a thread or on an event loop.

    deciding    post the decision, go on by polling its job where it takes longer, read the value, run checks
    submitting  post the decision, take its id
    waiting     poll a job to its end, read the value, run checks
    compiling   the plan of a model, without running it
    looking, canceling, auditing   a job, a job that is to stop, what was kept of a job
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import quote

import orjson
from pydantic import BaseModel

from client.http import OK, Response
from client.sdk.checks import MOST_NAME, CheckResult, named, run_checks
from client.sdk.decision import Decision, M, decision_of
from client.sdk.errors import (
    Canceled,
    CanvassError,
    CheckFailed,
    DecisionFailed,
    Expired,
    ModelRejected,
    NotRecorded,
    ServerFault,
    StillRunning,
    Unreachable,
)
from client.sdk.options import Options, WaitOptions, body_of, json_of
from client.sdk.refusals import REQUEST_ID, accepted, api_error, passing, retry_after_s
from client.sdk.schema import schema_of

CREATED, ACCEPTED = 201, 202
SLICE_S = 50.0
"""How long one request waits: less than the 60 s that a server takes, and after which proxies give up."""

FIRST_TRIES = 2
"""Attempts at a server that never answered: one that is not there should be told soon."""

OWN = (409, 429)
"""Refusals for what the caller itself has under way, or asked too fast."""

_LEAST_PAUSE_S, _BACKOFF_S, _MOST_BACKOFF_S = 0.1, 0.5, 8.0
_SPARE_S = 30.0
"""How much longer than it was asked to wait a server may take, before its connection counts as dead."""

_CHECKS, _MESSAGE = 100, 2000
"""What an audit takes: checks of one request, characters of a message."""

_ENDED: dict[str, type[DecisionFailed]] = {"expired": Expired, "canceled": Canceled}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A request to make; `timeout_s` is how long its answer may take."""

    method: str
    path: str
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = _SPARE_S


@dataclass(frozen=True, slots=True)
class Pause:
    """A time to do nothing."""

    seconds: float


Flow = Generator[Call | Pause, Response, T]
"""Steps that come to a result of type T. A pause is sent any response; it counts for nothing."""


@dataclass(slots=True)
class Server:
    """The server as a client knows it: where, with which headers, which model to name, how patient to be.

    `retries` is how often one call is repeated, `slice_s` how many seconds one request waits at most for a
    decision. `heard` turns true with the first response.
    """

    url: str
    headers: Mapping[str, str]
    model: str
    timeout_s: float
    retries: int
    slice_s: float = SLICE_S
    heard: bool = False


def deciding(server: Server, form: type[M], state: Any, options: Options) -> Flow[Decision[M]]:
    """A decision from its post to its value."""
    named(options.get("checks"))
    until, seconds = _until(server, options.get("timeout"))
    content = body_of(schema_of(form), state, options, server.model)
    wait_s = _wait(server, until)
    headers = {**_once(options), "prefer": f"wait={max(1, int(wait_s))}"}
    call = Call("POST", "/v1/systemone", content, headers, wait_s + _SPARE_S)
    response = yield from _asked(server, call, until)
    id = response.headers.get(REQUEST_ID, "")
    if response.status == OK:
        body = _object(response)
    elif accepted(response):
        # It was accepted, so its job says how it stands, whatever came of this request.
        body = yield from _polled(server, id, until, seconds)
    else:
        raise api_error(response)
    return (yield from _settled(server, form, id, body, options, until))


def submitting(server: Server, form: type[M], state: Any, options: Options) -> Flow[str]:
    """The id of a decision that is not waited for."""
    named(options.get("checks"))
    until, _ = _until(server, options.get("timeout"))
    content = body_of(schema_of(form), state, options, server.model)
    call = Call("POST", "/v1/systemone", content, {**_once(options), "prefer": "respond-async"})
    response = yield from _asked(server, call, until)
    if not accepted(response):
        raise api_error(response)
    return response.headers[REQUEST_ID]


def waiting(server: Server, form: type[M], id: str, options: WaitOptions) -> Flow[Decision[M]]:
    """A job from here to its value."""
    named(options.get("checks"))
    until, seconds = _until(server, options.get("timeout"))
    body = yield from _polled(server, id, until, seconds)
    return (yield from _settled(server, form, id, body, options, until))


def compiling(
    server: Server, form: type[BaseModel] | Mapping[str, Any], state: Any, model: str | None
) -> Flow[dict[str, Any]]:
    """The plan of a model, or of a JSON Schema."""
    body = {"model": model or server.model, "schema": form if isinstance(form, Mapping) else schema_of(form)}
    stated = {} if state is None else {"state": state}
    return (yield from _fetched(server, Call("POST", "/v1/compile", json_of({**body, **stated}))))


def looking(server: Server, id: str) -> Flow[dict[str, Any]]:
    """A job as it stands."""
    return _fetched(server, Call("GET", _job(id)))


def canceling(server: Server, id: str) -> Flow[dict[str, Any]]:
    """A job that was asked to stop, as it stands."""
    return _fetched(server, Call("POST", _job(id, "/cancel")))


def auditing(server: Server, id: str) -> Flow[list[dict[str, Any]]]:
    """The records of a job's audit."""
    response = yield from _asked(server, Call("GET", _job(id, "/audit")), _until(server, None)[0])
    if response.status != OK:
        raise api_error(response)
    return [orjson.loads(line) for line in response.content.split(b"\n") if line]


def _fetched(server: Server, call: Call) -> Flow[dict[str, Any]]:
    """The JSON object that one call answers with."""
    response = yield from _asked(server, call, _until(server, None)[0])
    if response.status not in (OK, ACCEPTED):
        raise api_error(response)
    return _object(response)


def _job(id: str, below: str = "") -> str:
    """The path of a job, or of what is below it."""
    return f"/v1/jobs/{quote(id, safe='')}{below}"


def _asked(server: Server, call: Call, until: float) -> Flow[Response]:
    """The response to a call that is repeated while that has a point, or the last one there was."""
    tries = 0
    while True:
        failure: Unreachable | None = None
        response = _NOTHING
        try:
            response = yield call
        except Unreachable as error:
            failure = error
        else:
            server.heard = True
            if accepted(response) or not passing(response):
                return response
        # Where it is the caller's own limit or first request that is in the way, only the time counts.
        tries += response.status not in OWN
        absent = failure is not None and not failure.connected and not server.heard
        most = min(FIRST_TRIES, server.retries) if absent else server.retries
        pause = _pause(tries, retry_after_s(response))
        if tries > most or time.monotonic() + pause > until:
            if failure is not None:
                raise failure
            return response
        yield Pause(pause)


def _polled(server: Server, id: str, until: float, seconds: float) -> Flow[dict[str, Any]]:
    """The result of a job once it is done. Raises `StillRunning`, `DecisionFailed` or `ApiError`."""
    while True:
        wait_s, begun = _wait(server, until), time.monotonic()
        call = Call("GET", f"{_job(id)}?wait={wait_s:.3f}", timeout_s=wait_s + _SPARE_S)
        response = yield from _asked(server, call, until)
        if response.status != OK:
            raise api_error(response)
        job = _object(response)
        if job["done"]:
            break
        if time.monotonic() >= until:
            raise StillRunning(id, seconds)
        if time.monotonic() - begun < min(wait_s, _BACKOFF_S):
            # A server that is about to stop waits for nothing.
            yield Pause(_BACKOFF_S)
    if job["status"] != "succeeded" or not isinstance(job.get("result"), dict):
        raise _ENDED.get(job["status"], DecisionFailed)(job)
    result: dict[str, Any] = job["result"]
    return result


def _settled(
    server: Server, form: type[M], id: str, body: dict[str, Any], options: WaitOptions, until: float
) -> Flow[Decision[M]]:
    """The decision in an answer, its checks run, and recorded where there is an audit."""
    audit = options.get("audit", False)
    try:
        decision = decision_of(form, id, body)
    except ModelRejected as rejected:
        # The model's validators are rules of the caller, too.
        if audit:
            try:
                rule = CheckResult(form.__name__[:MOST_NAME], False, str(rejected))
                yield from _recorded(server, id, [rule], until)
            except CanvassError as error:
                rejected.add_note(f"Its audit does not say so: {error}")
        raise
    decision = replace(decision, checks=run_checks(options.get("checks"), decision.value))
    if audit and decision.checks:
        try:
            yield from _recorded(server, id, decision.checks, until)
        except CanvassError as error:
            raise NotRecorded(decision, error) from error
    if options.get("on_check_failure") != "record" and not all(one.passed for one in decision.checks):
        raise CheckFailed(decision)
    return decision


def _recorded(server: Server, id: str, checks: Sequence[CheckResult], until: float) -> Flow[None]:
    """Add checks to a job's audit."""
    listed = [{"name": one.name, "passed": one.passed, "message": one.message[:_MESSAGE]} for one in checks]
    # There is time for it, even where the decision took all of the call's.
    until = max(until, time.monotonic() + _SPARE_S)
    for first in range(0, len(listed), _CHECKS):
        content = json_of({"checks": listed[first : first + _CHECKS]})
        response = yield from _asked(server, Call("POST", _job(id, "/audit"), content), until)
        if response.status != CREATED:
            raise api_error(response)


_NOTHING = Response(0, b"", {})


def _until(server: Server, timeout: float | None) -> tuple[float, float]:
    """When a call's time is over, on the monotonic clock, and how many seconds it has."""
    seconds = server.timeout_s if timeout is None else timeout
    return time.monotonic() + seconds, seconds


def _wait(server: Server, until: float) -> float:
    """How long one request should wait, in seconds."""
    return max(0.0, min(server.slice_s, until - time.monotonic()))


def _once(options: Options) -> dict[str, str]:
    """The header by which a repeated request finds the decision of the first."""
    return {"idempotency-key": options.get("idempotency_key") or uuid.uuid4().hex}


def _pause(tries: int, said: float | None) -> float:
    """Seconds before the next attempt: twice as long each time, and no less than the server said."""
    grown = min(_MOST_BACKOFF_S, _BACKOFF_S * 2.0 ** (tries - 1)) if tries else 0.0
    return max(_LEAST_PAUSE_S, grown * random.uniform(0.5, 1.0), (said or 0.0) * random.uniform(1.0, 1.1))


def _object(response: Response) -> dict[str, Any]:
    try:
        body = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise ServerFault(response.status, "no_json", "the answer is no JSON object; is it Canvass?")
    return body
