"""Answer formats: how a template is written, and how a slot's row becomes probabilities.

A format is the only place that knows what an answer looks like. Everything else sees a `Template`:
token ids with slots in them, each slot with the token ids of its alternatives.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from string import ascii_uppercase

from planner.decision import NO, YES, Question, QuestionType
from planner.errors import Invalid
from planner.vocabulary import Vocabulary

LINES_LIMIT = 10
"""Most questions a canvas holds in the `lines` format; more are `indexed`, which is shorter."""

MAX_OPTIONS = 255
MAX_LEVELS = 10


@dataclass(frozen=True, eq=False, slots=True)
class Format:
    """How questions are named in the prompt and answered in the canvas.

    `heading` and `row` are patterns over `index`, `id` (and `gap`, `label` for a row); rows are
    joined by `separator`.
    """

    name: str
    heading: str
    row: str
    separator: str

    def head(self, index: int, id: str) -> str:
        """The text that opens a question's block in the prompt. An id that is no line is quoted as JSON."""
        shown = id if id.isprintable() else json.dumps(id, ensure_ascii=False)
        return self.heading.format(index=index, id=shown)

    def text(self, rows: Sequence[tuple[int, str, str]], gap: str) -> str:
        """The answer text of (index, id, label) rows."""
        return self.separator.join(
            self.row.format(index=index, id=id, label=label, gap=gap) for index, id, label in rows
        )


ISOLATED = Format("isolated", heading="Question: ", row="answer:{gap}{label}", separator="\n")
"""One question in a canvas of its own. The id is no part of it, so a renamed question reads the same."""

LINES = Format("lines", heading="[{id}] ", row="{id}:{gap}{label}", separator="\n")
INDEXED = Format("indexed", heading="[{index} {id}] ", row="{index}{label}", separator=" ")


def joint_format(count: int, one_line_ids: bool) -> Format:
    """The format of a canvas that answers this many questions together."""
    return LINES if one_line_ids and count <= LINES_LIMIT else INDEXED


@dataclass(frozen=True, slots=True)
class Slot:
    """A canvas position that is read; `label_ids[i]` is the token of alternative i."""

    position: int
    label_ids: tuple[int, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Template:
    """The answer text as token ids, one slot per question in order.

    Compared by identity: `make_template` gives the same one for the same rows.
    """

    ids: tuple[int, ...]
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One question's place in a template."""

    index: int
    id: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """What one draw says about one question: a softmax over its labels, and the mass they held.

    `is_label` tells whether the model's own top pick at the slot was one of the labels.
    """

    probabilities: tuple[float, ...]
    mass: float
    is_label: bool


def distribution(slot: Slot, logprobs: Mapping[int, float], top: int) -> Distribution:
    """The distribution over a slot's alternatives from the logprobs of its label ids.

    Logprobs are temperature 1 over the whole vocabulary, so their exponentials sum to the label
    mass. The largest is taken out first: labels of a hopeless read still compare exactly.
    """
    row = [logprobs[id] for id in slot.label_ids]
    peak = max(row)
    weights = [math.exp(value - peak) for value in row]
    total = sum(weights)
    return Distribution(
        probabilities=tuple(weight / total for weight in weights),
        mass=min(1.0, math.exp(peak) * total),
        is_label=top in slot.label_ids,
    )


@lru_cache(maxsize=64)
def _letter_codes(vocabulary: Vocabulary, format: Format) -> tuple[str, ...]:
    """A..Z, then the two-letter codes that are one token where the format puts a label."""
    gap = vocabulary.family.label_gap
    encode = vocabulary.tokenizer.encode
    base = encode(format.text([(0, "x", "A")], gap))
    pairs = (a + b for a, b in product(ascii_uppercase, repeat=2))
    single = (code for code in pairs if len(encode(format.text([(0, "x", code)], gap))) == len(base))
    return (*ascii_uppercase, *single)


def labels_of(question: Question, vocabulary: Vocabulary, format: Format) -> tuple[str, ...]:
    """The label of each alternative of a question, in order.

    Raises Invalid when the tokenizer has too few one-token labels.
    """
    labels = _labels(vocabulary, format, question.type, len(question.alternatives))
    if labels is None:
        raise Invalid(
            ("questions", question.id),
            f"this tokenizer has no {len(question.alternatives)} one-token labels for a {question.type}",
        )
    return labels


@lru_cache(maxsize=1024)
def _labels(vocabulary: Vocabulary, format: Format, type: QuestionType, count: int) -> tuple[str, ...] | None:
    """The first alphabet whose first `count` labels are one token in one place.

    A score's levels are digits; ten of them are digits and a letter, or letters throughout where a
    tokenizer spaces letters and digits differently (SmolLM2 and Gemma do).
    """
    letters = tuple(ascii_uppercase) if count <= 26 else _letter_codes(vocabulary, format)
    alphabets = {"noul": ((YES, NO),), "choice": (letters,), "score": (tuple("123456789A"), letters)}
    for alphabet in alphabets[type]:
        labels = alphabet[:count]
        try:
            make_template(vocabulary, format, (Row(0, "x", labels),))
        except Invalid:
            continue
        if len(labels) == count:
            return labels
    return None


@lru_cache(maxsize=4096)
def make_template(vocabulary: Vocabulary, format: Format, rows: tuple[Row, ...]) -> Template:
    """The template of these rows, every label proven to be one token in one place.

    Each label in turn is put into the text; it must change exactly one token, at the same position
    for all labels of its row, and no two labels may share an id. Raises Invalid otherwise.
    """
    gap = vocabulary.family.label_gap
    encode = vocabulary.tokenizer.encode
    chosen = [(row.index, row.id, row.labels[0]) for row in rows]
    base = encode(format.text(chosen, gap))

    def with_label(number: int, label: str) -> list[int]:
        row = rows[number]
        return encode(format.text([*chosen[:number], (row.index, row.id, label), *chosen[number + 1 :]], gap))

    slots: list[Slot] = []
    for number, row in enumerate(rows):
        others = row.labels[1:] or (chr(ord(row.labels[0]) + 1),)
        variants = [base, *(with_label(number, label) for label in others)]
        slots.append(_slot(row, variants))
    return Template(ids=tuple(base), slots=tuple(slots))


def isolated_template(question: Question, vocabulary: Vocabulary) -> Template:
    """The template of a question asked by itself. Raises Invalid as `labels_of` and `make_template` do."""
    labels = labels_of(question, vocabulary, ISOLATED)
    return make_template(vocabulary, ISOLATED, (Row(0, "", labels),))


def _slot(row: Row, variants: list[list[int]]) -> Slot:
    base = variants[0]
    alike = all(len(variant) == len(base) for variant in variants)
    places = {
        place for variant in variants for place in range(len(base)) if alike and variant[place] != base[place]
    }
    ids = tuple(variant[place] for place in places for variant in variants)
    if len(places) != 1 or len(set(ids)) != len(variants):
        raise Invalid(
            ("questions", row.id),
            "this tokenizer does not write every label of this question as one token in one place; "
            f"labels: {', '.join(row.labels)}",
        )
    return Slot(position=places.pop(), label_ids=ids[: len(row.labels)])
