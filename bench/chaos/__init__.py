"""Chaos: decisions of every kind, while parts of the system are killed and stopped (docs/chaos.md)."""
