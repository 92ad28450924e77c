"""What the two clients have in common: what they are made of, and what stands for a decision on its way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from pydantic import BaseModel

from client.sdk.checks import named
from client.sdk.decision import M
from client.sdk.drive import server_of
from client.sdk.options import WaitOptions
from client.sdk.schema import schema_of

TIMEOUT_S = 600.0
"""As long as a server gives a decision by default."""

RETRIES = 8

H = TypeVar("H")


class Client(ABC, Generic[H]):
    """A client that calls by an H of httpx2: its own, unless it is given one."""

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        model: str = "jev-latest",
        timeout: float = TIMEOUT_S,
        retries: int = RETRIES,
        http_client: H | None = None,
    ) -> None:
        self._server = server_of(base_url, api_key, model, timeout, retries)
        self._owned = http_client is None
        self._http: H = self._connected(self._server.url) if http_client is None else http_client

    @staticmethod
    @abstractmethod
    def _connected(url: str) -> H:
        """An H of the client's own, for a server's URL."""


class Handle(Generic[M]):
    """A decision on its way: its job's `id`, the model, and what is done once it is there."""

    def __init__(self, id: str, form: type[M], options: WaitOptions) -> None:
        self.id = id
        self._form = form
        self._options: WaitOptions = {
            "checks": options.get("checks"),
            "on_check_failure": options.get("on_check_failure", "raise"),
            "audit": options.get("audit", False),
        }

    def _told(self, timeout: float | None) -> WaitOptions:
        return {**self._options, "timeout": timeout}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, {self._form.__name__})"


def check_map(form: type[BaseModel], concurrency: int, options: WaitOptions) -> None:
    """Raise `NotExpressible`, TypeError or ValueError for a `map` that could not decide anything."""
    schema_of(form)
    named(options.get("checks"))
    if concurrency < 1:
        raise ValueError(f"{concurrency} at a time is none")
