"""Grounded spans: which tokens can spell a text, windows of it, and the decoder that walks it."""
