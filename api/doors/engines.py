"""Engines: the pool as the workers see it, and how it is changed while it runs (API.md, section 5)."""

from __future__ import annotations
