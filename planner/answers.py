"""Answers: draws folded into one reading per question, and the figures made from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from planner.formats import Distribution
from planner.reads import Item, ReadKind, Served, Written
from planner.schemas.values import Fault


@dataclass(frozen=True, slots=True)
class Reading:
    """What all draws of one question say together.

    `probabilities` is the mean over draws, aligned with the question's alternatives; `stderr` the
    standard error of each mean (zero for one draw); `agreement` the share of draws whose best
    alternative is the mean's; `entropy` that of the mean, in nats; `label_mass` the mean mass the
    labels held in the whole vocabulary; `is_label` whether every draw's top pick was a label.
    """

    probabilities: tuple[float, ...]
    stderr: tuple[float, ...]
    agreement: float
    entropy: float
    label_mass: float
    is_label: bool
    draws: int

    @property
    def best(self) -> int:
        """The index of the most probable alternative, the first of equals."""
        return argmax(self.probabilities)


@dataclass(frozen=True, slots=True)
class SpanReading:
    """What all reads of a span question say together.

    `items` are pieces of the source text, none when it has no answer; `tokens` counts what the model
    wrote; `resolved`, where windows disagreed, holds the probability of each candidate's text.
    """

    items: tuple[Item, ...]
    windows: int
    reads: int
    tokens: int
    resolved: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class ObjectReading:
    """What the generations of an object question came to.

    `value` is the JSON value, None with a `fault` when the last of the `attempts` was not valid; `finish` is
    why that one ended, `tokens` what the model wrote in all.
    """

    value: Any
    fault: Fault | None
    attempts: int
    finish: str
    tokens: int

    @property
    def valid(self) -> bool:
        """Whether the value is there, and valid against the question's schema."""
        return self.fault is None


@dataclass(frozen=True, slots=True)
class ReadTrace:
    """One read as it ran.

    Waves, stages, draws and attempts count from zero; `attempt` is the retry of an unsure span read.
    """

    id: str
    kind: ReadKind
    wave: int
    stage: int
    questions: tuple[str, ...]
    draw: int
    attempt: int
    seed: int
    served: Served


@dataclass(frozen=True, slots=True)
class Answers:
    """A decision answered: a reading per asked question, why the others were skipped, what ran, and the
    thought that went ahead.

    `stages` names the label questions that were asked, by stage up to the last that has any; span and object
    questions run beside them.
    """

    readings: Mapping[str, Reading]
    spans: Mapping[str, SpanReading]
    objects: Mapping[str, ObjectReading]
    skipped: Mapping[str, str]
    stages: tuple[tuple[str, ...], ...]
    reads: tuple[ReadTrace, ...]
    thought: Written | None = None

    @property
    def settled(self) -> set[str]:
        """The questions that were asked, or skipped."""
        return {*self.readings, *self.spans, *self.objects, *self.skipped}

    @property
    def waves(self) -> int:
        """How many waves the plan took."""
        return 1 + max((read.wave for read in self.reads), default=-1)

    @property
    def model(self) -> str:
        """The name of the model that answered."""
        return self.reads[0].served.model if self.reads else ""

    @property
    def input_tokens(self) -> int:
        """Prompt tokens of all reads."""
        return sum(read.served.prompt_tokens for read in self.reads)

    @property
    def cached_tokens(self) -> int:
        """Those of them that the engines found in their prefix caches, where they say so."""
        return sum(read.served.cached_tokens for read in self.reads)

    @property
    def output_tokens(self) -> int:
        """Answer tokens: one per label question and draw, and what was written of all else."""
        labels = sum(reading.draws for reading in self.readings.values())
        thought = self.thought.tokens if self.thought else 0
        found = sum(reading.tokens for reading in self.spans.values())
        return thought + labels + found + sum(reading.tokens for reading in self.objects.values())


def argmax(values: Sequence[float]) -> int:
    """The index of the largest value, the first of equals."""
    return max(range(len(values)), key=values.__getitem__)


def entropy(probabilities: Sequence[float]) -> float:
    """Shannon entropy in nats."""
    return 0.0 - math.fsum(p * math.log(p) for p in probabilities if p > 0)


def fold(draws: Sequence[Distribution]) -> Reading:
    """The reading of one question's draws, at least one, in any order."""
    count = len(draws)
    columns = list(zip(*(draw.probabilities for draw in draws), strict=True))
    means = tuple(math.fsum(column) / count for column in columns)
    error = tuple(stdev(column) / math.sqrt(count) if count > 1 else 0.0 for column in columns)
    best = argmax(means)
    return Reading(
        probabilities=means,
        stderr=error,
        agreement=sum(argmax(draw.probabilities) == best for draw in draws) / count,
        entropy=entropy(means),
        label_mass=fmean(draw.mass for draw in draws),
        is_label=all(draw.is_label for draw in draws),
        draws=count,
    )


def choice_confidence(probabilities: Sequence[float]) -> float:
    """TypeSafe's confidence of a choice: (max p - 1/n) / (1 - 1/n), and 1 for one option."""
    n = len(probabilities)
    return 1.0 if n == 1 else max(0.0, (max(probabilities) - 1 / n) / (1 - 1 / n))


def score_confidence(probabilities: Sequence[float]) -> float:
    """TypeSafe's confidence of a score: max(0, 1 - sum p_i |i - mode| / D), and 1 for one level.

    D is the mean distance of a level from the middle one, mean |i - (n-1)/2|.
    """
    n = len(probabilities)
    if n == 1:
        return 1.0
    mode = argmax(probabilities)
    spread = sum(p * abs(level - mode) for level, p in enumerate(probabilities))
    return max(0.0, 1 - spread / fmean(abs(level - (n - 1) / 2) for level in range(n)))


def expectation(probabilities: Sequence[float]) -> float:
    """The expected level: the sum of i times p_i."""
    return math.fsum(level * p for level, p in enumerate(probabilities))
