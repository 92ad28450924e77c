"""Tokenizer families as data, and the vocabulary that a plan is written in.

A family says what a model's answer looks like around the canvas. Another tokenizer is another row
of `FAMILIES`, never another branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from planner.errors import PlannerError, TooLong


class Tokenizer(Protocol):
    """What the planner needs of a tokenizer."""

    def encode(self, text: str) -> list[int]:
        """Token ids of `text` as plain text: a special token's spelling inside it stays text."""

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text, in one call."""

    def encode_markup(self, text: str) -> list[int]:
        """Token ids of the model's own markup: special tokens are recognised, none is added."""

    def decode(self, ids: list[int]) -> str:
        """The text of token ids."""

    def token_bytes(self, id: int) -> bytes:
        """The UTF-8 bytes that one token writes; part of a character for some."""

    def eos_id(self) -> int | None:
        """The id of the end-of-sequence token, or None when the tokenizer names none."""

    def token_id(self, token: str) -> int | None:
        """The id of one token by its spelling, or None when the vocabulary has no such token."""

    def chat(self, *, thinking: bool = False) -> tuple[str, str]:
        """The chat template's markup before and after the text of one user message.

        `thinking` sets the template's thinking marker, where it knows one.
        """

    def size(self) -> int:
        """The number of ids in the vocabulary."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """How a model of a family thinks ahead of its answer.

    A thought stands between `open` and `close`; the model ends it by writing `stop`. `ask` is what a
    family without a channel for thoughts is asked to do at the end of the prompt.
    """

    open: str
    close: str
    stop: str
    ask: str = ""


@dataclass(frozen=True, slots=True)
class Calling:
    """How a model of a family opens the call of a function: its name between `before` and `after`."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Family:
    """Markup of one tokenizer family.

    `thought` is the empty thought block that stands in the prompt, ahead of the canvas: inside the
    canvas results are far worse (vLLM's own remark). `label_gap` is what separates a label from the
    text before it in a line, so that label and gap are one token.
    """

    name: str
    turn_close: str
    pad: str
    thought: str = ""
    label_gap: str = " "
    thinking: Thinking | None = None
    calling: Calling | None = None


FAMILIES: tuple[Family, ...] = (
    Family(
        name="gemma",
        turn_close="<turn|>",
        pad="<pad>",
        thought="<|channel>thought\n<channel|>",
        thinking=Thinking(open="<|channel>thought\n", close="<channel|>", stop="<channel|>"),
        calling=Calling(before="<|tool_call>call:", after="{"),
    ),
    # No channel for thoughts: a plain reasoning turn, which the answer goes on from.
    Family(
        name="chatml",
        turn_close="<|im_end|>",
        pad="<|endoftext|>",
        thinking=Thinking(
            open="",
            close="\n\n",
            stop="<|im_end|>",
            ask="First reason about the questions in a few sentences.",
        ),
        # Hermes' format, which models of this family are trained on.
        calling=Calling(before='<tool_call>\n{"name": "', after='", "arguments": {'),
    ),
)


class UnknownFamily(PlannerError):
    """The tokenizer has the turn close and padding tokens of no known family."""


@dataclass(frozen=True, eq=False, slots=True)
class Vocabulary:
    """A tokenizer with its family and the sizes of the model that serves it.

    `chat_open` and `chat_close` stand around a prompt's text, the empty thought block in the latter;
    `think_open` and `think_turn` around that of a model that thinks, which a thought between `thought_open`
    and `thought_close` follows; `thought_empty` is the empty block by itself. `canvas` is the served canvas
    in tokens, `context` the model's context in tokens (None: left to the engine to check). Compared by
    identity: one is built per process and passed on.
    """

    tokenizer: Tokenizer
    family: Family
    turn_close: int
    pad: int
    size: int
    chat_open: tuple[int, ...]
    chat_close: tuple[int, ...]
    think_open: tuple[int, ...] = ()
    think_turn: tuple[int, ...] = ()
    thought_open: tuple[int, ...] = ()
    thought_close: tuple[int, ...] = ()
    thought_empty: tuple[int, ...] = ()
    canvas: int = 64
    context: int | None = None

    def check_length(self, tokens: int) -> None:
        """Raise TooLong when a prompt with its canvas, in tokens, does not fit the model's context."""
        if self.context is not None and tokens > self.context:
            raise TooLong(("state",), tokens=tokens, limit=self.context)


RECURRING_LENGTH = 4096
"""Characters of the longest text that is remembered with its ids."""


USUAL_CHARACTERS = 6
"""Characters to a token of the context up to which a text is encoded at once: most that fit have fewer."""

PIECE_CHARACTERS = 65_536
PIECE_SLACK = 16
"""Characters of a piece that a longer text is counted by, and the most tokens that a cut may add."""


def encode_long(vocabulary: Vocabulary, text: str) -> list[int]:
    """Token ids of a text of any length, a state's. Raises TooLong for one that is over the context by far,
    before all of it is encoded: that takes 130 bytes of memory to a character.
    """
    context = vocabulary.context
    if context is not None and len(text) > max(PIECE_CHARACTERS, USUAL_CHARACTERS * context):
        tokens = 0
        for start in range(0, len(text), PIECE_CHARACTERS):
            piece = text[start : start + PIECE_CHARACTERS]
            tokens += len(vocabulary.tokenizer.encode(piece)) - PIECE_SLACK
            if tokens > context:
                raise TooLong(("state",), tokens=None, limit=context)
    return vocabulary.tokenizer.encode(text)


def encode_recurring(vocabulary: Vocabulary, text: str) -> tuple[int, ...]:
    """Token ids of a text that many decisions share: a question, not a state. Raises TooLong."""
    if len(text) > RECURRING_LENGTH:
        return tuple(encode_long(vocabulary, text))
    return _encoded(vocabulary, text)


@lru_cache(maxsize=1024)
def _encoded(vocabulary: Vocabulary, text: str) -> tuple[int, ...]:
    return tuple(vocabulary.tokenizer.encode(text))


def make_vocabulary(tokenizer: Tokenizer, *, canvas: int = 64, context: int | None = None) -> Vocabulary:
    """The vocabulary of a tokenizer, its family found by the tokens it has.

    Raises UnknownFamily when no row of `FAMILIES` fits.
    """
    for family in FAMILIES:
        turn_close, pad = tokenizer.token_id(family.turn_close), tokenizer.token_id(family.pad)
        if turn_close is None or pad is None:
            continue
        before, after = tokenizer.chat()
        think_before, think_after = tokenizer.chat(thinking=True)
        thinking = family.thinking or Thinking("", "", "")
        return Vocabulary(
            tokenizer=tokenizer,
            family=family,
            turn_close=turn_close,
            pad=pad,
            size=tokenizer.size(),
            chat_open=tuple(tokenizer.encode_markup(before)),
            chat_close=tuple(tokenizer.encode_markup(after + family.thought)),
            think_open=tuple(tokenizer.encode_markup(think_before)),
            think_turn=tuple(tokenizer.encode_markup(think_after)),
            thought_open=tuple(tokenizer.encode_markup(thinking.open)),
            thought_close=tuple(tokenizer.encode_markup(thinking.close)),
            thought_empty=tuple(tokenizer.encode_markup(family.thought)),
            canvas=canvas,
            context=context,
        )
    known = ", ".join(f"{family.name} ({family.turn_close})" for family in FAMILIES)
    raise UnknownFamily(f"this tokenizer belongs to no known family; known are: {known}")
