"""A server of recorded bodies, over real HTTP, for the tests of the SDK."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import BaseModel, Field, field_validator

ID = "dec_0123456789abcdef"
REFUSED = {"x-typesafe-request-id": "dec_of_nothing"}
"""What goes with a refusal: an id, of which there is no job."""

ID_HEADER = {"x-typesafe-request-id": ID, "preference-applied": "wait=50"}
"""What goes with whatever is said of a decision that was accepted."""


class Ticket(BaseModel):
    urgent: bool = Field(description="Is it urgent?")
    stars: int = Field(ge=1, le=5)

    @field_validator("stars")
    @classmethod
    def _not_three(cls, stars: int) -> int:
        if stars == 3:
            raise ValueError("three says nothing")
        return stars


BODY: dict[str, Any] = {
    "model": "jev-latest",
    "answers": {"urgent": {"type": "noul", "noul": 0.9}},
    "usage": {"input_tokens": 20, "output_tokens": 2},
    "value": {"urgent": True, "stars": 4},
    "valid": True,
    "errors": [],
    "fields": {
        "/urgent": {
            "kind": "read",
            "type": "noul",
            "question": "urgent",
            "probabilities": {"true": 0.9, "false": 0.1},
            "confidence": 0.9,
            "attempts": 1,
            "engine": "http://127.0.0.1:9001",
            "model": "script",
        }
    },
}
"""An answer as `POST /v1/systemone` gives it to a schema."""


def job(status: str, **more: Any) -> dict[str, Any]:
    done = status not in ("queued", "running")
    return {"id": ID, "status": status, "done": done, "result": None, "error": None, **more}


@dataclass
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class Reply:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    after_s: float = 0.0


@dataclass
class Recorded:
    """A server that answers by a function, and keeps what it was asked."""

    answer: Callable[[Asked], Reply | None]
    asked: list[Asked] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    url: str = ""

    def paths(self) -> list[str]:
        return [f"{one.method} {one.path.partition('?')[0]}" for one in self.asked]


ANSWERED = Reply(200, BODY, ID_HEADER)
FULL = {"detail": {"error_type": "overloaded_error", "message": "full"}}
BUSY = Reply(529, FULL, {**REFUSED, "retry-after-ms": "20"})
INVALID = [
    {"loc": ["body", "schema", "properties", "a"], "msg": "no such type", "type": "schema_type", "input": 1},
    {"loc": ["body", "state"], "msg": "missing", "type": "missing", "input": None},
]

Serve = Callable[..., Recorded]


def in_turn(*replies: Reply | None) -> Callable[[Asked], Reply | None]:
    """Replies in their order, the last one for good. None breaks the connection off."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A client that closes its connection is no error here."""


@contextmanager
def serving(answer: Callable[[Asked], Reply | None]) -> Iterator[Recorded]:
    """The server while the block runs."""
    lock, recorded = threading.Lock(), Recorded(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, json.loads(content) if content else None)
            with lock:
                recorded.asked.append(asked)
                recorded.at_once += 1
                recorded.most_at_once = max(recorded.most_at_once, recorded.at_once)
                reply = recorded.answer(asked)
            time.sleep(reply.after_s if reply else 0)
            with lock:
                recorded.at_once -= 1
            if reply is None:
                self.close_connection = True
                return
            told = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {**reply.headers, "content-length": str(len(told))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(told)

        do_GET = do_POST = _serve  # noqa: N815 - http.server names them

        def log_message(self, *_: Any) -> None:
            pass

    with _Server(("127.0.0.1", 0), Handler) as server:
        recorded.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield recorded
        finally:
            server.shutdown()
            thread.join()
