"""Blanks: the canvas of a span read, whose free positions are one run behind the label."""

from __future__ import annotations

from planner.canvas import AROUND, Canvas, make_canvas
from planner.decision import Question
from planner.errors import Invalid
from planner.vocabulary import Vocabulary, encode_recurring

OPENING = "answer:"
"""What stands before the blank, as before the slot of an isolated label read."""

USUAL_TOKENS = {"span": 24, "spans": 64}
MOST_TOKENS = 96

LEAST_STEPS = 4
"""Denoise steps of a span read, unless more are asked for: the blank's tokens settle on each other."""


def blank_of(question: Question, vocabulary: Vocabulary) -> Canvas:
    """The canvas of a span question.

    Raises Invalid when the question asks for more tokens than the served canvas has room for. The
    usual number gives way to a small canvas.
    """
    opening = encode_recurring(vocabulary, OPENING)
    room = vocabulary.canvas - AROUND - len(opening)
    asked = question.max_tokens
    if asked is not None and asked > room:
        raise Invalid(
            ("questions", question.id, question.type, "criteria", "max_tokens"),
            f"a blank of {asked} tokens does not fit the canvas of {vocabulary.canvas}; {room} do",
            given=asked,
        )
    size = asked if asked is not None else min(USUAL_TOKENS[question.type], room)
    free = tuple(range(len(opening), len(opening) + size))
    return make_canvas(vocabulary, (*opening, *[vocabulary.pad] * size), free)
