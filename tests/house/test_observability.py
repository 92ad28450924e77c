"""deploy/ and docs/operations.md name metrics that exist, with the labels they have; settings too."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from api.metrics import ApiMetrics
from api.settings import ApiSettings
from workers.metrics import WorkerMetrics
from workers.pool.engine import Engine
from workers.pool.gauges import PoolGauges
from workers.pool.vllm import VllmClient

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs/operations.md").read_text()
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/canvass.json").read_text())
ALERTS: dict[str, Any] = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
PROMETHEUS: dict[str, Any] = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]

SCRAPED = {"job", "instance"}
"""Labels that Prometheus adds to all it scrapes."""

EVERY = {
    "process_cpu_seconds_total": set[str](),
    "process_resident_memory_bytes": set[str](),
    "up": set[str](),
}
"""What every process tells, and what Prometheus says of each."""


class Known(NamedTuple):
    """A metric as the code makes it."""

    says: str
    labels: tuple[str, ...]
    kind: str


def known() -> dict[str, Known]:
    """Every metric of ours by the name that it is told under."""
    found = declared(WorkerMetrics().registry) | declared(ApiMetrics().registry) | gauges()
    return {name: metric for name, metric in found.items() if name.startswith("canvass_")}


def declared(registry: CollectorRegistry) -> dict[str, Known]:
    labels = {
        collector._name: collector._labelnames
        for collector in registry._collector_to_names
        if isinstance(collector, MetricWrapperBase)
    }
    return {
        family.name + ("_total" if family.type == "counter" else ""): Known(
            family.documentation, tuple(labels.get(family.name, ())), family.type
        )
        for family in registry.collect()
    }


def gauges() -> dict[str, Known]:
    """Those of the pool are made when they are asked for, so there has to be an engine."""

    async def collected() -> dict[str, Known]:
        engine = Engine("http://engine", asyncio.Semaphore(1))
        async with aiohttp.ClientSession() as session:
            gauges = PoolGauges(lambda: [engine], VllmClient(session, 0), lambda: 0.0, CollectorRegistry())
            return {
                family.name + ("_total" if family.type == "counter" else ""): Known(
                    family.documentation, ("engine",), family.type
                )
                for family in gauges.collect()
            }

    return asyncio.run(collected())


def told() -> dict[str, set[str]]:
    """Every name that a query may use, with its labels."""
    names = {name: set(metric.labels) for name, metric in known().items() if metric.kind != "histogram"}
    for name, metric in known().items():
        if metric.kind == "histogram":
            names |= {f"{name}_{part}": set(metric.labels) for part in ("sum", "count")}
            names[f"{name}_bucket"] = {*metric.labels, "le"}
    return {name: labels | SCRAPED for name, labels in (names | EVERY).items()}


def queries() -> list[str]:
    """Every query of the dashboard and of the alert rules."""
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    return [*panels, *(rule["expr"] for group in ALERTS["groups"] for rule in group["rules"])]


SELECTOR = re.compile(r"\b(canvass_\w+|process_\w+|up)\b(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\bby \(([^)]*)\)")


@pytest.mark.parametrize("query", queries())
def test_a_query_names_metrics_and_labels_that_exist(query: str) -> None:
    names = told()
    selectors = SELECTOR.findall(query)
    assert selectors
    for name, matchers in selectors:
        assert name in names
        assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)) <= names[name]
    for grouping in GROUPING.findall(query):
        labels = {label.strip() for label in grouping.split(",")}
        assert any(labels <= names[name] for name, _ in selectors)
    assert query.count("(") == query.count(")")


def test_every_metric_but_a_few_is_somewhere_on_the_dashboard() -> None:
    shown = {name for query in queries() for name, _ in SELECTOR.findall(query)}
    base = {re.sub("_(bucket|sum|count)$", "", name) for name in shown}
    assert set(known()) - base == set()


def test_panels_have_titles_of_their_own_and_do_not_overlap() -> None:
    panels = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_each_rule_says_what_is_wrong_and_what_to_look_at() -> None:
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description"}
        assert f"`{rule['alert']}`" in DOCS


def test_prometheus_scrapes_what_compose_starts_where_it_tells_its_metrics() -> None:
    ports = {
        name: config["port"]
        for job in PROMETHEUS["scrape_configs"]
        for config in job["dns_sd_configs"]
        for name in config["names"]
    }
    assert ports.keys() <= SERVICES.keys()
    assert ports["api"] == int(SERVICES["api"]["environment"]["CANVASS_PORT"])
    for name in ("worker", "batch-worker"):
        assert SERVICES[name]["environment"]["CANVASS_METRICS_HOST"] == "0.0.0.0"
        assert ports[name] == int(SERVICES[name]["environment"]["CANVASS_METRICS_PORT"])
    assert PROMETHEUS["rule_files"] == ["alerts.yml"]


def test_grafana_finds_the_dashboard_and_its_source() -> None:
    provisioning = ROOT / "deploy/grafana/provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((provisioning / "dashboards/canvass.yml").read_text())["providers"]
    mounts = dict(mount.removesuffix(":ro").split(":") for mount in SERVICES["grafana"]["volumes"])
    assert mounts["./deploy/grafana"] == provider["options"]["path"]
    assert mounts["./deploy/grafana/provisioning"] == "/etc/grafana/provisioning"


def test_the_docs_have_each_metric_with_its_labels_and_what_it_says() -> None:
    rows = re.findall(r"^\| `(canvass_\w+)` \| ([^|]*) \| ([^|]*) \|$", DOCS, re.MULTILINE)
    written = {name: (labels.strip(), says.strip()) for name, labels, says in rows}
    assert written == {
        name: (", ".join(f"`{label}`" for label in metric.labels), metric.says)
        for name, metric in known().items()
    }


def test_the_docs_name_settings_that_exist() -> None:
    names = set(re.findall(r"CANVASS_[A-Z_]+", DOCS))
    assert names
    assert names <= {f"CANVASS_{field.upper()}" for field in ApiSettings.model_fields}
