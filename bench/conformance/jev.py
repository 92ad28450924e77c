"""What `jevcompat` asks: every MUST and SHOULD of its written spec of System One.

A server is asked twice, open and with an API key: some requirements are about the one, some about the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import httpx2
from jevcompat import __version__, spec
from jevcompat.runner import Report, run

from bench.conformance.rows import Row, Section
from client.stack import Stack

ADMIN_KEY = "conformance-admin"
ENV = {"CANVASS_ADMIN_KEY": ADMIN_KEY}
"""Settings of a stack that `reports` asks."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a SHOULD is not kept: the one case of jevcompat that it is not kept in, and why."""

    case: str
    text: str


REASONS = {
    "response.extensions": Reason(
        "unknown-fields",
        "The case sends `seed` as an unknown field, and here it is an extension. A request with an extension "
        "gets our fields by plain names; any other gets them with `x_` before them, and `x_trace_id`, which "
        "the same case sends, is ignored.",
    ),
    "errors.validation-shape": Reason(
        "invalid:type-boolean",
        "A question type that is not served is 400 `api_usage_error`, as an unknown model is. Every other "
        "wrong field is 422 with `detail[]`.",
    ),
}
"""By requirement. Any other case of it that is not kept counts as a failure."""


class NotAsked(Exception):
    """jevcompat could not ask all of its cases."""


def reports(stack: Stack) -> list[Report]:
    """What jevcompat found, first on the open server, then with a key, which this makes. The stack must have
    been started with ENV, and answers nobody without a key afterwards. Raises NotAsked.
    """
    found = [run(stack.url)]
    made = httpx2.post(
        f"{stack.url}/v1/keys",
        json={"name": "conformance"},
        headers={"Authorization": f"Bearer {ADMIN_KEY}"},
        timeout=30,
    )
    made.raise_for_status()
    found.append(run(stack.url, key=made.json()["key"]))
    for report in found:
        if trouble := [report.aborted, *report.case_errors, *report.inconclusive][not report.aborted :]:
            raise NotAsked(f"jevcompat could not ask everything: {trouble}")
    return found


def judged(found: Sequence[Report]) -> tuple[Row, ...]:
    """A row for each requirement: kept when a report saw it kept and none saw it broken."""
    return tuple(_judged(id, found) for id in spec.REQUIREMENTS)


def expected() -> tuple[Row, ...]:
    """The rows of a server that keeps everything but what there are reasons for."""
    return tuple(
        Row(id, one.title, "stated", one.level, REASONS[id].text)
        if id in REASONS
        else Row(id, one.title, "pass", one.level)
        for id, one in spec.REQUIREMENTS.items()
    )


def section(rows: tuple[Row, ...]) -> Section:
    """The page's section of these rows."""
    kept = {
        level: f"{sum(row.outcome == 'pass' for row in rows if row.level == level)} of "
        f"{sum(row.level == level for row in rows)}"
        for level in ("MUST", "SHOULD")
    }
    intro = (
        f"`jevcompat` {__version__}, a suite that others wrote against "
        f"their spec {spec.SPEC_VERSION} of System One, asks an open server and one with API keys. Kept: "
        f"MUST {kept['MUST']}, SHOULD {kept['SHOULD']}."
    )
    return Section("System One: jevcompat", intro, rows)


def _judged(id: str, found: Sequence[Report]) -> Row:
    requirement = spec.REQUIREMENTS[id]
    results = [result for report in found for result in report.results if result.id == id]
    findings = [finding for result in results for finding in result.findings]
    reason = REASONS.get(id)
    told = [one for one in findings if reason is None or one.case != reason.case]
    if told or (findings and requirement.level == "MUST"):
        note = "; ".join(f"{one.case}: {one.message}" for one in findings[:3])
        return Row(id, requirement.title, "fail", requirement.level, note)
    if findings and reason is not None:
        return Row(id, requirement.title, "stated", requirement.level, reason.text)
    if any(result.status == "pass" for result in results):
        return Row(id, requirement.title, "pass", requirement.level)
    note = "; ".join(result.reason for result in results if result.reason)
    return Row(id, requirement.title, "untested", requirement.level, note)
