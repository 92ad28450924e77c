"""What native routes answer with, for the OpenAPI document. The bodies are made in workers/jobs.py."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

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
