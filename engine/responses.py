"""The bodies that vLLM's OpenAI server answers with."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.codec import Codec
from engine.requests import Call
from engine.tool_calls import message_of
from engine.work import Row

_numbers = itertools.count(1)


class TokenNames(dict[int, str]):
    """`token_id:N` by id, made once each."""

    def __missing__(self, token: int) -> str:
        name = self[token] = f"token_id:{token}"
        return name


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes bodies for one model. `names` is shared by all requests."""

    model: str
    codec: Codec
    names: TokenNames

    def name(self, token: int, call: Call) -> str:
        """A token as the response shows it."""
        return self.names[token] if call.token_names else self.codec.token_text(token)

    def envelope(self, call: Call, chunk: bool = False) -> dict[str, Any]:
        """What every body starts with."""
        kind = ("chat.completion.chunk" if chunk else "chat.completion") if call.chat else "text_completion"
        prefix = "chatcmpl" if call.chat else "cmpl"
        return {
            "id": f"{prefix}-{next(_numbers)}",
            "object": kind,
            "created": int(time.time()),
            "model": self.model,
        }

    def choice(
        self, call: Call, index: int, text: str, rows: Sequence[Row] | None, finish: str | None
    ) -> dict[str, Any]:
        """One whole choice; `rows` None means no log-probabilities."""
        logprobs = None if rows is None else self.logprobs(call, rows)
        tail = {"logprobs": logprobs, "finish_reason": finish, "stop_reason": None}
        if call.chat and call.tools is not None:
            message, calls = message_of(text, call.tools)
            # Also when it was cut: vLLM's way.
            return {
                "index": index,
                "message": message,
                **tail,
                "finish_reason": "tool_calls" if calls else finish,
            }
        if call.chat:
            return {"index": index, "message": {"role": "assistant", "content": text}, **tail}
        return {"index": index, "text": text, **tail}

    def logprobs(self, call: Call, rows: Sequence[Row]) -> dict[str, Any]:
        """The log-probabilities of a choice in the shape of its route."""
        return self._chat_logprobs(call, rows) if call.chat else self._completion_logprobs(call, rows)

    def _completion_logprobs(self, call: Call, rows: Sequence[Row]) -> dict[str, Any]:
        text, names = self.codec.token_text, self.names
        offsets = list(itertools.accumulate((len(text(row.token)) for row in rows), initial=0))[:-1]
        top = (
            [{names[token]: value for token, value in row.logprobs.items()} for row in rows]
            if call.token_names
            else [{text(token): value for token, value in row.logprobs.items()} for row in rows]
        )
        return {
            "tokens": [self.name(row.token, call) for row in rows],
            "token_logprobs": [row.logprobs[row.token] for row in rows],
            "top_logprobs": top,
            "text_offset": offsets,
        }

    def _chat_logprobs(self, call: Call, rows: Sequence[Row]) -> dict[str, Any]:
        def entry(token: int, value: float) -> dict[str, Any]:
            encoded = list(self.codec.token_text(token).encode())
            return {"token": self.name(token, call), "logprob": value, "bytes": encoded}

        content = [
            entry(row.token, row.logprobs[row.token])
            | {"top_logprobs": [entry(token, value) for token, value in row.logprobs.items()]}
            for row in rows
        ]
        return {"content": content}


def usage(prompt: int, completion: int, cached: int) -> dict[str, Any]:
    """Counts of tokens; `cached` is the part of the prompt that the prefix cache held."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
