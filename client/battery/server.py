"""The server under the battery: its requests, and what its refusals mean."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from client.battery.material import Case
from client.errors import ServerRefused
from client.http import OK, Response, post, refusal

NOT_SERVED = frozenset({400, 404, 405, 422, 501})
"""What a server answers that does not know a kind of question, or a path."""

TRIES = 3
_BUSY = frozenset({429, 529})
_LONGEST_PAUSE_S = 30.0
_RETRY_COUNT = "x-typesafe-retry-count"
_PROBE = {"state": "The sky is blue.", "questions": {"colour": {"type": "span", "instructions": "Which?"}}}


class NotServed(ServerRefused):
    """The server does not serve this part of the battery."""


@dataclass
class Server:
    """A server of System One. `key` is sent as a bearer token; `requests` counts what was sent."""

    url: str
    model: str
    key: str | None = None
    requests: int = field(default=0, init=False)

    def probe_spans(self) -> None:
        """Ask one small span question. Raises `NotServed` when such questions are refused."""
        self._known(self._post("/v1/systemone", {"model": self.model, **_PROBE}))

    def decide(self, case: Case) -> dict[str, Any]:
        """The body that answers a case. Raises `ServerUnreachable` or `ServerRefused`."""
        body = {"model": self.model, "state": case.state, "questions": case.questions, "diagnostics": True}
        return _object(self._good(self._post("/v1/systemone", body)))

    def chat(self, case: Case) -> dict[str, Any]:
        """The answers of a case asked in the structured chat form. Raises as `decide`, or `NotServed`."""
        response = self._known(self._post("/v1/chat/completions", chat_body(self.model, case)))
        try:
            content = _object(response)["choices"][0]["message"]["content"]
            body = orjson.loads(content)
            answers = body["answers"]
        except (orjson.JSONDecodeError, KeyError, IndexError, TypeError) as error:
            raise NotServed(OK, "the server answers with ordinary chat") from error
        if isinstance(answers, list):
            body["answers"] = {answer["id"]: answer for answer in answers}
        found: dict[str, Any] = body
        return found

    def _post(self, path: str, body: Mapping[str, Any]) -> Response:
        """One request; a busy server is asked again, at most `TRIES` times in all, as it says."""
        for attempt in range(TRIES):
            headers = {} if self.key is None else {"authorization": f"Bearer {self.key}"}
            if attempt:
                headers[_RETRY_COUNT] = str(attempt)
            self.requests += 1
            response = post(self.url, path, body, headers)
            if response.status not in _BUSY or attempt == TRIES - 1:
                break
            time.sleep(_pause(response))
        return response

    def _known(self, response: Response) -> Response:
        if response.status in NOT_SERVED:
            raise NotServed(response.status, refusal(response.status, response.content))
        return self._good(response)

    def _good(self, response: Response) -> Response:
        if response.status != OK:
            raise ServerRefused(response.status, refusal(response.status, response.content))
        return response


def chat_body(model: str, case: Case) -> dict[str, Any]:
    """A case in the structured chat form: a system message of JSON questions, then the state."""
    questions = []
    for asked in case.asked:
        question = {"id": asked.id, "type": asked.type, "instructions": asked.question.get("instructions")}
        criteria: Any = asked.question.get("criteria")
        if asked.type == "choice":
            question["options"] = [{"name": name, "description": told} for name, told in criteria.items()]
        elif asked.type == "score":
            question["levels"] = criteria
        questions.append(question)
    schema = orjson.dumps({"questions": questions}).decode()
    state = case.state if isinstance(case.state, str) else orjson.dumps(case.state).decode()
    messages = [{"role": "system", "content": schema}, {"role": "user", "content": state}]
    return {"model": model, "messages": messages}


def _object(response: Response) -> dict[str, Any]:
    try:
        body = orjson.loads(response.content)
    except orjson.JSONDecodeError as error:
        raise ServerRefused(OK, f"200 with a body that is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise ServerRefused(OK, "200 with a body that is no JSON object")
    return body


def _pause(response: Response) -> float:
    """Seconds that a busy server asks to be left alone, one where it does not say."""
    said = response.headers.get("retry-after", "")
    return min(float(said), _LONGEST_PAUSE_S) if said.isdigit() else 1.0
