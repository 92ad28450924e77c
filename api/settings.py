"""Settings of the API's floor: the workers' settings, and how the front doors behave."""

from __future__ import annotations

from pydantic import DirectoryPath, Field, SecretStr

from planner.dialects.systemone_request import MAX_QUESTIONS
from planner.json_depth import MAX_DEPTH
from workers.settings import Settings


class ApiSettings(Settings):
    """What an API process needs to know; environment variables that begin with `CANVASS_`."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8011, ge=0, le=65535, description="Port to listen on.")
    sync_limit_s: float = Field(
        9,
        gt=0,
        description="Seconds that a request without preference waits; the official SDK gives up at 10.",
    )
    model_aliases: str = Field(
        "jev-latest", description="Names accepted beside the served model's own, comma-separated."
    )
    max_body_bytes: int = Field(16 * 2**20, ge=1024, description="Largest request body, decoded, in bytes.")
    max_json_depth: int = Field(
        MAX_DEPTH, ge=1, le=MAX_DEPTH, description="Deepest nesting of the JSON of a request's body."
    )
    max_questions: int = Field(
        MAX_QUESTIONS, ge=1, le=MAX_QUESTIONS, description="Most questions of one decision."
    )

    max_images: int = Field(16, ge=0, description="Most images of one request.")
    max_image_bytes: int = Field(10 * 2**20, ge=1024, description="Largest image, in bytes.")
    max_image_pixels: int = Field(
        50_000_000, ge=1, description="Most pixels of an image, all frames together."
    )
    max_image_frames: int = Field(1000, ge=1, description="Most frames of an image.")

    admin_key: SecretStr | None = Field(
        None,
        description="Key that API keys are made, listed and revoked with; no decision key. Without it, "
        "nobody can.",
    )

    max_batch_bytes: int = Field(
        2**30, ge=1024, description="Largest form that a batch is uploaded with, in bytes."
    )
    max_batch_states: int = Field(5_000_000, ge=1, description="Most states of one batch.")

    pages: DirectoryPath | None = Field(
        None, description="Folder of web pages: `GET /name` serves its `name.html`. None by default."
    )

    origins: str = Field("", description="Origins of web pages on other hosts that may ask, comma-separated.")

    @property
    def allowed_origins(self) -> tuple[str, ...]:
        """The origins that may ask."""
        return tuple(name.strip() for name in self.origins.split(",") if name.strip())

    @property
    def aliases(self) -> tuple[str, ...]:
        """The accepted aliases."""
        return tuple(name.strip() for name in self.model_aliases.split(",") if name.strip())
