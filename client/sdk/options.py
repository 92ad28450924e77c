"""What a decision may be told beside its model and its state, and the request that all of it becomes."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from pydantic_core import PydanticSerializationError, to_json

from client.sdk.checks import Checks, OnCheckFailure
from client.sdk.errors import NotJson

Image = bytes | Path | str
"""A PNG, JPEG, WebP or GIF: its bytes, its file, or a data URL in base64."""

Message = Mapping[str, Any]
"""One message of a conversation: `{"role", "content"}`."""


class WaitOptions(TypedDict, total=False):
    """What is done once a decision is there.

    `timeout`: seconds that the call waits in all, over all attempts; the client's by default. `checks`: rules
    that the value must keep to, by name, or functions. `on_check_failure`: whether one that does not hold
    raises `CheckFailed` ("raise", the default) or is only told in `Decision.checks` ("record"). `audit`: add
    what the checks said to the job's audit.
    """

    timeout: float | None
    checks: Checks | None
    on_check_failure: OnCheckFailure
    audit: bool


class MapOptions(WaitOptions, total=False):
    """What each decision of a `map` may be told; what is left out is left to the server.

    All that `WaitOptions` has, and `instructions`: context ahead of every question (a text, or JSON).
    `samples`: draws of each read, 1 to 32, or "auto". `steps`: denoise steps of a read, 1 to 8. `think`:
    tokens of a thought ahead of the answers. `seed`: of the first draw's noise. `audit` also keeps the raw
    reads under the job; `schema_version` is the caller's name of the schema, recorded with them. `images`:
    shown after the state. `deadline_ms`: how long the decision may take in all, the queue included.
    `metadata`: JSON that the job carries. `diagnostics`: have the plan that ran in `Decision.body`.
    `model`: another model than the client's. `extra_body`: what else is to stand in the body, a
    `webhook` say.
    """

    instructions: Any
    samples: int | Literal["auto"]
    steps: int
    think: int
    seed: int
    schema_version: str
    images: Sequence[Image]
    deadline_ms: int
    metadata: Mapping[str, Any]
    extra_body: Mapping[str, Any]
    diagnostics: bool
    model: str


class Options(MapOptions, total=False):
    """What one decision may be told.

    All that `MapOptions` has, and `messages`: a conversation so far, in place of the state.
    `idempotency_key`: the caller's own name of this request, so that one sent again later finds the same
    decision; without it every call has one of its own.
    """

    messages: Sequence[Message]
    idempotency_key: str


_SENT = (
    "instructions",
    "samples",
    "steps",
    "think",
    "seed",
    "audit",
    "schema_version",
    "deadline_ms",
    "metadata",
    "diagnostics",
)
"""Options that go into the body under their own names."""


def body_of(schema: Mapping[str, Any], state: Any, options: Options, model: str) -> bytes:
    """The JSON body of a decision. Raises `NotJson`; TypeError unless it has a state, or messages; ValueError
    for no messages.
    """
    messages = options.get("messages")
    if (state is None) == (messages is None):
        raise TypeError("a decision is about a state, or about messages: one of the two")
    if messages is not None and not messages:
        raise ValueError("messages are a conversation so far: there is at least one")
    given: Mapping[str, Any] = options
    body: dict[str, Any] = {
        "model": options.get("model", model),
        "state": messages if state is None else state,
        "schema": schema,
        **{name: given[name] for name in _SENT if given.get(name) is not None},
    }
    body |= options.get("extra_body") or {}
    if images := options.get("images"):
        body["images"] = [_image(image) for image in images]
    return json_of(body)


def json_of(body: Any) -> bytes:
    """JSON, of models, dataclasses and dates too; NaN and infinities become null. Raises `NotJson`."""
    try:
        return to_json(body, inf_nan_mode="null")
    except (PydanticSerializationError, ValueError) as error:
        raise NotJson(f"{error}. {NotJson.__doc__}") from error


def _image(image: Image) -> str:
    if isinstance(image, str):
        return image
    content = image.read_bytes() if isinstance(image, Path) else image
    # The server goes by the bytes, whatever the type says.
    return f"data:application/octet-stream;base64,{base64.b64encode(content).decode()}"
