"""A reply in words, a line for each thing to know, with how sure the model is of what it read."""

from __future__ import annotations

from collections.abc import Iterator

from client import Evidence
from examples.discount_agent.agent import Priced, Reply
from examples.discount_agent.models import OrderQuestion, PriceRequest
from examples.discount_agent.rules import YEARLY_PRICES, price_of
from examples.discount_agent.stores import Customer


def lines_of(reply: Reply) -> Iterator[str]:
    """The lines of a reply."""
    route, request = reply.route, reply.route.value.request
    yield f"Route     {request.kind}{_surely(route.of('request.kind'))}"
    yield f"Customer  {_described(reply.customer)}"
    if isinstance(request, PriceRequest) and reply.offer is not None:
        yield f"Plan      {request.plan}{_surely(route.of('request.plan'))}"
        yield from _priced(reply.offer)
    elif isinstance(request, OrderQuestion):
        yield f"Order     {_order(reply, request)}"
    else:
        yield "Answer    a colleague will write to you."


def _described(customer: Customer) -> str:
    owed = f"owes {customer.unpaid} EUR" if customer.unpaid else "owes nothing"
    return (
        f"{customer.name}, {_count(customer.years, 'year')} with us, {_count(customer.orders, 'order')} for "
        f"{customer.spent} EUR in the last year, {owed}"
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _priced(priced: Priced) -> Iterator[str]:
    decision, limits = priced.decision, priced.limits
    offer = decision.value
    yield f"Limits    discount up to {limits.discount} %, credit up to {limits.credit} EUR"
    yield f"Loyalty   {offer.loyalty}{_surely(decision.of('loyalty'))}"
    yield f"Risk      {offer.risk} of 5{_surely(decision.of('risk'))}"
    yield f"Asks less {'yes' if offer.wants_less else 'no'}{_surely(decision.of('wants_less'))}"
    yield f"Discount  {offer.discount} %{_surely(decision.of('discount'))}"
    yield f"Credit    {offer.credit} EUR{_surely(decision.of('credit'))}"
    yield f"Price     {price_of(priced.plan, offer)} EUR a year, in place of {YEARLY_PRICES[priced.plan]} EUR"
    for check in decision.checks:
        yield f"Check     {check.name}: {'holds' if check.passed else 'does not hold'}"


def _order(reply: Reply, request: OrderQuestion) -> str:
    if request.number is None:
        return "which one? There is no number in the message."
    found = f"{request.number}{_surely(reply.route.of('request.number'))}"
    if reply.order is None:
        return f"{found}: no order of yours has this number."
    order = reply.order
    return f"{found}: {order.status}, placed on {order.day}, {order.total} EUR"


def _surely(evidence: Evidence) -> str:
    """How a field was answered, and how sure the model is of it where that can be told."""
    if evidence.kind == "fixed":
        return "  (nothing else is allowed)"
    if evidence.confidence is None:
        return f"  ({evidence.kind})"
    expected = "" if evidence.expectation is None else f", expected {evidence.expectation:.1f}"
    return f"  ({evidence.kind}, {evidence.confidence:.2f}{expected})"
