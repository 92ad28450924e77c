"""What a request can be refused with, as OpenAI's error object.

ApiError
├── BadRequest      400, names the field
├── ModelUnknown    404
├── QueueFull       503, another engine may have room
└── EngineError     500, the backend failed
"""

from typing import Any


class ApiError(Exception):
    """A refusal; `body()` is the JSON that vLLM would answer."""

    status = 500
    kind = "InternalServerError"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field

    def body(self) -> dict[str, Any]:
        """OpenAI's error object, as vLLM fills it."""
        error = {"message": self.message, "type": self.kind, "param": self.field, "code": self.status}
        return {"error": error}


class BadRequest(ApiError):
    """The request is wrong: the field says where, the message what would be right."""

    status = 400
    kind = "BadRequestError"


class ModelUnknown(ApiError):
    """The request names a model that is not served here."""

    status = 404
    kind = "NotFoundError"


class QueueFull(ApiError):
    """More requests wait than `--max-queued` allows."""

    status = 503
    kind = "ServiceUnavailableError"


class EngineError(ApiError):
    """The backend could not answer."""
