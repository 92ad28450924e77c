"""The SDK: a Pydantic model in, a validated instance and the evidence of each field out. Talks HTTP only.

`canvass.py` and `asynchronous.py` are the clients; what they do stands in `flow.py`, how it is done in
`drive.py`.
"""

from client.sdk.asynchronous import AsyncCanvass, AsyncSubmitted
from client.sdk.canvass import Canvass, Submitted
from client.sdk.checks import CheckResult
from client.sdk.decision import Decision, Usage
from client.sdk.errors import (
    ApiError,
    BadKey,
    BadRequest,
    BadUrl,
    Canceled,
    CanvassError,
    CheckFailed,
    Conflict,
    DecisionFailed,
    Expired,
    InvalidValue,
    ModelRejected,
    NotExpressible,
    NotFound,
    NotJson,
    NotRecorded,
    Overloaded,
    RateLimited,
    ServerFault,
    StillRunning,
    Unauthorized,
    Unreachable,
)
from client.sdk.evidence import Evidence, EvidenceMap
from client.sdk.mapping import Mapped
from client.sdk.markers import Alone, Span
from client.sdk.options import MapOptions, Options
from client.sdk.schema import model_schema

__all__ = [
    "Alone",
    "ApiError",
    "AsyncCanvass",
    "AsyncSubmitted",
    "BadKey",
    "BadRequest",
    "BadUrl",
    "Canceled",
    "Canvass",
    "CanvassError",
    "CheckFailed",
    "CheckResult",
    "Conflict",
    "Decision",
    "DecisionFailed",
    "Evidence",
    "EvidenceMap",
    "Expired",
    "InvalidValue",
    "MapOptions",
    "Mapped",
    "ModelRejected",
    "NotExpressible",
    "NotFound",
    "NotJson",
    "NotRecorded",
    "Options",
    "Overloaded",
    "RateLimited",
    "ServerFault",
    "Span",
    "StillRunning",
    "Submitted",
    "Unauthorized",
    "Unreachable",
    "Usage",
    "model_schema",
]
