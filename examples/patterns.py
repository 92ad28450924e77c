"""Three patterns of schema-guided reasoning: `python -m examples.patterns [cascade] [routing] [cycle]`.

Each is a model, whose fields are in the order of the thinking, and one call. docs/reasoning.md says what
becomes of the fields.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from client import Alone, Canvass, Decision, Span
from examples.embedded import server_url

# --- Cascade: each field is answered in the light of those above it --------------------------------

MESSAGE = "My name is Jane Fox. I was charged twice for March, 49.00 EUR each time. This is my third message."


class Triage(BaseModel):
    """A message to the support of an online shop"""

    topic: Literal["billing", "technical", "sales"] = Field(description="What is the message about?")
    writer: Span | None = Field(description="The name of the person who writes")
    anger: int = Field(ge=1, le=5, description="How angry is the writer, from 1 to 5?")
    minutes: int = Field(ge=5, le=240, description="Within how many minutes should the shop answer?")
    reply: str = Field(description="One sentence to the customer")
    manager: bool = Field(description="Should a manager answer?")
    # What it is written in hangs on nothing else, so it is read at the same time as the first field.
    language: Annotated[Literal["English", "German", "French"], Alone] = Field(
        description="Which language is the message written in?"
    )


def cascade(canvass: Canvass, message: str = MESSAGE) -> Decision[Triage]:
    """A ticket, thought through from its topic to who should answer."""
    return canvass.decide(Triage, message)


# --- Routing: the tag picks the branch, and only that branch is asked ------------------------------


class Refund(BaseModel):
    """The writer wants money back"""

    kind: Literal["refund"]
    amount: Span | None = Field(description="The amount of money")
    whole: bool = Field(description="Should all of it be paid back?")


class Repair(BaseModel):
    """Something is broken"""

    kind: Literal["repair"]
    device: Literal["printer", "phone", "laptop"] = Field(description="What is broken?")
    warranty: bool = Field(description="Is it under warranty?")


class Case(BaseModel):
    """What a message asks of the shop"""

    request: Annotated[Refund | Repair, Field(discriminator="kind")] = Field(description="The request")
    urgent: bool = Field(description="Is it urgent?")


def routing(canvass: Canvass, message: str = MESSAGE) -> Decision[Case]:
    """A message, sent down one of two ways."""
    return canvass.decide(Case, message)


# --- Cycle: the same thinking again, a bounded number of times -------------------------------------


class Step(BaseModel):
    """One step of a plan"""

    action: Literal["apologise", "check the account", "pay back", "call the customer"] = Field(
        description="What is done in this step?"
    )
    who: Literal["support", "accounting"] = Field(description="Who does it?")
    minutes: int = Field(ge=1, le=60, description="How many minutes does it take?")


class Plan(BaseModel):
    """What the shop does about a message"""

    goal: Literal["keep the customer", "save money"] = Field(description="What matters most?")
    steps: list[Step] = Field(min_length=1, max_length=3, description="The steps, in their order")
    done: bool = Field(description="Is the customer happy after these steps?")


def cycle(canvass: Canvass, message: str = MESSAGE) -> Decision[Plan]:
    """A plan of one to three steps, each of which sees those before it."""
    return canvass.decide(Plan, message)


PATTERNS: dict[str, Callable[..., Decision[Any]]] = {
    "cascade": cascade,
    "routing": routing,
    "cycle": cycle,
}


def main(names: Sequence[str]) -> None:
    """Print what each pattern comes to, and how each of its fields was answered."""
    with server_url() as url, Canvass(url) as canvass:
        for name in names or PATTERNS:
            decision = PATTERNS[name](canvass)
            print(f"{name}: {decision.value.model_dump_json()}")
            for pointer, evidence in decision.evidence.items():
                sure = "" if evidence.confidence is None else f" {evidence.confidence:.2f}"
                print(f"  {pointer:20} {evidence.kind}{sure}")


if __name__ == "__main__":
    main(sys.argv[1:])
