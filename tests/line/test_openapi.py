"""The OpenAPI document is true: schemathesis asks every route what the document lets it ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from client.stack import Stack
from tests.line.job_support import ASYNC, ONE_READ, job, post

CHECKS: list[Callable[..., Any]] = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

OVERLOADED = (503, 529)
"""The only documented statuses of 500 and more: come again later."""

SCHEMAS: tuple[Any, ...] = (
    {"type": "boolean"},
    {"type": "object", "properties": {"a": {"enum": ["b", "c"]}, "d": {"type": "string"}}},
    {"type": "integer", "minimum": 2, "maximum": 1},
)

EXAMPLES = 25
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)


@pytest.fixture(scope="module")
def document(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = httpx2.get(f"{stack.url}/openapi.json").json()
    return found


@pytest.fixture(scope="module")
def done_job(stack: Stack) -> str:
    id = str(post(stack.url, {**ONE_READ, "audit": True}, ASYNC).json()["id"])
    assert job(stack.url, id, wait=20)["status"] == "succeeded"
    return id


def test_every_response_is_one_that_the_document_has(
    stack: Stack, document: dict[str, Any], done_job: str
) -> None:
    schema = schemathesis.openapi.from_dict(document)
    host = urlsplit(stack.url).netloc
    statuses: dict[str, set[int]] = {}
    forms: set[int] = set()
    for found in schema.get_all_operations():
        operation = found.ok()  # type: ignore[union-attr]
        seen = statuses.setdefault(f"{operation.method.upper()} {operation.path}", set())
        for mode in MODES:
            if mode is MODES[1] and not (operation.body or operation.query or operation.headers):
                continue
            ask(stack.url, host, operation.as_strategy(generation_mode=mode), done_job, seen, forms)
    assert {200, 422} <= forms
    for name, seen in statuses.items():
        assert seen, f"{name} was never asked"
    assert {200, 202, 400, 422} <= statuses["POST /v1/systemone"]
    assert {200, 202, 400, 404} <= statuses["POST /v1/decisions"]
    assert {200, 400, 404} <= statuses["POST /v1/chat/completions"]
    assert {200, 404} <= statuses["GET /v1/jobs/{id}"]
    assert {200, 404} <= statuses["GET /v1/jobs/{id}/events"]
    assert {200, 404} <= statuses["GET /v1/jobs/{id}/audit"]
    assert {201, 404, 422} <= statuses["POST /v1/jobs/{id}/audit"]
    assert {200, 422} <= statuses["POST /v1/compile"]


def ask(url: str, host: str, strategy: Any, done_job: str, seen: set[int], forms: set[int]) -> None:
    """Send what a strategy makes, and hold each response against the document.

    The statuses go into `seen`, and those of System One's forms into `forms`.
    """

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def send(case: Any) -> None:
        _make_likely(case, done_job)
        response = case.call(base_url=url, timeout=30, allow_redirects=False)
        assert urlsplit(response.request.url).netloc == host
        told = f"{response.request.method} {response.request.url}: {response.text[:500]}"
        assert response.status_code < 500 or response.status_code in OVERLOADED, told
        seen.add(response.status_code)
        if case.path == "/v1/systemone" and case.media_type == "multipart/form-data":
            forms.add(response.status_code)
        case.validate_response(response, checks=CHECKS)

    send()


def _make_likely(case: Any, done_job: str) -> None:
    """Have some cases name what is there: a served model, a job. The others name nothing that is."""
    dice = Random(repr((case.body, case.path_parameters, case.query, case.headers)))
    if "id" in (case.path_parameters or {}) and dice.random() < 0.5:
        case.path_parameters["id"] = done_job
    if isinstance(case.body, dict):
        # Of a form, the JSON is a part.
        body = case.body["request"] if isinstance(case.body.get("request"), dict) else case.body
        if "model" in body and dice.random() < 0.7:
            body["model"] = "jev-latest"
            ways: tuple[dict[str, str], ...] = ({}, ASYNC)
            if case.media_type == "multipart/form-data":
                # Hardly any form is right by chance: some are made so, and answered.
                ways = ({},)
                body.update(ONE_READ)
                body.pop("assets", None)
                body.pop("images", None)
            case.headers = {**(case.headers or {}), **dice.choice(ways)}
        if ("schema" in body or case.path == "/v1/compile") and dice.random() < 0.7:
            # Hardly anything is a schema by chance.
            body["schema"] = dice.choice(SCHEMAS)
            body.pop("questions", None)
            body["state"] = "My printer is on fire."
        # A webhook would be called.
        body.pop("webhook", None)
    if case.path.startswith("/v1/keys"):
        # With a key made, the server would no longer be open.
        case.headers = {**(case.headers or {}), "Authorization": "Bearer no-admin"}


def test_the_document_has_both_shapes_of_a_decision(document: dict[str, Any]) -> None:
    content = document["paths"]["/v1/systemone"]["post"]["requestBody"]["content"]
    shapes = [{"$ref": f"#/components/schemas/{name}"} for name in ("SystemOneRequest", "SchemaRequest")]
    assert content["application/json"]["schema"] == {"anyOf": shapes}
    assert content["multipart/form-data"]["schema"]["properties"]["request"] == {"anyOf": shapes}
    assert "schema" in document["components"]["schemas"]["SchemaRequest"]["required"]


def test_the_document_names_the_doors_errors_and_headers(document: dict[str, Any]) -> None:
    route = document["paths"]["/v1/systemone"]["post"]
    assert {parameter["name"] for parameter in route["parameters"]} == {"Prefer", "Idempotency-Key"}
    assert {"400", "401", "403", "409", "413", "415", "422", "429", "529"} <= route["responses"].keys()
    assert "x-typesafe-request-id" in route["responses"]["200"]["headers"]
    assert "Location" in route["responses"]["202"]["headers"]


def test_every_reference_in_the_document_leads_somewhere(document: dict[str, Any]) -> None:
    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            node = list(node.values())
        if isinstance(node, list):
            for child in node:
                yield from references(child)

    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(references(document)) <= known
