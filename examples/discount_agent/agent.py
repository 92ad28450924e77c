"""The agent: route the message, fetch what is known of the customer, price the offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel

from client import Canvass, CanvassError, CheckFailed, Decision, InvalidValue, ModelRejected
from examples.discount_agent.models import (
    SCHEMA_VERSION,
    Offer,
    OrderQuestion,
    PriceRequest,
    Route,
    offer_within,
)
from examples.discount_agent.rules import YEARLY_PRICES, Limits, checks_of, limits_of
from examples.discount_agent.runs import Run
from examples.discount_agent.stores import Customer, Order, Stores

M = TypeVar("M", bound=BaseModel)


class NoOffer(Exception):
    """What the model came to is no offer that may be made."""


@dataclass(frozen=True, slots=True)
class Priced:
    """An offer for a plan, within its limits."""

    plan: str
    limits: Limits
    decision: Decision[Offer]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a message: an `offer` for a price request, the `order` that was asked about, if found."""

    route: Decision[Route]
    customer: Customer
    offer: Priced | None = None
    order: Order | None = None


def answer(canvass: Canvass, stores: Stores, run: Run, message: str, user: int) -> Reply:
    """The reply to a customer's message, all of it kept in the run.

    Raises `UnknownCustomer`, `NoOffer`, or a `CanvassError` where the server gave no answer.
    """
    now = datetime.now(UTC)
    run.note("start", {"at": now, "user": user, "message": message, "schema_version": SCHEMA_VERSION})
    try:
        route = _decided(canvass, run, "route", Route, message)
        customer = stores.customer(user, now.date())
        run.note("fetch", {"customer": asdict(customer)})
        reply = _followed(canvass, stores, run, message, route, customer)
    except Exception as error:
        run.note("end", {"error": type(error).__name__, "message": str(error)})
        raise
    run.note("end", _outcome(reply))
    return reply


def _followed(
    canvass: Canvass, stores: Stores, run: Run, message: str, route: Decision[Route], customer: Customer
) -> Reply:
    """What the branch that was picked asks for."""
    request = route.value.request
    if isinstance(request, PriceRequest):
        return Reply(route, customer, offer=_priced(canvass, run, message, request.plan, customer))
    if isinstance(request, OrderQuestion) and request.number is not None:
        return Reply(route, customer, order=stores.order(customer.id, request.number.text))
    return Reply(route, customer)


def _priced(canvass: Canvass, run: Run, message: str, plan: str, customer: Customer) -> Priced:
    """An offer within the customer's limits. Raises `NoOffer`."""
    limits = limits_of(customer)
    state = {"message": message, "plan": plan, "yearly_price": YEARLY_PRICES[plan], "customer": customer}
    try:
        decision = _decided(
            canvass, run, "price", offer_within(limits), state, checks=checks_of(limits, plan)
        )
    except (InvalidValue, ModelRejected, CheckFailed) as error:
        raise NoOffer(f"No offer can be made: {error}.") from error
    return Priced(plan, limits, decision)


def _decided(
    canvass: Canvass, run: Run, phase: str, form: type[M], state: Any, checks: Mapping[str, Any] | None = None
) -> Decision[M]:
    """A decision whose audit is in the run, whatever came of it."""
    try:
        decision = canvass.decide(form, state, audit=True, schema_version=SCHEMA_VERSION, checks=checks)
    except CanvassError as error:
        if job_id := getattr(error, "job_id", None):
            run.note(phase, *_audit(canvass, job_id))
        raise
    run.note(phase, *canvass.audit(decision.job_id))
    return decision


def _audit(canvass: Canvass, job_id: str) -> list[dict[str, Any]]:
    """The audit of a decision that failed, or why there is none: that must not hide the failure itself."""
    try:
        return canvass.audit(job_id)
    except CanvassError as error:
        return [{"type": "no audit", "id": job_id, "error": type(error).__name__, "message": str(error)}]


def _outcome(reply: Reply) -> dict[str, Any]:
    return {
        "request": reply.route.value.request.model_dump(),
        "offer": reply.offer and reply.offer.decision.value.model_dump(),
        "order": reply.order and asdict(reply.order),
    }
