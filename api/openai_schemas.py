"""What OpenAI's doors answer with, for the OpenAPI document. The bodies are made in planner/dialects/, and
in api/doors/openai_errors.py where a request is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Probability = Annotated[float, Field(ge=0, le=1)]


class _Open(BaseModel):
    # Fields of ours stand beside OpenAI's where an extension was used.
    model_config = ConfigDict(extra="allow")


class PredicateAnswer(_Open):
    """How likely the statement is."""

    type: Literal["predicate"]
    name: str | None
    probability: Probability


class ValueProbability(BaseModel):
    """One choice; a string and a boolean of the same text are two."""

    value: str | bool
    probability: Probability


class DecisionsChoiceAnswer(_Open):
    """The likeliest choice, and the probability of each."""

    type: Literal["choice"]
    name: str | None
    choice: str | bool
    confidence: Annotated[float, Field(ge=-1e-6, le=1)]
    probabilities: list[ValueProbability]


class LevelProbability(BaseModel):
    """One level, counted from zero."""

    value: int
    label: str
    probability: Probability


class DecisionsScoreAnswer(_Open):
    """The expected level, and the probability of each."""

    type: Literal["score"]
    name: str | None
    score: Annotated[float, Field(ge=0)]
    confidence: Annotated[float, Field(ge=-1e-6, le=1)]
    probabilities: list[LevelProbability]


class InputTokensDetails(BaseModel):
    """Where input tokens came from. Engines do not say what they write to their caches: always 0."""

    cached_tokens: int
    cache_write_tokens: int


class OutputTokensDetails(BaseModel):
    """What output tokens were for."""

    reasoning_tokens: int


class DecisionsUsage(BaseModel):
    """Tokens."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class DecisionsResponse(BaseModel):
    """The answers in the order of the questions."""

    model: str
    answers: list[PredicateAnswer | DecisionsChoiceAnswer | DecisionsScoreAnswer]
    usage: DecisionsUsage
    diagnostics: dict[str, Any] | None = Field(None, description="What ran, when asked for.")


class ChatCompletion(_Open):
    """A decision as a chat completion, or what an engine said."""

    choices: list[dict[str, Any]] = Field(
        description="Of a decision: one, whose message's content is JSON with `answers` and `diagnostics`."
    )


class OpenAIErrorDetail(_Open):
    """What went wrong."""

    message: str
    type: str | None
    param: str | None
    code: str | int | None


class OpenAIError(BaseModel):
    """A refusal as OpenAI tells it, and engines too."""

    error: OpenAIErrorDetail


_ERROR = (OpenAIError,)

ERRORS: dict[int, tuple[str, tuple[type[BaseModel], ...]]] = {
    400: ("Wrong fields, a bad header, or more tokens than fit the context", _ERROR),
    401: ("No API key where the server wants one, or a wrong one", _ERROR),
    404: ("An unknown model", _ERROR),
    409: ("The decision was canceled, or its Idempotency-Key is in flight", _ERROR),
    413: ("A body over the limit", _ERROR),
    415: ("A Content-Encoding that is not served", _ERROR),
    422: ("An Idempotency-Key that came with another body", _ERROR),
    429: ("Over the key's rate, or too many open decisions", _ERROR),
    500: ("A fault of the server", _ERROR),
    502: ("An engine refused a read, or broke off", _ERROR),
    503: ("Overloaded, no engine, or no answer within the sync limit: come again", _ERROR),
    504: ("No answer by the decision's deadline", _ERROR),
}
"""What the doors refuse, by status."""
