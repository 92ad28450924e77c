"""Running the battery: a request per case, judged as it comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from client.battery.judge import Outcome, judged
from client.battery.material import NEED_SPANS, Case, cases
from client.battery.server import NotServed, Server
from client.errors import ServerRefused, ServerUnreachable
from client.http import OK

Step = Callable[[str], None]
"""Called with `PART CASE` before each request, or with `PART` where a part is passed over."""


@dataclass
class PartResult:
    """What one part of the battery came to.

    `failures` are sentences; `reads` is None where the server does not tell them; `windows` the most
    that a text was cut into; `not_served` the reason why nothing was asked.
    """

    part: str
    outcomes: list[Outcome] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    requests: int = 0
    reads: int | None = None
    windows: int = 1
    seconds: float = 0.0
    not_served: str | None = None

    @property
    def hits(self) -> int:
        """Questions answered as expected."""
        return sum(outcome.hit for outcome in self.outcomes)

    @property
    def wrong_offsets(self) -> int:
        """Pieces that do not stand where their offsets say."""
        return sum(outcome.wrong for outcome in self.outcomes)

    @property
    def misses(self) -> list[Outcome]:
        """Questions answered otherwise."""
        return [outcome for outcome in self.outcomes if not outcome.hit]


def requests_planned(parts: Sequence[str]) -> int:
    """How many cases the parts hold."""
    return sum(len(cases(part)) for part in parts)


def run_battery(server: Server, parts: Sequence[str], step: Step) -> list[PartResult]:
    """Ask everything, part by part. Raises `ServerUnreachable` when the server was not there at all."""
    refused = _spans_refused(server) if NEED_SPANS & set(parts) else None
    results = []
    for part in parts:
        if refused is not None and part in NEED_SPANS:
            results.append(PartResult(part, not_served=refused))
            for case in cases(part):
                step(f"{part} {case.name}")
        else:
            results.append(_run_part(server, part, step))
    return results


def _spans_refused(server: Server) -> str | None:
    """Why the server refuses span questions, None when it answers them."""
    try:
        server.probe_spans()
    except NotServed as error:
        return str(error)
    except ServerRefused:
        # Not a matter of kind: the cases will show what is wrong.
        return None
    return None


def _run_part(server: Server, part: str, step: Step) -> PartResult:
    result = PartResult(part)
    before, start = server.requests, time.monotonic()
    for case in cases(part):
        step(f"{part} {case.name}")
        try:
            body = server.chat(case) if part == "chat" else server.decide(case)
            _take(result, case, body)
        except NotServed as error:
            result.not_served = str(error)
            break
        except ServerRefused as error:
            result.failures.append(f"{case.name}: {error}")
        except ServerUnreachable as error:
            if server.requests == 1:
                raise
            result.failures.append(f"{case.name}: {error}")
    result.requests, result.seconds = server.requests - before, time.monotonic() - start
    return result


def _take(result: PartResult, case: Case, body: Mapping[str, Any]) -> None:
    """Judge the answers of a case. One that is missing is a failure of the request."""
    answers = body.get("answers")
    if not isinstance(answers, Mapping):
        raise ServerRefused(OK, "200 with a body that has no answers")
    for asked in case.asked:
        answer = answers.get(asked.id)
        if isinstance(answer, Mapping):
            result.outcomes.append(judged(case, asked, answer))
            result.windows = max(result.windows, int(answer.get("windows", 1)))
        else:
            result.failures.append(f"{case.name}: no answer to {asked.id}")
    reads = (body.get("diagnostics") or {}).get("reads")
    if reads is not None:
        result.reads = (result.reads or 0) + len(reads)
