"""What a process tells of itself at /metrics, for the tests."""

from __future__ import annotations

from dataclasses import dataclass

import httpx2
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


@dataclass(frozen=True)
class Figures:
    """Everything that one process told at one moment."""

    samples: tuple[Sample, ...]

    def of(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels; 0 when there is none."""
        return sum(
            sample.value
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


def figures(base: str) -> Figures:
    """The figures of the process at a base URL, now."""
    response = httpx2.get(f"{base}/metrics", timeout=20)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(response.text)
    return Figures(tuple(sample for family in families for sample in family.samples))
