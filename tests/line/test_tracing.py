"""Traces: what API and worker did for one decision is one trace, whose id is the decision's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from client.stack import Stack
from tests.line.collectors import Collector, Span, collecting
from tests.line.job_support import ASYNC, ONE_READ, URGENT, job, post, submit, until


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


@pytest.fixture(scope="module")
def traced(script: str, collector: Collector) -> Iterator[Stack]:
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "CANVASS_SHARD_READS": "4",
    }
    with Stack(engines=script, env=env) as stack:
        yield stack


def test_a_decision_is_one_trace_from_the_request_to_the_engine(traced: Stack, collector: Collector) -> None:
    response = post(traced.url, ONE_READ)
    assert response.status_code == 200
    id = response.headers["x-typesafe-request-id"]
    trace = id.removeprefix("dec_")
    until(lambda: {"decision", "publish", "engine", "wave"} <= collector.of(trace).keys())
    spans = collector.of(trace)
    (root,), (wave,), (read,), (engine,) = (spans[name] for name in ("decision", "wave", "read", "engine"))
    assert (root.service, wave.service) == ("canvass-api", "canvass-worker")
    assert root.parent == ""
    assert [wave.parent, read.parent, engine.parent] == [root.id, wave.id, read.id]
    assert root.attributes["canvass.decision"] == wave.attributes["canvass.decision"] == id
    assert engine.attributes["canvass.engine"] == traced.engine_urls[0]
    under_root = [span for name in ("plan", "store", "publish") for span in spans[name]]
    assert {span.name for span in under_root if span.parent == root.id} == {"plan", "store", "publish"}


def test_the_shards_of_a_wide_decision_are_in_its_trace(traced: Stack, collector: Collector) -> None:
    questions = {f"q{number}": URGENT for number in range(10)}
    id = submit(traced.url, {"questions": questions}, ASYNC)
    assert job(traced.url, id, wait=20)["status"] == "succeeded"
    trace = id.removeprefix("dec_")
    # Each process sends in its own time.
    until(lambda: {"decision", "shard", "advance"} <= collector.of(trace).keys())
    spans = collector.of(trace)
    assert len(spans["shard"]) == 3
    assert len(spans["read"]) == 10
    assert {span.parent for span in spans["shard"]} == {spans["decision"][0].id}


def test_two_decisions_are_two_traces(traced: Stack, collector: Collector) -> None:
    ids = [post(traced.url, ONE_READ).headers["x-typesafe-request-id"].removeprefix("dec_") for _ in range(2)]
    until(lambda: all("wave" in collector.of(id) and "decision" in collector.of(id) for id in ids))
    for id in ids:
        everything: list[Span] = [span for spans in collector.of(id).values() for span in spans]
        known = {span.id for span in everything}
        assert all(span.parent in known for span in everything if span.name != "decision")


def test_a_sampler_takes_a_trace_whole_or_not_at_all(script: str) -> None:
    with collecting() as collector:
        env = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
            "OTEL_TRACES_SAMPLER_ARG": "0.5",
        }
        with Stack(engines=script, env=env) as stack:
            for number in range(40):
                assert post(stack.url, {**ONE_READ, "state": f"State {number}."}).status_code == 200
        # The stack is stopped, and both processes have sent what they had.
        traces = {span.trace for span in collector.spans}
        services = {trace: {s.service for s in collector.spans if s.trace == trace} for trace in traces}
    assert 0 < len(traces) < 40
    assert all(names == {"canvass-api", "canvass-worker"} for names in services.values())


def test_a_collector_that_is_away_costs_no_decision(script: str) -> None:
    with Stack(engines=script, env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}) as stack:
        assert post(stack.url, ONE_READ).status_code == 200
