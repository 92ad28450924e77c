"""`canvass webhook listen`: a receiver for development, which shows and verifies what arrives."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from standardwebhooks import Webhook, WebhookVerificationError
from standardwebhooks.webhooks import EmptyWebhookSecretError

from client.cells import printable
from client.errors import BadWebhookSecret, PortTaken
from client.up import default_data, kept_secret

MOST_BODY = 64 * 2**20
"""Bytes of a webhook that are read."""

app = typer.Typer(no_args_is_help=True, help="Webhooks on this machine.")


@app.callback()
def webhook() -> None:
    """Webhooks on this machine."""


@dataclass
class Inbox:
    """What has arrived, and how it is shown. Several may arrive at once.

    `secret` is what they must be signed with, None to show them unverified; `status` what they are
    answered with when they are good.
    """

    console: Console
    secret: Webhook | None
    status: int
    _seen: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def receive(self, path: str, headers: Mapping[str, str], body: bytes) -> int:
        """Show a webhook; the status to answer it with: 400 for one that is not signed as it should be."""
        fault = self._fault(headers, body)
        id = headers.get("webhook-id", "without an id")
        with self._lock:
            self._seen[id] += 1
            time = f" (time {self._seen[id]})" if self._seen[id] > 1 else ""
            self.console.print(f"POST {printable(path)}  {printable(id)}{time}  {self._verdict(fault)}")
            self.console.print(_shown(body))
        return self.status if fault is None else 400

    def _fault(self, headers: Mapping[str, str], body: bytes) -> str | None:
        if self.secret is None:
            return None
        try:
            self.secret.verify(body, dict(headers), json_parse=False)
        except (WebhookVerificationError, ValueError) as error:
            return str(error)
        return None

    def _verdict(self, fault: str | None) -> str:
        if fault is not None:
            return f"NOT VERIFIED: {fault}"
        return "not verified: no secret is known here" if self.secret is None else "verified"


@app.command()
def listen(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 9000,
    secret: Annotated[
        str | None,
        typer.Option(
            envvar="CANVASS_WEBHOOK_SECRET",
            help="whsec_...; that of a `canvass up` on this machine by default.",
        ),
    ] = None,
    status: Annotated[int, typer.Option(min=200, max=599, help="What to answer.")] = 204,
) -> None:
    """Show and verify the webhooks that arrive on this machine's loopback address, until Ctrl-C."""
    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    inbox = Inbox(console, _webhook(secret or kept_secret(default_data())), status)
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _handler(inbox))
    except OSError as error:
        raise PortTaken(f"Cannot listen on port {port}: {error}. {PortTaken.__doc__}") from error
    with server:
        console.print(f"Listening on http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)")
        sys.stdout.flush()
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            console.print("Stopped.")


def _webhook(secret: str | None) -> Webhook | None:
    if secret is None:
        return None
    try:
        return Webhook(secret)
    except (ValueError, EmptyWebhookSecretError) as error:
        raise BadWebhookSecret(BadWebhookSecret.__doc__) from error


def _handler(inbox: Inbox) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = self.headers.get("Content-Length", "")
            if not size.isdigit() or int(size) > MOST_BODY:
                self.send_error(411, "A webhook has a Content-Length")
                return
            body = self.rfile.read(int(size))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(inbox.receive(self.path, headers, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """The inbox has shown it."""

    return Handler


def _shown(body: bytes) -> str:
    """A body for the terminal. JSON escapes what would steer it."""
    try:
        value: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return printable(body.decode(errors="replace"))
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
