"""What any decision may carry for its job: whom to call back, what to remember, by when to end."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator
from pydantic_core import PydanticCustomError

from planner.dialects.bounds import at_most

MOST_METADATA = 16_384
"""Bytes that `metadata` may take as JSON."""

MOST_URL = 2048
MOST_EVENTS = 16

_JSON: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


class JobFields(BaseModel):
    """Fields of a body that say nothing about the answer."""

    model_config = ConfigDict(frozen=True)

    webhook: Annotated[str, Field(max_length=MOST_URL)] | None = None
    webhook_events_filter: Annotated[
        tuple[Literal["start", "completed"], ...], Field(fail_fast=True), at_most(MOST_EVENTS)
    ] = ("completed",)
    metadata: dict[str, Any] | None = None
    deadline_ms: Annotated[int, Field(ge=1, strict=True)] | None = None

    @field_validator("metadata")
    @classmethod
    def _bounded(cls, metadata: dict[str, Any] | None) -> dict[str, Any] | None:
        size = 0 if metadata is None else len(_JSON.dump_json(metadata))
        if size > MOST_METADATA:
            raise PydanticCustomError(
                "metadata_too_long",
                "metadata takes {size} bytes as JSON; at most {limit} are kept",
                {"size": size, "limit": MOST_METADATA},
            )
        return metadata
