"""The parts of the pricing agent that ask no model: its stores, its rules, the schema of its offers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from client import model_schema
from examples.discount_agent.models import offer_within
from examples.discount_agent.rules import Limits, checks_of, limits_of, price_of
from examples.discount_agent.seed import seed
from examples.discount_agent.stores import Customer, Stores, UnknownCustomer

TODAY = date(2026, 2, 28)
REASONS = {"loyalty": "loyal", "risk": 5, "wants_less": True}


@dataclass(frozen=True)
class Given:
    """An offer as someone made it, past all schemas."""

    discount: int
    credit: int


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    seed(tmp_path, TODAY)
    seed(tmp_path, TODAY)
    with Stores(tmp_path) as opened:
        yield opened


def customer(**known: Any) -> Customer:
    told = {"years": 3, "unpaid": Decimal(0), "orders": 2, "spent": Decimal(700), **known}
    return Customer(id=1, name="Somebody", plan="team", **told)


def test_a_customer_is_put_together_from_both_stores(stores: Stores) -> None:
    assert stores.customer(17, TODAY) == Customer(
        17, "Ada Marsh", "team", 3, Decimal("0.00"), 2, Decimal("708.00")
    )
    assert stores.customer(42, TODAY).unpaid == Decimal("199.00")


def test_an_unknown_customer_is_a_clear_error(stores: Stores) -> None:
    with pytest.raises(UnknownCustomer, match=r"^There is no customer 99\.$"):
        stores.customer(99, TODAY)


def test_an_order_is_found_by_its_own_customer_alone(stores: Stores) -> None:
    order = stores.order(17, "A-1093")
    assert order is not None
    assert (order.status, order.total) == ("on its way", Decimal("120.00"))
    assert stores.order(23, "A-1093") is None


@pytest.mark.parametrize("number", ["A-1093' OR '1'='1", "'; DROP TABLE orders; --", "?", ""])
def test_what_a_customer_writes_is_never_sql(stores: Stores, number: str) -> None:
    assert stores.order(17, number) is None
    assert stores.order(17, "A-1093") is not None


@pytest.mark.parametrize(
    ("known", "limits"),
    [
        ({}, Limits(discount=15, credit=35)),
        ({"years": 0}, Limits(discount=0, credit=35)),
        ({"years": 30, "spent": Decimal(90000)}, Limits(discount=20, credit=50)),
        ({"unpaid": Decimal("0.01")}, Limits(discount=0, credit=35)),
        ({"spent": Decimal("19.99")}, Limits(discount=15, credit=0)),
    ],
)
def test_the_rules_say_what_may_be_offered(known: dict[str, Any], limits: Limits) -> None:
    assert limits_of(customer(**known)) == limits


@pytest.mark.parametrize("discount", [0, 5, 10, 15, 20])
def test_an_offer_above_the_limits_is_no_instance_of_its_model(discount: int) -> None:
    model = offer_within(Limits(discount=discount, credit=10))
    assert model.model_validate({**REASONS, "discount": discount, "credit": 10}).discount == discount
    for wrong in (
        {"discount": discount + 5},
        {"discount": discount - 1},
        {"discount": -5},
        {"credit": 11},
        {"credit": -1},
    ):
        with pytest.raises(ValidationError):
            model.model_validate({**REASONS, "discount": discount, "credit": 10, **wrong})


def test_the_limits_stand_in_the_schema_that_is_sent() -> None:
    sent = model_schema(offer_within(Limits(discount=15, credit=35)))["properties"]
    assert list(sent) == ["loyalty", "risk", "wants_less", "discount", "credit"]
    assert (sent["discount"]["maximum"], sent["discount"]["multipleOf"]) == (15, 5)
    assert sent["credit"]["maximum"] == 35


@pytest.mark.parametrize(
    ("discount", "credit", "failed"),
    [
        (15, 10, set()),
        (20, 10, {"discount within the limit"}),
        (15, 36, {"credit within the limit"}),
        (7, 0, {"discount in whole steps"}),
        (95, 0, {"discount within the limit", "covers its cost"}),
    ],
)
def test_the_checks_hold_whatever_a_schema_let_through(discount: int, credit: int, failed: set[str]) -> None:
    offer = Given(discount, credit)
    checks = checks_of(Limits(discount=15, credit=35), "team")
    assert {name for name, check in checks.items() if check(offer) is not True} == failed


def test_a_price_is_exact_to_the_cent() -> None:
    assert price_of("team", Given(discount=15, credit=0)) == Decimal("499.80")
