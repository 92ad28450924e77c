"""Benchmarks: `python -m bench` prints every figure of DESIGN.md's table that can be reached so far."""
