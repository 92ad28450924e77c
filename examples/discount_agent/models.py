"""What the model is asked: the route of a message, and an offer. Fields are in the order of the thinking."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, create_model

from client import Span
from examples.discount_agent.rules import STEP, Limits

SCHEMA_VERSION = "discount-agent/1"
"""Recorded in the audit: raise it with every change to a model of this module."""


class PriceRequest(BaseModel):
    """Asks for a price, a discount or a better offer"""

    kind: Literal["price"]
    plan: Literal["team", "basic", "business"] = Field(description="Which plan is it about?")


class OrderQuestion(BaseModel):
    """Asks about an order that was placed before"""

    kind: Literal["order"]
    number: Span | None = Field(description="The order number")


class SomethingElse(BaseModel):
    """Is about anything else"""

    kind: Literal["other"]


class Route(BaseModel):
    """Where a message goes. The tag picks the branch; the fields of the others are never asked."""

    request: Annotated[PriceRequest | OrderQuestion | SomethingElse, Field(discriminator="kind")] = Field(
        description="A message to a shop of software plans"
    )


class Offer(BaseModel):
    """An offer to a customer, after the reasons for it. `discount` is in percent, `credit` in whole euros."""

    loyalty: Literal["new", "regular", "loyal"] = Field(description="How loyal is the customer?")
    risk: int = Field(ge=1, le=5, description="How likely is the customer to leave, from 1 to 5?")
    wants_less: bool = Field(description="Does the customer ask for a lower price?")
    discount: int = Field(ge=0, multiple_of=STEP, description="The discount in percent")
    credit: int = Field(ge=0, description="The credit for the next order, in euros")


def offer_within(limits: Limits) -> type[Offer]:
    """The offer that a customer with these limits may be made: no schema of it holds a higher one."""
    told = Offer.model_fields
    discount = Field(ge=0, le=limits.discount, multiple_of=STEP, description=told["discount"].description)
    credit = Field(ge=0, le=limits.credit, description=told["credit"].description)
    return create_model("Offer", __base__=Offer, discount=(int, discount), credit=(int, credit))
