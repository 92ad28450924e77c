"""Engines whose every result is a hash of what was asked: any change of a request shows in the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import blake2b
from random import Random
from typing import Any

from engine.schema_sample import sample
from planner.plan import Plan
from planner.reads import AnyRead, Found, Generation, Item, Read, Result, Served, Written
from tests.planner.support import hashed

Model = Callable[[Any], Any]
"""An engine for reads and generations alike; what it gives is a Result."""

TEXTS = [
    *('{"topic": "chairs"}', '{"topic": "a"}', "7", '"abc"', '["b", "a"]', '["a", "a"]', "null"),
    *(
        "I cannot say.",
        "",
        '{"topic": "ch',
        "[1e400]",
        '{"topic": "chairs", "topic": "no"}',
        "```json\n7\n```",
    ),
]
"""What a model may write where a value is asked for; few are valid against any one schema."""


def any_hashed(plan: Plan) -> Model:
    """An engine of every kind of read: hashed logprobs, pieces of the plan's text, and texts.

    About half of the texts of objects are no valid values, and one in ten was cut off.
    """

    def answer(read: AnyRead) -> Result:
        if isinstance(read, Generation):
            return written(read)
        return pieces(plan, read) if read.kind in ("span", "list") else hashed(read)

    return answer


def written(asked: Generation) -> Written:
    """A text, by the hash of what is asked."""
    chance = _chance(asked.head, asked.tail, asked.message, asked.grammar, asked.most_tokens)
    served = _served(chance)
    if asked.kind == "thought":
        return Written(chance.choice(["Hm.", "Chairs are red.", ""]), chance.randrange(9), "stop", served)
    likely = json.dumps(sample(json.loads(asked.grammar)))
    text = chance.choice([likely, chance.choice(TEXTS)])
    return Written(text, chance.randrange(1, 9), chance.choice([*["stop"] * 9, "length"]), served)


def pieces(plan: Plan, read: Read) -> Found:
    """Pieces of the plan's text, by the hash of the read: none, one, or of a list several."""
    chance = _chance(read.head, read.tail, read.canvas.seeded(read.seed), read.ids)
    last = len(plan.decision.source)
    places = [sorted(chance.choices(range(last + 1), k=2)) for _ in range(1 if read.kind == "span" else 4)]
    items = [
        Item(start, end, chance.random(), 1.0)
        for start, end in places
        if start < end and chance.random() < 0.8
    ]
    sure = min((item.confidence for item in items), default=chance.random())
    return Found(tuple(items), sure, chance.randrange(9), _served(chance))


def _served(chance: Random) -> Served:
    return Served(f"engine-{chance.randrange(3)}", "m", float(chance.randrange(256)), chance.randrange(99))


def _chance(*asked: Any) -> Random:
    return Random(blake2b(repr(asked).encode()).digest())
