"""The tracer that sends to an OpenTelemetry collector. Loaded only where one is configured.

Everything but the ids is OpenTelemetry's: the endpoint, headers, sampler, batch sizes and resource come from
its own environment variables. The global provider is left alone.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags, set_span_in_context

from workers.trace_ids import Attribute, root_id_of, trace_id_of

CLOSE_WITHIN_S = 3.0
"""Seconds that a process which ends gives its last spans; a collector that is away must not hold it up."""


class OtelTracer:
    """Makes spans, and sends them in batches from a thread of its own. Spans are begun on one thread."""

    def __init__(self, service: str) -> None:
        self._ids = _Ids()
        resource = Resource.create({"service.name": service}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("canvass")

    def root(self, name: str, id: str, **attributes: Attribute) -> AbstractContextManager[object]:
        """The span that a decision's trace begins with."""
        self._ids.next = (trace_id_of(id), root_id_of(id))
        known = {"canvass.decision": id, **_named(attributes)}
        return self._tracer.start_as_current_span(name, Context(), SpanKind.SERVER, known)

    def within(self, name: str, id: str, **attributes: Attribute) -> AbstractContextManager[object]:
        """A span under a decision's root, wherever that is or was."""
        known = {"canvass.decision": id, **_named(attributes)}
        return self._tracer.start_as_current_span(name, self._parent(name, id), SpanKind.CONSUMER, known)

    def span(self, name: str, **attributes: Attribute) -> AbstractContextManager[object]:
        """A span under the current one."""
        return self._tracer.start_as_current_span(name, attributes=_named(attributes))

    def close(self) -> None:
        """Send what is left."""
        closing = threading.Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        closing.start()
        closing.join(CLOSE_WITHIN_S)

    def _parent(self, name: str, id: str) -> Context:
        """The root of a decision's trace, sampled when the sampler takes that trace: everyone agrees then."""
        trace_id = trace_id_of(id)
        decided = self._provider.sampler.should_sample(None, trace_id, name).decision
        sampled = decided is Decision.RECORD_AND_SAMPLE
        flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
        context = SpanContext(trace_id, root_id_of(id), is_remote=True, trace_flags=flags)
        return set_span_in_context(NonRecordingSpan(context), Context())


class _Ids(RandomIdGenerator):
    """Random ids, but for a root span: its ids are said just before it is begun."""

    def __init__(self) -> None:
        self.next: tuple[int, int] | None = None

    def generate_trace_id(self) -> int:
        return self.next[0] if self.next else super().generate_trace_id()

    def generate_span_id(self) -> int:
        said, self.next = self.next, None
        return said[1] if said else super().generate_span_id()


def _named(attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    return {f"canvass.{name}": value for name, value in attributes.items()}
