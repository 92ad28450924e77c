"""Texts far over the context: refused before they are encoded whole, and never one that fits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from planner.errors import TooLong
from planner.plan import make_plan
from planner.vocabulary import (
    PIECE_CHARACTERS,
    USUAL_CHARACTERS,
    Tokenizer,
    Vocabulary,
    encode_long,
    make_vocabulary,
)
from planner.waves import first_wave
from tests.planner.support import FakeTokenizer, choice, decide, noul
from workers.planning import planned

CONTEXT = 4096


@dataclass
class Counting:
    """A tokenizer that counts the characters it encodes."""

    behind: Tokenizer
    characters: int = field(default=0)

    def encode(self, text: str) -> list[int]:
        self.characters += len(text)
        return self.behind.encode(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


@pytest.fixture
def counting(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary with a context, and a tokenizer that counts."""
    return replace(vocabulary, tokenizer=Counting(vocabulary.tokenizer), context=CONTEXT)


SPAN = replace(noul("s", "Who?"), type="span", alternatives=())

DECISIONS: dict[str, Any] = {
    "isolated": lambda text: decide(noul("a", "Urgent?"), state=text),
    "joint": lambda text: decide(noul("a", "Urgent?"), noul("b", "Calm?"), state=text, joint=True),
    "thinking": lambda text: decide(noul("a", "Urgent?"), state=text, think=16),
    "span": lambda text: decide(SPAN, state=text),
    "in an object": lambda text: decide(noul("a"), state={"text": text}),
    "context": lambda text: decide(noul("a"), instructions=text),
    "question": lambda text: decide(noul("a", text)),
    "options": lambda text: decide(choice("a", [text, "b"])),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_a_text_far_too_long_is_refused_after_a_small_part_of_it(counting: Vocabulary, name: str) -> None:
    text = "ab " * 1_000_000
    before = counting.tokenizer.characters  # type: ignore[attr-defined]
    with pytest.raises(TooLong, match=f"needs more than {CONTEXT} tokens.*holds {CONTEXT}"):
        planned(DECISIONS[name](text), counting, 50_000)
    assert counting.tokenizer.characters - before < 4 * PIECE_CHARACTERS  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["isolated", "joint", "span"])
def test_a_text_a_little_too_long_is_refused_with_the_count(counting: Vocabulary, name: str) -> None:
    with pytest.raises(TooLong, match=r"needs 5\d\d\d tokens"):
        planned(DECISIONS[name]("word " * 5000), counting, 50_000)


def test_a_text_of_long_tokens_fits_however_many_characters_it_has(counting: Vocabulary) -> None:
    # 64 of them are one token.
    text = "=" * 200_000
    assert len(text) > 6 * USUAL_CHARACTERS * CONTEXT
    (read,) = first_wave(make_plan(decide(noul("a"), state=text), counting)).reads
    assert len(read.head) + len(read.tail) < CONTEXT
    assert encode_long(counting, text) == counting.tokenizer.encode(text)


def test_no_text_that_fits_is_refused_for_where_it_is_cut() -> None:
    # One token to a piece but for the cuts: the worst that cutting may do to a count.
    words = FakeTokenizer(pattern=r"[a-z]{1,65537} ?|[A-Za-z]|\W")
    vocabulary = make_vocabulary(words, context=200)
    text = ("x" * 5000 + " ") * 190
    assert len(text) > USUAL_CHARACTERS * 200
    assert len(encode_long(vocabulary, text)) == 190


def test_without_a_context_nothing_is_counted(vocabulary: Vocabulary) -> None:
    assert vocabulary.context is None
    assert len(encode_long(vocabulary, "ab " * 100_000)) > 100_000
