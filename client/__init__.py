"""The `canvass` command, and the stack that it, the tests and the benchmarks start. Talks HTTP only."""
