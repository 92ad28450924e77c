"""A canvas read on a causal model, left to right.

A held position keeps its seed id. A slot's distribution is the next-token distribution after everything
before it. What an earlier slot of the canvas holds for the later ones is its likeliest asked token, or a
sample seeded by the canvas's noise: the wire carries no draw number, so every draw of a client samples.
Only where the engine itself makes the draws (`diffusion_samples`) is the first one the argmax.

A blank (two slots or more, side by side) is written greedily with the asked ids only, each position
after what was chosen before it; after a turn close nothing follows.

The emulation does no I/O: it yields what it wants to know and is sent the answer, so that a backend in a
thread and one on the event loop can both drive it.
"""

import hashlib
import math
import random
from collections.abc import Generator
from dataclasses import dataclass

from engine.work import FLOOR, CanvasRead, Row, best, held_rows


@dataclass(frozen=True, slots=True)
class NextToken:
    """Wanted: the log-probabilities after `prefix` of the `top` likeliest tokens and of all `asked`."""

    prefix: list[int]
    asked: tuple[int, ...]
    top: int


Emulation = Generator[NextToken, dict[int, float], list[Row]]


def emulate(read: CanvasRead, draw: int, eos: int) -> Emulation:
    """One draw: yields `NextToken`, is sent its log-probabilities, returns a row per position."""
    rows = held_rows(read)
    prefix = list(read.prompt.ids)
    chance = random.Random(_seed(read, draw))
    argmax = read.samples > 1 and draw == 0
    done = 0
    for run in read.runs():
        prefix += read.canvas[done : run.start]
        if len(run) == 1:
            logprobs = yield NextToken(list(prefix), read.asked, max(read.top, 1))
            rows[run.start] = Row(best(logprobs), logprobs)
            prefix.append(
                best(_asked(logprobs, read.asked)) if argmax else _sample(logprobs, read.asked, chance)
            )
        else:
            prefix += yield from _write_blank(read, run, prefix, rows, eos)
        done = run.stop
    return rows


def _write_blank(
    read: CanvasRead, blank: range, prefix: list[int], rows: list[Row], eos: int
) -> Generator[NextToken, dict[int, float], list[int]]:
    written: list[int] = []
    for position in blank:
        if written and written[-1] == eos:
            # Its own row for each position: a shared one could be changed by a later step.
            rows[position] = Row(eos, dict.fromkeys(read.asked, FLOOR) | {eos: 0.0})
            continue
        logprobs = yield NextToken(prefix + written, read.asked, max(read.top, 1))
        rows[position] = Row(best(logprobs), logprobs)
        written.append(best(_asked(logprobs, read.asked)))
    return written


def _asked(logprobs: dict[int, float], asked: tuple[int, ...]) -> dict[int, float]:
    return {token: logprobs[token] for token in asked} if asked else logprobs


def _sample(logprobs: dict[int, float], asked: tuple[int, ...], chance: random.Random) -> int:
    choices = _asked(logprobs, asked)
    high = max(choices.values())
    weights = [math.exp(value - high) for value in choices.values()]
    return chance.choices(list(choices), weights)[0]


def _seed(read: CanvasRead, draw: int) -> int:
    text = repr((read.noise(), draw, read.seed)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
