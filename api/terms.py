"""From a request's body and its caller to the terms of its decision."""

from __future__ import annotations

from typing import Any

from api.callers import Caller
from planner.dialects.job_fields import JobFields
from planner.errors import Invalid
from workers.settings import Settings
from workers.terms import Terms
from workers.webhooks.guard import Unsafe, check_url, parse_allowed
from workers.webhooks.signing import UNSET

_FIELDS = frozenset(JobFields.model_fields)


def terms_of(body: Any, caller: Caller, settings: Settings, *, twin: str = "", patient: bool) -> Terms:
    """The terms that a body asks for, with what `Terms` says of `twin` and `patient`.

    Raises pydantic's ValidationError, or Invalid.
    """
    if not isinstance(body, dict) or not body.keys() & _FIELDS:
        return Terms(owner=caller.id, most_open=caller.most_open, twin=twin, patient=patient)
    fields = JobFields.model_validate({name: body[name] for name in _FIELDS & body.keys()})
    if fields.webhook is not None:
        _check_webhook(fields.webhook, caller, settings)
    return Terms(
        owner=caller.id,
        most_open=caller.most_open,
        deadline_s=_deadline_s(fields, settings),
        webhook=fields.webhook,
        events=fields.webhook_events_filter,
        metadata=fields.metadata,
        twin=twin,
        patient=patient,
    )


def _check_webhook(url: str, caller: Caller, settings: Settings) -> None:
    try:
        check_url(url, parse_allowed(settings.webhook_allow))
    except Unsafe as error:
        raise Invalid(("webhook",), str(error), kind="webhook_refused", given=url) from error
    # A key has a secret from its first day; an open server has what it was given.
    if not caller.id and not settings.webhook_secret:
        raise Invalid(("webhook",), UNSET, kind="webhook_secret_missing", given=url)


def _deadline_s(fields: JobFields, settings: Settings) -> float | None:
    if fields.deadline_ms is None:
        return None
    most = 1000 * settings.deadline_s
    if fields.deadline_ms > most:
        raise Invalid(
            ("deadline_ms",),
            f"a decision may take {most} ms at most (CANVASS_DEADLINE_S)",
            kind="less_than_equal",
            given=fields.deadline_ms,
        )
    return fields.deadline_ms / 1000
