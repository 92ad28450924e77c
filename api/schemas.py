"""What native routes answer with, for the OpenAPI document. The bodies are made in workers/jobs.py."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Status = Literal["queued", "running", "succeeded", "failed", "canceled", "expired"]


class Progress(BaseModel):
    """How far a job has got."""

    stage: int = Field(description="The current stage, from 1.")
    stages: int = Field(description="Stages of its plan.")
    reads_done: int
    reads_planned: int = Field(description="Reads known to be needed so far; more may follow.")


class JobError(BaseModel):
    """Why a job has no result."""

    code: str
    message: str


class Job(BaseModel):
    """A decision seen from outside."""

    id: str
    object: Literal["job"]
    status: Status
    done: bool = Field(description="Whether the status is one that stays.")
    created_at: str
    started_at: str | None
    finished_at: str | None
    deadline_at: str = Field(description="When the decision ends at the latest.")
    expires_at: str | None = Field(description="Until when a finished job is kept.")
    cancel_requested_at: str | None
    progress: Progress
    queue_position: int | None = Field(None, description="Its place in the queue, from 1, while queued.")
    result: Any = Field(None, description="The door's own response body, once succeeded.")
    error: JobError | None = None
    metadata: dict[str, Any] | None
    urls: dict[str, str]


class JobList(BaseModel):
    """A page of jobs, newest first, without their results."""

    object: Literal["list"] = "list"
    data: list[Job]
    next: str | None = Field(description="Cursor for `after`; null on the last page.")


DeliveryState = Literal["pending", "delivered", "failed", "gone"]


class DeliveryAttempt(BaseModel):
    """One attempt to deliver a webhook."""

    n: int
    at: str
    status: int | None = Field(description="The receiver's HTTP status; null when there was none.")
    ms: float = Field(description="Milliseconds that it took.")
    error: str | None = Field(description="Why it failed.")
    excerpt: str | None = Field(description="The beginning of the receiver's response.")


class Delivery(BaseModel):
    """A webhook: one event of a job, on its way to the job's URL."""

    n: int = Field(description="Its number among the events that the job reports, from 1.")
    id: str = Field(description="The `webhook-id`, the same on every attempt.")
    event: Literal["start", "completed"]
    url: str
    state: DeliveryState = Field(
        description="`failed` after the last attempt, `gone` when the receiver said so."
    )
    next_attempt_at: str | None
    attempts: list[DeliveryAttempt]


class DeliveryList(BaseModel):
    """The webhooks of a job, in the order of its events."""

    object: Literal["list"] = "list"
    data: list[Delivery]


class BatchCounts(BaseModel):
    """How many states of a batch wait, run, and ended as what."""

    total: int
    queued: int
    running: int
    succeeded: int
    failed: int
    canceled: int
    expired: int


class Batch(BaseModel):
    """The same questions about many states."""

    id: str
    object: Literal["batch"]
    status: Status = Field(description="`succeeded` once every state has a line, also where some failed.")
    done: bool = Field(description="Whether the status is one that stays.")
    created_at: str
    started_at: str | None
    finished_at: str | None
    deadline_at: str = Field(description="When the batch ends at the latest.")
    expires_at: str = Field(description="Until when it and its results are kept, at most.")
    cancel_requested_at: str | None
    counts: BatchCounts
    error: JobError | None = Field(None, description="The fault of the whole, once failed.")
    metadata: dict[str, Any] | None
    urls: dict[str, str]


class BatchList(BaseModel):
    """A page of batches, newest first."""

    object: Literal["list"] = "list"
    data: list[Batch]
    next: str | None = Field(description="Cursor for `after`; null on the last page.")


class BatchRequest(BaseModel):
    """The body of `POST /v1/batches`: that of `POST /v1/systemone`, with `states` in place of `state`."""

    model_config = ConfigDict(extra="allow")

    model: str
    questions: dict[str, dict[str, Any]] | None = Field(None, min_length=1, description="Or a `schema`.")
    value_schema: Any = Field(None, alias="schema", description="A JSON Schema, in place of questions.")
    states: list[Any] = Field(min_length=1, description="Each a state, or `{custom_id, state}`.")
    metadata: dict[str, Any] | None = None
    webhook: str | None = None
    webhook_events_filter: list[Literal["start", "completed"]] = ["completed"]
    deadline_ms: int | None = Field(None, ge=1, description="Milliseconds that one state may take.")
