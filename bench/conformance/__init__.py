"""Conformance: what the clients of each front door rely on, asked of a running stack and told on a page."""
