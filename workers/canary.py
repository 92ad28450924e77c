"""The canary: the small read by which an engine proves that it reads canvases."""

from __future__ import annotations

from planner.decision import NO, YES, Alternative, Decision, Question
from planner.plan import make_plan
from planner.reads import Read
from planner.vocabulary import Vocabulary
from planner.waves import first_wave

_QUESTION = Question("canary", "noul", "Is this a canary?", (Alternative(YES), Alternative(NO)))
_DECISION = Decision(model="canary", state="A canary sings.", questions=(_QUESTION,))


def canary_read(vocabulary: Vocabulary) -> Read:
    """One label read of a fixed question, the same kind that decisions are made of."""
    return first_wave(make_plan(_DECISION, vocabulary)).reads[0]
