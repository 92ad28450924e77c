"""What can go wrong between a model and its value; a class's docstring is how its message ends.

CanvassError
|-- BadUrl                  a base URL that is none
|-- BadKey                  a key that cannot stand in a header
|-- NotExpressible          a model that no JSON Schema can express
|-- NotJson                 a state, or another part of a request, that is no JSON
|-- Unreachable             no answer over HTTP
|-- ApiError                an answer over HTTP that is a refusal
|   |-- BadRequest          400, 413, 415, 422: the request itself
|   |-- Unauthorized        401, 403: the API key
|   |-- NotFound            404: no such job, or not kept any more
|   |-- Conflict            409
|   |-- RateLimited         429: the key's rate, or its number of open decisions
|   |-- Overloaded          503, 529: come again
|   `-- ServerFault         any other
|-- StillRunning            the call's time is over, the job goes on
|-- DecisionFailed          a job that ended without a value
|   |-- Expired             its deadline passed
|   `-- Canceled            someone asked for that
|-- InvalidValue            a value that does not keep to the schema, after its second attempt
|-- ModelRejected           a value that keeps to the schema and that the model's own validators reject
|-- CheckFailed             a rule of the caller does not hold
`-- NotRecorded             a decision whose checks could not be added to its audit

Errors about a job that was accepted carry `job_id`; those about a value carry `evidence` as well. Each is a
`ClientError`, too, which the command tells in a sentence. A call that is wrong as it is written raises what
Python has for that: TypeError or ValueError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from client import errors

if TYPE_CHECKING:
    from client.sdk.decision import Decision
    from client.sdk.evidence import EvidenceMap

_SHOWN = 5
"""How many of several faults a message tells."""


class CanvassError(errors.ClientError):
    """Anything that the SDK raises about a request or its answer. It survives a pickle, but for its cause."""


class BadUrl(CanvassError):
    """A base URL begins with http:// or https://."""


class BadKey(CanvassError, errors.BadKey):
    """A key is one word of printable ASCII; was it copied whole, and alone?"""


class NotExpressible(CanvassError):
    """A model that is decided has a JSON Schema: JSON's types, enums, models, lists and unions of them."""


class NotJson(CanvassError):
    """A state is JSON: texts, numbers, lists and objects, or models and dataclasses of them."""


class Unreachable(CanvassError):
    """Start a server on this machine with `canvass up`, or name another by base_url or CANVASS_URL."""

    def __init__(self, url: str, reason: str, *, connected: bool) -> None:
        super().__init__(f"Cannot reach Canvass at {url} ({reason}). {Unreachable.__doc__}")
        self.url = url
        self.reason = reason
        self.connected = connected


class ApiError(CanvassError):
    """The server refused.

    `status` is the HTTP status; `code` the name of what is wrong; `message` a sentence; `path` the field
    it is about, as `questions.a.type`, empty where it is about no field; `retry_after_s` seconds after
    which to come again, None where the server does not say; `request_id` what the server calls the request.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        path: str = "",
        *,
        retry_after_s: float | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(f"{status} {code}: {path + ': ' if path else ''}{message}")
        self.status = status
        self.code = code
        self.message = message
        self.path = path
        self.retry_after_s = retry_after_s
        self.request_id = request_id


class BadRequest(ApiError):
    """The request itself is wrong, or too large for the model."""


class Unauthorized(ApiError):
    """No API key where one is wanted, or a wrong one."""


class NotFound(ApiError):
    """No such job, or not yours, or not kept any more."""


class Conflict(ApiError):
    """The request does not go with what was asked before."""


class RateLimited(ApiError):
    """The key's rate or its number of open decisions is used up."""


class Overloaded(ApiError):
    """There is no room, or no engine, now."""


class ServerFault(ApiError):
    """The server failed, or what answered is no Canvass."""


class StillRunning(CanvassError, TimeoutError):
    """The job goes on: `wait(job_id, Model)` takes up the waiting, `cancel(job_id)` ends it."""

    def __init__(self, job_id: str, seconds: float) -> None:
        super().__init__(f"{job_id} is not done after {seconds:g} s. {StillRunning.__doc__}")
        self.job_id = job_id


class DecisionFailed(CanvassError):
    """A job ended without a value. `job` is the job as the server tells it; `code` is its error's."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        error = job.get("error") or {}
        reason = f" ({error['code']}): {error['message']}" if error else ""
        super().__init__(f"{job['id']} is {job['status']}{reason}")
        self.job = job
        self.job_id = str(job["id"])
        self.code = str(error.get("code", job["status"]))


class Expired(DecisionFailed):
    """Its deadline passed first."""


class Canceled(DecisionFailed):
    """Someone asked for it to be canceled."""


class InvalidValue(CanvassError):
    """The value does not keep to the schema, and the second attempt did not mend it.

    `errors` has `path` (a JSON pointer), `code` and `message` of each fault; `evidence` is that of the fields
    there are; `body` the whole answer.
    """

    def __init__(
        self,
        job_id: str,
        errors: Sequence[Mapping[str, Any]],
        evidence: EvidenceMap,
        body: Mapping[str, Any],
    ) -> None:
        told = [f"{one.get('path') or 'the value'}: {one.get('message', 'is wrong')}" for one in errors]
        super().__init__(f"{job_id} has no valid value: {_listed(told)}")
        self.job_id = job_id
        self.errors = tuple(errors)
        self.evidence = evidence
        self.body = body


class ModelRejected(CanvassError):
    """The value keeps to the schema, and the model's own validators reject it.

    `cause` is what they raised, a pydantic `ValidationError` nearly always; `errors` are its entries, empty
    for another; `value` is the JSON value; `evidence` that of its fields; `body` the whole answer.
    """

    def __init__(
        self,
        job_id: str,
        name: str,
        value: Any,
        cause: Exception,
        evidence: EvidenceMap,
        body: Mapping[str, Any],
    ) -> None:
        found = (
            cause.errors(include_url=False, include_context=False)
            if isinstance(cause, ValidationError)
            else []
        )
        told = [f"{'.'.join(map(str, one['loc'])) or 'the value'}: {one['msg']}" for one in found]
        super().__init__(f"{name} rejects the value of {job_id}: {_listed(told or [repr(cause)])}")
        self.job_id = job_id
        self.value = value
        self.cause = cause
        self.errors = tuple(found)
        self.evidence = evidence
        self.body = body


class CheckFailed(CanvassError):
    """A rule of the caller does not hold. `decision` is whole; `failed` are the checks that do not hold."""

    def __init__(self, decision: Decision[Any]) -> None:
        self.failed = tuple(one for one in decision.checks if not one.passed)
        told = [f"{one.name}{': ' + one.message if one.message else ''}" for one in self.failed]
        super().__init__(f"{decision.job_id} fails {_listed(told)}")
        self.decision = decision
        self.job_id = decision.job_id
        self.evidence = decision.evidence


class NotRecorded(CanvassError):
    """The checks of a decision could not be added to its audit. `decision` is whole; the cause says why."""

    def __init__(self, decision: Decision[Any], reason: Exception) -> None:
        super().__init__(f"the checks of {decision.job_id} are not in its audit: {reason}")
        self.decision = decision
        self.job_id = decision.job_id


def _listed(told: Sequence[str]) -> str:
    """The first few of some faults in one line."""
    more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return "; ".join(told[:_SHOWN]) + more
