"""The OpenAPI document: what FastAPI finds in the routes, and what it cannot know.

Decision doors read their requests and write their responses themselves, so their routes say nothing of
either; `decision_route` says it. Native routes tell every refusal as problem details, and in no other way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from api.body import MOST_PARTS, REQUEST_PART
from api.preferences import MOST_WAIT_S
from api.problems import MEDIA_TYPE
from api.repeats import MOST_KEY
from api.schemas import Job

_REF = "#/components/schemas/{model}"

_TEXT = {"type": "string"}
_SECONDS = {"type": "string", "pattern": "^[0-9]+$"}

_PARAMETERS: list[dict[str, Any]] = [
    {
        "name": "Prefer",
        "in": "header",
        "schema": _TEXT,
        "description": f"`respond-async`: a job at once. `wait=N`: the answer within N seconds (at most "
        f"{MOST_WAIT_S}), else a job (RFC 7240).",
    },
    {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {**_TEXT, "minLength": 1, "maxLength": MOST_KEY},
        "description": "A request that comes again with its key and body gets what the first one got.",
    },
]

_VARY = {"Vary": {"schema": _TEXT, "required": True}}
_ALWAYS = {
    **_VARY,
    "Preference-Applied": {"schema": _TEXT, "description": "The preferences that were honoured."},
    "Idempotent-Replayed": {"schema": {"const": "true"}, "description": "This decision was asked before."},
}
_RETRY = {"Retry-After": {"schema": _SECONDS, "description": "Seconds until it is worth asking again."}}


def decision_route(
    request: type[BaseModel],
    answer: type[BaseModel],
    errors: Mapping[int, tuple[str, tuple[type[BaseModel], ...]]],
    id_header: str,
    *,
    also: tuple[type[BaseModel], ...] = (),
    form: bool = False,
) -> dict[str, Any]:
    """For the `openapi_extra` of a decision door: its request and all its responses.

    `errors` maps a status to what it says and the shapes its body may have, `also` are further shapes of the
    request. `form` tells that the request may also be a part of a form, beside its images.
    """
    requests = (request, *also)
    named = {id_header: {"schema": _TEXT, "description": "The decision's id."}}
    return {
        "parameters": _PARAMETERS,
        "requestBody": {
            "required": True,
            "content": _content(requests) | (_form(requests) if form else {}),
        },
        "responses": {
            "200": {
                "description": "The answers",
                "headers": {**_ALWAYS, **named},
                "content": _content([answer]),
            },
            "202": {
                "description": "The job, as preferred: there was no answer within the wait",
                "headers": {
                    **_ALWAYS,
                    **named,
                    **_RETRY,
                    "Location": {"schema": _TEXT, "required": True, "description": "The job."},
                },
                "content": _content([Job]),
            },
            **{
                str(status): {
                    "description": said,
                    "headers": {**_ALWAYS, **named, **_RETRY},
                    "content": _content(models),
                }
                for status, (said, models) in errors.items()
            },
        },
    }


def document(app: FastAPI, models: Iterable[type[BaseModel]]) -> dict[str, Any]:
    """The document of an application, made once; `models` are those that its decision doors name."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        operations = [
            operation
            for methods in made["paths"].values()
            for operation in methods.values()
            if isinstance(operation, dict)
        ]
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        schemas |= _schemas(models)
        for operation in operations:
            _tell_problems(operation["responses"])
        app.openapi_schema = made
    return app.openapi_schema


def _content(models: Iterable[type[BaseModel]]) -> dict[str, Any]:
    return {"application/json": {"schema": _any_of(models)}}


def _any_of(models: Iterable[type[BaseModel]]) -> dict[str, Any]:
    refs: list[dict[str, Any]] = [
        {"$ref": _REF.format(model=model.__name__)} for model in dict.fromkeys(models)
    ]
    return refs[0] if len(refs) == 1 else {"anyOf": refs}


def _form(requests: Iterable[type[BaseModel]]) -> dict[str, Any]:
    properties = {REQUEST_PART: _any_of(requests)}
    schema = {
        "type": "object",
        "description": f"The request as JSON in the part `{REQUEST_PART}`, and each image as a file in a "
        "part of its own, which an asset names (`part`).",
        "required": [REQUEST_PART],
        "properties": properties,
        "additionalProperties": {"type": "string", "format": "binary"},
        "maxProperties": MOST_PARTS,
    }
    encoding = {REQUEST_PART: {"contentType": "application/json"}}
    return {"multipart/form-data": {"schema": schema, "encoding": encoding}}


def _schemas(models: Iterable[type[BaseModel]]) -> dict[str, Any]:
    ordered = sorted(set(models), key=lambda model: model.__name__)
    _, found = models_json_schema([(model, "validation") for model in ordered], ref_template=_REF)
    schemas: dict[str, Any] = found.get("$defs", {})
    return schemas


def _tell_problems(responses: dict[str, Any]) -> None:
    """Problem details have a media type of their own, whatever the route answers with otherwise."""
    for response in responses.values():
        if MEDIA_TYPE in response.get("content", {}):
            response["content"] = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
