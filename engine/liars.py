"""Servers that answer 200 and lie: what a canary has to find out.

| name | the lie |
| --- | --- |
| ignore-canvas | a causal server: canvas fields are ignored, the answer is prose, no logprobs |
| talkative | an autoregressive vLLM of 0.32: canvas fields are ignored, asked ids are not: a row per token |
| ignore-grammar | a server of before `structured_outputs`: the schema is ignored, the answer is prose |
| null-logprobs | `logprobs` is null |
| short-rows | only half of the rows |
| wrong-model | the answer says it comes from another model |
| nan | log-probabilities are not numbers (JSON has no NaN: servers write null) |
| no-ids | `logprob_token_ids` are not among the log-probabilities |
"""

from dataclasses import replace

from engine.requests import Call
from engine.work import CanvasRead, Generation, Row, best

NAMES = (
    "ignore-canvas",
    "talkative",
    "ignore-grammar",
    "null-logprobs",
    "short-rows",
    "wrong-model",
    "nan",
    "no-ids",
)
OTHER_MODEL = "another-model"  # what the liar wrong-model signs its answers with


def blind(call: Call, liar: str | None) -> Call:
    """The call as a server sees it that knows neither grammar nor log-probabilities of canvases."""
    work = call.work
    if isinstance(work, Generation) and liar == "ignore-grammar":
        return replace(call, work=replace(work, schema=None))
    if isinstance(work, Generation) and liar == "ignore-canvas":
        return replace(call, work=replace(work, top=None))
    return call


def lie(rows: list[Row], read: CanvasRead, liar: str | None) -> list[Row] | None:
    """The rows that a liar shows instead; None for no log-probabilities at all."""
    if liar == "null-logprobs":
        return None
    if liar == "talkative":
        return [rows[place % len(rows)] for place in range(read.wanted)]
    if liar == "short-rows":
        return rows[: len(rows) // 2]
    if liar == "nan":
        return [Row(row.token, dict.fromkeys(row.logprobs, float("nan"))) for row in rows]
    if liar == "no-ids":
        return [_without(row, frozenset(read.asked)) for row in rows]
    return rows


def _without(row: Row, asked: frozenset[int]) -> Row:
    kept = {token: value for token, value in row.logprobs.items() if token not in asked}
    # A row is never empty: where only asked ids were likely, some other token stands there.
    kept = kept or {next(token for token in range(len(asked) + 1) if token not in asked): -0.1}
    return Row(best(kept), kept)
