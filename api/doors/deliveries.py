"""The native door to webhooks: what was sent for a job, what came of it, and sending it again."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response

from api.callers import Caller
from api.doors.native import TheCaller, TheService, told
from api.problems import PROBLEM
from api.refusals import Refusal
from api.schemas import Delivery, DeliveryList
from api.service import Service
from workers.jobs import rfc3339
from workers.store import deliveries as store
from workers.store.decisions import BATCH_PREFIX
from workers.webhooks.payload import webhook_id

router = APIRouter(prefix="/v1/jobs/{id}/deliveries", tags=["webhooks"], responses=PROBLEM)


def deliveries_of(request: Request) -> store.Deliveries:
    """The deliveries in the store."""
    deliveries: store.Deliveries = request.app.state.deliveries
    return deliveries


TheDeliveries = Annotated[store.Deliveries, Depends(deliveries_of)]


@router.get("", summary="A job's webhooks, with their attempts", response_model=DeliveryList)
async def list_deliveries(
    id: str, service: TheService, caller: TheCaller, deliveries: TheDeliveries
) -> Response:
    """One delivery per event that has happened, in order. They are kept longer than the job itself."""
    data = [_view(delivery) for delivery in await _own(id, service, caller, deliveries)]
    return told({"object": "list", "data": data})


@router.post("/{n}/resend", summary="Send a webhook again", status_code=202, response_model=Delivery)
async def resend_delivery(
    id: str,
    n: Annotated[int, Path(ge=1, description="The delivery's `n`.")],
    service: TheService,
    caller: TheCaller,
    deliveries: TheDeliveries,
) -> Response:
    """Attempt it now, whatever came of it before, and begin the schedule of its attempts anew. Its id and
    its body stay the same. One that is being attempted at this moment is left to that attempt.
    """
    for delivery in await _own(id, service, caller, deliveries):
        if delivery.number == n and await deliveries.resend(delivery.name):
            (again,) = [each for each in await deliveries.of(id) if each.name == delivery.name]
            return told(_view(again), status=202)
    raise Refusal(404, "not_found", f"job {id!r} has no delivery {n}, or it is no longer kept")


async def _own(
    id: str, service: Service, caller: Caller, deliveries: store.Deliveries
) -> list[store.Delivery]:
    """The deliveries of a job of the caller's. Raises Refusal (404)."""
    found = await deliveries.of(id)
    if not found and id.startswith(BATCH_PREFIX):
        return []
    if not found:
        await service.job_fields(id, caller.id)
    elif found[0].owner != caller.id:
        raise Refusal(404, "not_found", f"there is no job {id!r}, or it is no longer kept")
    return found


def _view(delivery: store.Delivery) -> dict[str, Any]:
    return {
        "n": delivery.number,
        "id": webhook_id(delivery.name),
        "event": delivery.event,
        "url": delivery.url,
        "state": delivery.state,
        "next_attempt_at": rfc3339(delivery.next),
        "attempts": [
            {
                "n": number,
                "at": rfc3339(attempt.at),
                "status": attempt.status,
                "ms": attempt.ms,
                "error": attempt.error,
                "excerpt": attempt.excerpt,
            }
            for number, attempt in delivery.attempts
        ],
    }
