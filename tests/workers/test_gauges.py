from __future__ import annotations

import asyncio
import socket

import httpx2
import pytest
from prometheus_client import CollectorRegistry

from client.ports import free_port
from workers.metrics import DecisionMetrics
from workers.metrics_port import tell_metrics
from workers.pool.gauges import cache_figures
from workers.trace_ids import root_id_of, trace_id_of
from workers.tracing import Untraced, make_tracer


def test_cache_figures_of_several_engines_behind_one_url_are_added_up() -> None:
    text = """
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1.5e+03
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 500.0
vllm:prefix_cache_queries_created{engine="0",model_name="m"} 1.7e+09
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 100
vllm:prefix_cache_hits_total{engine="1",model_name="m"} 20
vllm:external_prefix_cache_hits_total{engine="0"} 7
"""
    assert cache_figures(text) == (2000, 120)


@pytest.mark.parametrize("text", ["", "vllm:prefix_cache_hits_total 3", "<html>no metrics</html>"])
def test_an_engine_that_does_not_count_its_cache_tells_nothing(text: str) -> None:
    assert cache_figures(text) is None


def test_a_decision_that_never_began_has_a_total_time_alone() -> None:
    registry = CollectorRegistry()
    metrics = DecisionMetrics(registry)
    metrics.end("expired", "systemone", "interactive", created=100.0, started=0.0, now=103.0)
    name, lane = "canvass_decision_seconds_sum", "interactive"
    assert registry.get_sample_value(name, {"phase": "total", "lane": lane}) == 3
    assert registry.get_sample_value(name, {"phase": "queued", "lane": lane}) is None


def test_a_port_that_is_taken_is_no_fault_and_is_had_once_it_is_free() -> None:
    port = free_port()

    async def told_with_the_port_taken() -> None:
        with socket.create_server(("127.0.0.1", port)):
            await asyncio.wait_for(tell_metrics(CollectorRegistry(), "127.0.0.1", port), 10)

    async def told() -> int:
        telling = asyncio.create_task(tell_metrics(CollectorRegistry(), "127.0.0.1", port))
        try:
            async with httpx2.AsyncClient() as client:
                while True:
                    try:
                        return (await client.get(f"http://127.0.0.1:{port}/metrics")).status_code
                    except httpx2.ConnectError:
                        await asyncio.sleep(0.02)
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    asyncio.run(told_with_the_port_taken())
    assert asyncio.run(asyncio.wait_for(told(), 20)) == 200


def test_without_an_endpoint_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)
    assert isinstance(make_tracer("canvass-worker"), Untraced)


def test_a_trace_has_the_id_of_its_decision_and_a_batch_decision_one_of_its_own() -> None:
    assert f"{trace_id_of('dec_0123456789abcdef0123456789abcdef'):032x}" == "0123456789abcdef0123456789abcdef"
    items = {trace_id_of(f"bat_0123456789abcdef0123456789abcdef.{number}") for number in range(100)}
    assert len(items) == 100
    assert all(0 < root_id_of(f"dec_{number}") < 2**64 for number in range(100))
