"""The business rules: what may be offered to whom. They are code, so no model is asked about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from examples.discount_agent.stores import Customer

STEP = 5
"""Discounts go in steps of so many percent."""

MOST_DISCOUNT = 20
MOST_CREDIT = 50

LEAST_SHARE = Decimal("0.75")
"""The least share of a plan's list price that an offer leaves, discount and credit together."""

YEARLY_PRICES = {"basic": Decimal("108.00"), "team": Decimal("588.00"), "business": Decimal("2388.00")}
"""List prices of a year in euros."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The highest discount, in percent, and the highest credit, in euros, that a customer may be offered."""

    discount: int
    credit: int


class Offered(Protocol):
    """An offer, as far as the rules go."""

    @property
    def discount(self) -> int:
        """In percent."""

    @property
    def credit(self) -> int:
        """In euros."""


def limits_of(customer: Customer) -> Limits:
    """A step of discount for each whole year, none while a bill is open; as credit a twentieth of what was
    spent in the last year.
    """
    discount = 0 if customer.unpaid else min(MOST_DISCOUNT, STEP * customer.years)
    return Limits(discount=discount, credit=min(MOST_CREDIT, int(customer.spent) // 20))


def price_of(plan: str, offer: Offered) -> Decimal:
    """What a year of a plan costs with an offer's discount, in euros."""
    return (YEARLY_PRICES[plan] * (100 - offer.discount) / 100).quantize(Decimal("0.01"))


def checks_of(limits: Limits, plan: str) -> Mapping[str, Callable[[Offered], bool | str]]:
    """The rules as named checks of an offer. All but the last are in the offer's schema as well."""
    least = YEARLY_PRICES[plan] * LEAST_SHARE

    def covers_its_cost(offer: Offered) -> bool | str:
        left = price_of(plan, offer) - offer.credit
        return left >= least or f"{left} EUR are left, and {least} EUR must be"

    return {
        "discount within the limit": lambda offer: 0 <= offer.discount <= limits.discount,
        "discount in whole steps": lambda offer: offer.discount % STEP == 0,
        "credit within the limit": lambda offer: 0 <= offer.credit <= limits.credit,
        "covers its cost": covers_its_cost,
    }
