"""A decision as the SDK gives it: a validated value, and the evidence of each of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from client.sdk.checks import CheckResult
from client.sdk.errors import InvalidValue, ModelRejected, ServerFault
from client.sdk.evidence import Evidence, EvidenceMap, pointer_of

M = TypeVar("M", bound=BaseModel)


class Usage(NamedTuple):
    """Tokens that a decision took."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Decision(Generic[M]):
    """The answer to `decide`.

    `value` is an instance of the model. `evidence` tells by JSON pointer how each field came about. `job_id`
    is the decision's job, under which it can be looked at while the server keeps it. `checks` are the results
    of the caller's checks. `body` is the server's answer as it came.
    """

    value: M
    evidence: EvidenceMap = field(repr=False)
    job_id: str
    usage: Usage
    checks: tuple[CheckResult, ...] = ()
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def of(self, path: str) -> Evidence:
        """The evidence at a path of attributes, `offers.0.price`, or at a JSON pointer. Raises KeyError."""
        return self.evidence[pointer_of(self.value, path)]

    @property
    def model(self) -> str:
        """The model that was asked."""
        return str(self.body.get("model", ""))

    @property
    def answers(self) -> Mapping[str, Any]:
        """The answers to the questions that the schema became, by id."""
        answers: Mapping[str, Any] = self.body.get("answers") or {}
        return answers


def decision_of(form: type[M], job_id: str, body: Mapping[str, Any]) -> Decision[M]:
    """The decision in a server's answer. Raises `InvalidValue`, `ModelRejected`, or `ServerFault` for an
    answer without a value.
    """
    if "valid" not in body:
        message = "the answer has no `value`: the server does not take schemas, or the job asked questions"
        raise ServerFault(200, "no_value", message)
    evidence = EvidenceMap(body.get("fields") or {})
    if not body["valid"]:
        raise InvalidValue(job_id, body.get("errors") or [], evidence, body)
    usage = body.get("usage") or {}
    return Decision(
        value=_validated(form, job_id, body, evidence),
        evidence=evidence,
        job_id=job_id,
        usage=Usage(usage.get("input_tokens", 0), usage.get("output_tokens", 0)),
        body=body,
    )


def _validated(form: type[M], job_id: str, body: Mapping[str, Any], evidence: EvidenceMap) -> M:
    value = body.get("value")
    try:
        # As JSON: a strict model takes a date or an enum as JSON has it, and no Python string for one.
        return form.model_validate_json(orjson.dumps(value), by_alias=True, by_name=True)
    except ValidationError as error:
        raise ModelRejected(job_id, form.__name__, value, error, evidence, body) from error
    except Exception as error:
        # What a validator of the caller raises, if it is not what pydantic expects of one.
        raise ModelRejected(job_id, form.__name__, value, error, evidence, body) from error
