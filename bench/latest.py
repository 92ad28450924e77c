"""The figures that were measured last, by name, beside those of other programs and of runs before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

LATEST = Path(__file__).with_name("latest.json")


def keep(figures: Mapping[str, float]) -> None:
    """Write figures into `latest.json`, over older ones of the same names."""
    kept = json.loads(LATEST.read_text()) if LATEST.exists() else {}
    kept |= {name: round(value, 4) for name, value in figures.items()}
    LATEST.write_text(json.dumps(kept, indent=2) + "\n")
