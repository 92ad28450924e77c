"""Receivers of webhooks for the tests: real HTTP servers that answer as they are told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from standardwebhooks import Webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@dataclass(frozen=True)
class Reply:
    """What to answer: `delay_s` is slept first, `headers` are sent with it."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


@dataclass(frozen=True)
class Call:
    """A request that came: when (seconds since 1970), its path, headers in lower case, and body."""

    at: float
    path: str
    headers: Mapping[str, str]
    body: bytes

    def verified(self, secret: str = SECRET) -> Any:
        """The body, once its signature has been checked by the library that receivers use."""
        return Webhook(secret).verify(self.body, dict(self.headers))


class Inbox:
    """A receiver's address, and what has come so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.calls: list[Call] = []
        self.released = Event()

    def wait(self, count: int, within_s: float = 30) -> list[Call]:
        """All calls, once there are `count`."""
        until = time.monotonic() + within_s
        while len(self.calls) < count:
            assert time.monotonic() < until, f"{len(self.calls)} calls of {count} came in {within_s} s"
            time.sleep(0.02)
        return list(self.calls)


@contextmanager
def receiving(*replies: Reply) -> Iterator[Inbox]:
    """A receiver that gives each reply once, in order, and the last one for ever."""
    rest: Sequence[Reply] = replies or (Reply(),)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = rest[min(len(inbox.calls), len(rest) - 1)]
            inbox.calls.append(Call(time.time(), self.path, headers, body))
            if reply.delay_s:
                inbox.released.wait(reply.delay_s)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            content = b"" if reply.status == 204 else json.dumps({"said": reply.status}).encode()
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """The caller went away while it was kept waiting: that is what some tests want."""

    server = Server(("127.0.0.1", 0), Handler)
    inbox = Inbox(f"http://127.0.0.1:{server.server_port}/hook")
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield inbox
    finally:
        inbox.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
