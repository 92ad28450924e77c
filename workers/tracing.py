"""Traces: one per decision, across processes, where OpenTelemetry has an endpoint to send them to.

A decision's trace id and the id of its root span follow from its own id, so nothing has to travel with it:
whoever works on it knows its trace. Without `OTEL_EXPORTER_OTLP_ENDPOINT` (or
`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`) nothing of OpenTelemetry is loaded here, and a span is a context manager
that does nothing.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from workers.trace_ids import Attribute

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class Tracer(Protocol):
    """Makes spans. Each is entered where its work begins; what it raises is told in the span."""

    def root(self, name: str, id: str, **attributes: Attribute) -> AbstractContextManager[object]:
        """The span that a decision's trace begins with."""

    def within(self, name: str, id: str, **attributes: Attribute) -> AbstractContextManager[object]:
        """A span under a decision's root, wherever that is or was."""

    def span(self, name: str, **attributes: Attribute) -> AbstractContextManager[object]:
        """A span under the current one."""

    def close(self) -> None:
        """Send what is left."""


_NOTHING = nullcontext()


class Untraced:
    """Traces nothing, for nothing."""

    def root(self, name: str, id: str, **attributes: Attribute) -> AbstractContextManager[object]:
        """Nothing."""
        return _NOTHING

    def within(self, name: str, id: str, **attributes: Attribute) -> AbstractContextManager[object]:
        """Nothing."""
        return _NOTHING

    def span(self, name: str, **attributes: Attribute) -> AbstractContextManager[object]:
        """Nothing."""
        return _NOTHING

    def close(self) -> None:
        """Nothing."""


def make_tracer(service: str) -> Tracer:
    """The tracer of this process, as OpenTelemetry's environment variables say; `service` is its name there.

    Raises ModuleNotFoundError when an endpoint is set and the extra `otel` is not installed.
    """
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return Untraced()
    from workers.otel import OtelTracer

    return OtelTracer(service)
