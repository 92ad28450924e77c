"""What System One's door answers with, for the OpenAPI document. The bodies are made in
planner/dialects/systemone.py, and in api/doors/systemone.py where a request is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Probability = Annotated[float, Field(ge=0, le=1)]

Confidence = Annotated[float, Field(ge=-1e-6, le=1)]


class _Open(BaseModel):
    # Fields of ours stand beside System One's, by their plain names or with `x_` before them.
    model_config = ConfigDict(extra="allow")


class NoulAnswer(_Open):
    """The probability of yes."""

    type: Literal["noul"]
    noul: Probability


class ChoiceAnswer(_Open):
    """The likeliest option, and the probability of each."""

    type: Literal["choice"]
    choice: str
    probabilities: dict[str, Probability]
    confidence: Confidence


class ScoreAnswer(_Open):
    """The expected level, and the probability of each; levels are counted from zero."""

    type: Literal["score"]
    score: Annotated[float, Field(ge=0)]
    legend: dict[str, Any] = Field(description="The levels as they were asked.")
    probabilities: dict[str, Probability]
    confidence: Confidence


class SpanAnswer(_Open):
    """A piece of the state's text, as character offsets."""

    type: Literal["span"]
    found: bool
    text: str | None
    start: int | None
    end: int | None


class SpansAnswer(_Open):
    """Every such piece."""

    type: Literal["spans"]
    found: bool
    items: list[dict[str, Any]]


class ObjectAnswer(_Open):
    """A JSON value, or what is wrong with what the model wrote."""

    type: Literal["object"]
    value: Any
    valid: bool
    attempts: int
    finish_reason: str


Answer = NoulAnswer | ChoiceAnswer | ScoreAnswer | SpanAnswer | SpansAnswer | ObjectAnswer


class Usage(BaseModel):
    """Tokens."""

    input_tokens: int
    output_tokens: int


class SystemOneResponse(BaseModel):
    """The answers by question id; null for a question that its `ask_if` left out.

    To a `schema` there is a value too.
    """

    model: str
    answers: dict[str, Answer | None]
    usage: Usage
    value: Any = Field(None, description="With a `schema`: the value, null when it is not valid.")
    valid: bool | None = Field(None, description="With a `schema`: whether the value is valid against it.")
    errors: list[dict[str, Any]] | None = Field(None, description="Why it is not: `path`, `code`, `message`.")
    fields: dict[str, dict[str, Any]] | None = Field(
        None,
        description="With a `schema`: by JSON pointer, where a value comes from, and how sure it is.",
    )
    diagnostics: dict[str, Any] | None = Field(None, description="What ran, when asked for.")


class NamedModel(BaseModel):
    """A model as TypeSafe's clients read it."""

    name: str
    description: str
    release_date: str


class ListedModel(BaseModel):
    """A model as OpenAI's clients read it."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(BaseModel):
    """The served models and their aliases, for both worlds."""

    models: list[NamedModel]
    object: Literal["list"]
    data: list[ListedModel]


class ErrorDetail(BaseModel):
    """What went wrong."""

    error_type: Literal[
        "authentication_error",
        "api_usage_error",
        "max_tokens_exceeded",
        "rate_limit_error",
        "overloaded_error",
        "api_error",
    ]
    message: str


class SystemOneError(BaseModel):
    """A refusal as System One tells it."""

    detail: ErrorDetail


class InvalidField(BaseModel):
    """One wrong field: its path, what is wrong, the rule's name, and what was given."""

    loc: list[str | int]
    msg: str
    type: str
    input: Any


class SystemOneInvalid(BaseModel):
    """Every wrong field of a body."""

    detail: list[InvalidField] = Field(min_length=1)


_ERROR = (SystemOneError,)

ERRORS: dict[int, tuple[str, tuple[type[BaseModel], ...]]] = {
    400: ("An unknown model or question type, a bad header, or more tokens than fit the context", _ERROR),
    401: ("A wrong API key", _ERROR),
    403: ("No API key where the server wants one", _ERROR),
    409: ("The decision was canceled, or its Idempotency-Key is in flight", _ERROR),
    413: ("A body over the limit", _ERROR),
    415: ("A Content-Encoding that is not served", _ERROR),
    422: ("Wrong fields, or an Idempotency-Key that came with another body", (SystemOneInvalid, *_ERROR)),
    429: ("Over the key's rate, or too many open decisions", _ERROR),
    500: ("A fault of the server", _ERROR),
    502: ("An engine refused a read", _ERROR),
    529: ("Overloaded, or no answer within the sync limit: come again", _ERROR),
}
"""What the door refuses, by status."""

NO_KEY: dict[int | str, dict[str, Any]] = {
    status: {"description": ERRORS[status][0], "model": SystemOneError} for status in (401, 403)
}
"""What any route of the door refuses where the server wants a key."""
