"""From a Pydantic model to the JSON Schema that Canvass compiles."""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from client.sdk.errors import NotExpressible


class _Schema(GenerateJsonSchema):
    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """A number alone. Pydantic would also take a string, by a pattern that no grammar can keep to."""
        number = core_schema.float_schema(
            multiple_of=_float(schema.get("multiple_of")),
            le=_float(schema.get("le")),
            ge=_float(schema.get("ge")),
            lt=_float(schema.get("lt")),
            gt=_float(schema.get("gt")),
        )
        return self.float_schema(number)


def model_schema(form: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a model's input, its properties by alias: what `decide` sends.

    Raises `NotExpressible` for what is no model, or for a model with a field that JSON cannot hold.
    """
    return copy.deepcopy(schema_of(form))


def schema_of(form: type[BaseModel]) -> dict[str, Any]:
    """As `model_schema`, made once per model: to be read, never changed."""
    if not (isinstance(form, type) and issubclass(form, BaseModel)) or form is BaseModel:
        raise NotExpressible(f"{form!r} is no pydantic model. {NotExpressible.__doc__}")
    try:
        return _schema(form)
    except PydanticUserError as error:
        where = f"{form.__name__}{_culprit(form)}"
        raise NotExpressible(f"{where}: {error.message}. {NotExpressible.__doc__}") from error


@lru_cache(maxsize=256)
def _schema(form: type[BaseModel]) -> dict[str, Any]:
    return form.model_json_schema(by_alias=True, mode="validation", schema_generator=_Schema)


def _culprit(form: type[BaseModel]) -> str:
    """The first field that has no schema by itself, with a dot before it; empty where each has one."""
    for name, info in form.model_fields.items():
        try:
            _schema(create_model("Field", field=(Any if info.annotation is None else info.annotation, ...)))
        except PydanticUserError:
            return f".{name}"
    return ""


def _float(value: Any) -> float | None:
    return None if value is None else float(value)
