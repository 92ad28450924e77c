"""Reads, waves and results, and how they travel through the store.

A wave keeps what its reads share (prompt heads, canvases, id sets) in tables and each read as
indices into them, so that hundreds of reads of one long state cost hardly more than one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import orjson
from pydantic import TypeAdapter

from planner.canvas import Canvas

MAX_IDS = 128
"""Most label ids one request may ask for (vLLM's limit on `logprob_token_ids`)."""

ReadKind = Literal["label", "span", "list", "choose"]
"""What a read is for: labels, one span, a list of spans, or a choice between windows that disagree."""
Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """One request to an engine, whole.

    `head` and `tail` are the prompt's token ids, `ids` the token ids whose logprobs are asked,
    `seed` makes the canvas's noise, `steps` counts denoise steps.
    """

    id: str
    kind: ReadKind
    head: Ids
    tail: Ids
    canvas: Canvas
    ids: Ids
    seed: int
    steps: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """A read that a part takes, whether or not it ran.

    `wave` counts from the part's own first wave, `draw` and `attempt` from zero.
    """

    id: str
    kind: ReadKind
    wave: int
    draw: int
    attempt: int
    seed: int


@dataclass(frozen=True, slots=True)
class Tried:
    """A request for a read that did not give its result: to which engine, for how long (ms), and why."""

    engine: str
    ms: float
    why: str


@dataclass(frozen=True, slots=True)
class Served:
    """How a read was served.

    `engine` gave the result, in `ms` of wall time, as the model that it serves by the name `model`;
    `prompt_tokens` and `cached_tokens` are its usage. `tried` are the requests that came to nothing.
    """

    engine: str = ""
    model: str = ""
    ms: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tried: tuple[Tried, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """A read that came back.

    `logprobs[slot][i]` belongs to the read's `ids[i]`, natural log over the whole vocabulary;
    `top[slot]` is the model's own first pick there, with the logprob `peaks[slot]`.
    """

    logprobs: tuple[tuple[float, ...], ...]
    top: tuple[int, ...]
    peaks: tuple[float, ...] = ()
    served: Served = Served()


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of the source text, in code points, with how sure the read is of it.

    `confidence` is the weakest probability, among the allowed ids, along the piece and its end;
    `coverage` the least mass that the allowed ids held there.
    """

    start: int
    end: int
    confidence: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a span or list read came to: its items in order, none for "none".

    `confidence` is the item's, the weakest one's of a list, or that of "none"; `tokens` counts the
    blank's positions that the model wrote to.
    """

    items: tuple[Item, ...]
    confidence: float
    tokens: int
    served: Served = Served()


@dataclass(frozen=True, slots=True)
class Failure:
    """A read, or a decision, that could not be answered: a stable code and one sentence."""

    code: str
    message: str


Result = Rows | Found | Failure

Results = Mapping[str, Result]
"""What came back so far, by read id."""


@dataclass(frozen=True, slots=True)
class Wave:
    """The reads that can run now, of one stage."""

    stage: int
    reads: tuple[Read, ...]

    def to_bytes(self) -> bytes:
        """The wave for the store, shared parts once."""
        heads, tails, canvases, sets = _Table[Ids](), _Table[Ids](), _Table[Canvas](), _Table[Ids]()
        rows = [
            (
                read.id,
                read.kind,
                heads.index(read.head),
                tails.index(read.tail),
                canvases.index(read.canvas),
                sets.index(read.ids),
                read.seed,
                read.steps,
            )
            for read in self.reads
        ]
        shapes = [(canvas.ids, canvas.free, canvas.size) for canvas in canvases.rows]
        return orjson.dumps((self.stage, heads.rows, tails.rows, shapes, sets.rows, rows))

    @staticmethod
    def from_bytes(data: bytes) -> Wave:
        """The wave that `to_bytes` wrote; reads of one head share one tuple."""
        stage, *tables, rows = orjson.loads(data)
        heads, tails, shapes, sets = tables
        head_ids, tail_ids, set_ids = ([tuple(row) for row in table] for table in (heads, tails, sets))
        canvases = [Canvas(tuple(ids), tuple(free), size) for ids, free, size in shapes]
        return Wave(
            stage,
            tuple(
                Read(id, kind, head_ids[head], tail_ids[tail], canvases[canvas], set_ids[ids], seed, steps)
                for id, kind, head, tail, canvas, ids, seed, steps in rows
            ),
        )


RowT = TypeVar("RowT")


@dataclass(slots=True)
class _Table(Generic[RowT]):
    """Rows in order of first use, told apart by identity: reads that share a row share the object,
    and hashing a long prompt once per read would cost more than the read.
    """

    rows: list[RowT] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)

    def index(self, row: RowT) -> int:
        place = self.places.setdefault(id(row), len(self.rows))
        if place == len(self.rows):
            self.rows.append(row)
        return place


_RESULTS: dict[str, TypeAdapter[Any]] = {
    "rows": TypeAdapter(Rows),
    "found": TypeAdapter(Found),
    "failure": TypeAdapter(Failure),
}
_NAMES: dict[type, str] = {Rows: "rows", Found: "found", Failure: "failure"}


def result_to_bytes(result: Result) -> bytes:
    """A result for the store: the name of its kind, a space, and its fields as JSON."""
    name = _NAMES[type(result)]
    return name.encode() + b" " + _RESULTS[name].dump_json(result)


def result_from_bytes(data: bytes) -> Result:
    """The result that `result_to_bytes` wrote."""
    name, _, fields = data.partition(b" ")
    result: Result = _RESULTS[name.decode()].validate_json(fields)
    return result


def id_sets(ids: Sequence[int]) -> tuple[Ids, ...]:
    """Label ids cut into sets that one request each can ask for; their rows merge exactly."""
    distinct = tuple(dict.fromkeys(ids))
    return tuple(distinct[start : start + MAX_IDS] for start in range(0, len(distinct), MAX_IDS))
