"""What every decision door does, whatever its dialect: from a request to an answer, a job or a refusal.

    admit the caller > read the body > parse it > settle how long to wait > decide > tell

A door is its dialect's name and how it tells a refusal; all else is the same for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import time

import orjson
import structlog
from fastapi import Request, Response

from api.body import Body, read_body
from api.callers import ANYONE, Caller
from api.images import images_of
from api.preferences import Preference, read_preference
from api.refusals import QUEUE_FULL, REFUSED, Refusal, Unsettled, refusal_of, refusal_of_failure
from api.repeats import decision_of_twin, earlier_of, key_of, standing_of_decision, told
from api.service import Accepted, Service
from api.terms import terms_of
from planner.decision import Decision
from planner.dialects import DIALECTS
from planner.dialects.dialect import Dialect
from planner.dialects.image_fields import Shown
from workers.jobs import urls_of
from workers.planning import LONG_BYTES
from workers.store.names import Named, name_of
from workers.store.store import StoreError

REPLAYED = {"Idempotent-Replayed": "true"}
VARY = {"Vary": "Prefer"}

RETRY_COUNTS = ("x-typesafe-retry-count", "x-stainless-retry-count")
"""Headers in which the official SDKs say how often they sent this before."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Door:
    """One public API shape.

    `dialect` names its language in `DIALECTS`; `refuse` tells a refusal in it, with the decision's id
    where there is one; `id_header` carries that id.
    """

    dialect: str
    id_header: str
    refuse: Callable[[Refusal], Response]

    async def answer(self, request: Request) -> Response:
        """The response to a decision that was posted."""
        service: Service = request.app.state.service
        caller = ANYONE
        try:
            caller = await service.keyring.admit(request)
            service.require_room()
            body = await read_body(request, service.settings.max_body_bytes, service.settings.max_json_depth)
        except REFUSED as error:
            response = self.refuse(refusal_of(error))
            response.headers.update({**VARY, self.id_header: service.new_id(), **caller.headers})
            return response
        return await self.answer_body(request, caller, body)

    async def answer_body(self, request: Request, caller: Caller, body: Body) -> Response:
        """The response to a decision of a caller who was admitted, and whose body was read."""
        service: Service = request.app.state.service
        id = service.new_id()
        # A refusal has an id too, by which its client may speak of it.
        headers = {**VARY, self.id_header: id}
        try:
            preference = read_preference(request.headers.getlist("prefer"))
            accepted, replayed = await self._decide(request, service, caller, id, body, preference)
            headers |= {self.id_header: accepted.id, **(REPLAYED if replayed else {})}
            if preference.applied:
                headers["Preference-Applied"] = preference.applied
            response = await _told(service, caller, accepted, preference)
        except REFUSED as error:
            refusal = refusal_of(error)
            _note(service, refusal, headers[self.id_header])
            response = self.refuse(refusal)
        response.headers.update({**headers, **caller.headers})
        return response

    async def _decide(
        self, request: Request, service: Service, caller: Caller, id: str, body: Body, preference: Preference
    ) -> tuple[Accepted, bool]:
        """The decision asked for, and whether it is one that was asked for before."""
        dialect = DIALECTS[self.dialect]
        images = await images_of(dialect.images(body.value), body.parts, service.settings)
        shown = images.shown
        decision = await _parsed(dialect, body, shown)
        # What a client asks to be kept apart is kept apart within what is the caller's own.
        salt = ":".join(part for part in (caller.salt, decision.salt) if part)
        decision = replace(decision, salt=salt)
        twin = name_of("twin", caller.id, self.dialect, body.content, *shown.images)
        patient = preference.wait_s is not None
        terms = terms_of(dialect.fields(body.value), caller, service.settings, twin=twin, patient=patient)
        wait_s = service.settings.sync_limit_s if preference.wait_s is None else preference.wait_s
        key = key_of(request)
        if key is None:
            retried = any(request.headers.get(name, "0") != "0" for name in RETRY_COUNTS)
            earlier = await decision_of_twin(service.names, service.decisions, twin) if retried else None
            if earlier is not None:
                return await service.join(earlier, wait_s), True
            return await service.decide(id, decision, body.size, terms, wait_s, images.contents), False
        name = name_of("key", caller.id, self.dialect, key)
        named = Named(
            id, name_of(body.content, *shown.images), time() + service.settings.sync_limit_s + wait_s
        )
        keep_s = service.settings.deadline_s + service.settings.retention_s
        standing = partial(standing_of_decision, service.decisions)
        earlier = await earlier_of(service.names, name, named, keep_s, standing)
        if earlier is not None:
            return await service.join(earlier, wait_s), True
        try:
            accepted = await service.decide(id, decision, body.size, terms, wait_s, images.contents)
        except (Unsettled, StoreError):
            # It may have been accepted all the same: who comes again with the key finds out.
            raise
        except REFUSED:
            await service.names.release(name)
            raise
        if accepted.outcome is None:
            await told(service.names, name, named, keep_s)
        return accepted, False


MAY_BE_HARD = (b'"schema"', b'"object"')
"""What stands in a body with a JSON Schema: checking and compiling a hard one takes up to a second."""


async def _parsed(dialect: Dialect, body: Body, shown: Shown) -> Decision:
    """The decision of a body, parsed off the event loop when that may take long."""
    if body.size < LONG_BYTES and not any(word in body.content for word in MAY_BE_HARD):
        return dialect.parse(body.value, shown)
    return await asyncio.to_thread(dialect.parse, body.value, shown)


def _note(service: Service, refusal: Refusal, id: str) -> None:
    """Count a refusal, and log one that is no fault of the client's. A full queue is refused too often."""
    service.metrics.refusals(refusal.code).inc()
    if refusal.status >= 500 and refusal.code != QUEUE_FULL:
        log.warning("decision not answered", decision=id, code=refusal.code, reason=refusal.message)


async def _told(service: Service, caller: Caller, accepted: Accepted, preference: Preference) -> Response:
    """The answer, or the job when the client would have one. Raises Refusal when there is neither."""
    id, outcome = accepted.id, accepted.outcome
    if outcome is None and preference.wait_s is None:
        limit = service.settings.sync_limit_s
        raise Refusal(
            503,
            "no_answer_yet",
            f"no answer within {limit:g} s; it is still worked on, as {urls_of(id)['get']}",
            retry_after_s=1,
        )
    if outcome is None:
        job = orjson.dumps(await service.job(id, caller.id))
        headers = {"Location": urls_of(id)["get"], "Retry-After": "1"}
        return Response(job, status_code=202, media_type="application/json", headers=headers)
    if (failure := outcome.failure()) is not None:
        raise refusal_of_failure(failure)
    return Response(outcome.body, media_type="application/json")
