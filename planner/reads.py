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

ReadKind = Literal["label", "span", "list", "choose", "thought", "object"]
"""What a read is for: labels, one span, a list of spans, a choice between windows that disagree, a thought
ahead of all others, or a JSON value under a grammar."""
Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A prompt that the engine's server makes of the user's message: one with images in it, or one for
    whatever model can write, by whatever tokenizer.

    A part is a text, or the number of an image; `images` are their SHA-256 (hex).
    """

    parts: tuple[str | int, ...]
    images: tuple[str, ...]

    @property
    def text(self) -> str:
        """All its text."""
        return "".join(part for part in self.parts if isinstance(part, str))


@dataclass(frozen=True, slots=True)
class Read:
    """One canvas read, whole.

    `head` and `tail` are the prompt's token ids (empty where there is a `message` instead), `ids` the token
    ids whose logprobs are asked, `seed` makes the canvas's noise, `steps` counts denoise steps.
    """

    id: str
    kind: ReadKind
    head: Ids
    tail: Ids
    canvas: Canvas
    ids: Ids
    seed: int
    steps: int
    message: Message | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """A text that the model is to write, up to `most_tokens` tokens, ended by `stop` where there is one.

    The prompt is as in `Read`. `grammar` is the JSON Schema, as JSON, that an object's text has to keep to.
    """

    id: str
    kind: ReadKind
    head: Ids
    tail: Ids
    most_tokens: int
    stop: str
    message: Message | None = None
    grammar: str = ""


AnyRead = Read | Generation
"""One request to an engine, whole."""


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

    `engine` gave the result, asked `at` (seconds since 1970), in `ms` of wall time, as the model that it
    serves by the name `model`; `prompt_tokens` and `cached_tokens` are its usage. `tried` are the requests
    that came to nothing.
    """

    engine: str = ""
    model: str = ""
    ms: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tried: tuple[Tried, ...] = ()
    at: float = 0.0


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
class Written:
    """What the model wrote: its text, of so many tokens, and why it ended: `stop` by itself, `length` cut at
    the most tokens it may have, or whatever else the engine says.
    """

    text: str
    tokens: int
    finish: str
    served: Served = Served()

    @property
    def closed(self) -> bool:
        """Whether it ended by itself."""
        return self.finish == "stop"


@dataclass(frozen=True, slots=True)
class Failure:
    """A read, or a decision, that could not be answered: a stable code and one sentence."""

    code: str
    message: str


Result = Rows | Found | Written | Failure

Results = Mapping[str, Result]
"""What came back so far, by read id."""


@dataclass(frozen=True, slots=True)
class Wave:
    """The canvas reads and the generations that can run now, of one stage."""

    stage: int
    reads: tuple[Read, ...]
    generations: tuple[Generation, ...] = ()

    @property
    def all(self) -> tuple[AnyRead, ...]:
        """Every request of the wave."""
        return (*self.generations, *self.reads)

    def to_bytes(self) -> bytes:
        """The wave for the store, shared parts once."""
        heads, tails, canvases, sets = _Table[Ids](), _Table[Ids](), _Table[Canvas](), _Table[Ids]()
        messages = _Table[Message | None]()

        def prompt_of(read: AnyRead) -> tuple[int, int, int]:
            return heads.index(read.head), tails.index(read.tail), messages.index(read.message)

        rows = [
            (
                read.id,
                read.kind,
                *prompt_of(read),
                canvases.index(read.canvas),
                sets.index(read.ids),
                read.seed,
                read.steps,
            )
            for read in self.reads
        ]
        texts = [
            (one.id, one.kind, *prompt_of(one), one.most_tokens, one.stop, one.grammar)
            for one in self.generations
        ]
        shapes = [(canvas.ids, canvas.free, canvas.size) for canvas in canvases.rows]
        shown = [message and (message.parts, message.images) for message in messages.rows]
        return orjson.dumps((self.stage, heads.rows, tails.rows, shown, shapes, sets.rows, rows, texts))

    @staticmethod
    def from_bytes(data: bytes) -> Wave:
        """The wave that `to_bytes` wrote; reads of one head share one tuple."""
        stage, *tables, rows, texts = orjson.loads(data)
        heads, tails, shown, shapes, sets = tables
        head_ids, tail_ids, set_ids = ([tuple(row) for row in table] for table in (heads, tails, sets))
        messages = [one and Message(tuple(one[0]), tuple(one[1])) for one in shown]
        canvases = [Canvas(tuple(ids), tuple(free), size) for ids, free, size in shapes]
        return Wave(
            stage,
            tuple(
                Read(
                    id,
                    kind,
                    head_ids[head],
                    tail_ids[tail],
                    canvases[canvas],
                    set_ids[ids],
                    seed,
                    steps,
                    messages[message],
                )
                for id, kind, head, tail, message, canvas, ids, seed, steps in rows
            ),
            tuple(
                Generation(id, kind, head_ids[head], tail_ids[tail], most, stop, messages[message], grammar)
                for id, kind, head, tail, message, most, stop, grammar in texts
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
    "written": TypeAdapter(Written),
    "failure": TypeAdapter(Failure),
}
_NAMES: dict[type, str] = {Rows: "rows", Found: "found", Written: "written", Failure: "failure"}


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
