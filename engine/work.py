"""What a validated request asks of a backend, and what a backend gives back."""

from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from engine.codec import IMAGE_TOKENS

# The log-probability written for what cannot be: an asked id at a position that is held.
FLOOR = -100.0


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids, the SHA-256 of each image (hex), and the tenant's cache salt."""

    ids: tuple[int, ...]
    images: tuple[str, ...] = ()
    salt: str = ""

    @property
    def length(self) -> int:
        """Prompt tokens, images included."""
        return len(self.ids) + IMAGE_TOKENS * len(self.images)


@dataclass(frozen=True, slots=True)
class CanvasRead:
    """One read of a canvas.

    `slots` are the positions that are not pinned, in order. Without pins every position is held,
    so nothing is a slot. `asked` are the `logprob_token_ids`, `top` is K, `samples` the number of
    draws that the engine itself makes (1 unless engine samples are on). `rows` is `max_tokens` capped to the
    canvas, `wanted` as it came.
    """

    prompt: Prompt
    canvas: tuple[int, ...]
    slots: tuple[int, ...]
    steps: int
    asked: tuple[int, ...]
    top: int
    rows: int
    constrained: bool = False
    samples: int = 1
    seed: int | None = None
    wanted: int = 0

    def runs(self) -> list[range]:
        """The slots as runs of neighbouring positions: of one, a label slot; of more, a blank."""
        return runs_of(self.slots)

    def noise(self) -> tuple[int, ...]:
        """The ids that stand in the slots: the only thing in which two draws differ."""
        return tuple(self.canvas[slot] for slot in self.slots)


@dataclass(frozen=True, slots=True)
class Generation:
    """An ordinary generation. `top` is None without log-probabilities; `schema` asks for JSON.

    `opening` are the ids that it begins with, whatever the model would write. `keeps_special`: special tokens
    stand in the text, where a `stop` may find them.
    """

    prompt: Prompt
    max_tokens: int
    stop: tuple[str, ...] = ()
    stop_ids: frozenset[int] = frozenset()
    sampling: dict[str, Any] = field(default_factory=dict)
    schema: dict[str, Any] | None = None
    top: int | None = None
    asked: tuple[int, ...] = ()
    opening: tuple[int, ...] = ()
    keeps_special: bool = False


class Row(NamedTuple):
    """One position: the emitted token and the natural log-probabilities that come back for it."""

    token: int
    logprobs: dict[int, float]


class Piece(NamedTuple):
    """A part of a generation: its text, its tokens (each with its row), and why it ended, if it did."""

    text: str
    rows: list[Row]
    finish: str | None = None


class Backend(Protocol):
    """Where answers come from. None looks at a prompt's images; they count as tokens all the same."""

    @property
    def name(self) -> str:
        """The model's name, unless --model-name says otherwise."""

    @property
    def context(self) -> int:
        """Tokens that prompt and output may have together."""

    @property
    def slots(self) -> int | None:
        """Requests it works on at once; None when it does not matter."""

    async def read(self, read: CanvasRead) -> list[list[Row]]:
        """For each draw, one row per canvas position."""

    def generate(self, generation: Generation) -> AsyncGenerator[Piece, None]:
        """The generation, piece by piece; the last piece says why it ended."""

    async def close(self) -> None:
        """Let go of what it holds."""


def runs_of(positions: Iterable[int]) -> list[range]:
    """Rising positions as runs of neighbours."""
    runs: list[range] = []
    for position in positions:
        if runs and runs[-1].stop == position:
            runs[-1] = range(runs[-1].start, position + 1)
        else:
            runs.append(range(position, position + 1))
    return runs


def held_rows(read: CanvasRead) -> list[Row]:
    """A row for each position as if it were held: itself at 0.0, every asked id at `FLOOR`."""
    floor = dict.fromkeys(read.asked, FLOOR)
    return [Row(token, {**floor, token: 0.0}) for token in read.canvas]


def best(logprobs: dict[int, float]) -> int:
    """The likeliest token; the lower id wins a tie."""
    return min(logprobs, key=lambda token: (-logprobs[token], token))
