"""Foreign origins: a web page of someone else's must not use a visitor's browser to ask this server.

A browser says with `Origin` which page sends a request that changes something. A server without keys on
somebody's own machine would otherwise answer any page that they happen to look at. Pages of the origins that
an operator allows may ask, and read what is answered (CORS).
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from api.problems import problem
from api.refusals import Refusal

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def guarded(app: ASGIApp, allowed: Sequence[str]) -> ASGIApp:
    """An app that refuses pages of other hosts, but for those of the allowed origins."""
    app = RefuseForeignOrigins(app, tuple(allowed))
    if not allowed:
        return app
    everything = ("*",)
    return CORSMiddleware(
        app,
        allow_origins=allowed,
        allow_methods=everything,
        allow_headers=everything,
        expose_headers=everything,
    )


class RefuseForeignOrigins:
    """Refuses what changes something and comes from a page of another host (403). `allowed` are origins
    that may, as `https://app.example.com`.
    """

    def __init__(self, app: ASGIApp, allowed: tuple[str, ...]) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and scope["method"] not in _SAFE:
            headers = dict(scope["headers"])
            origin = headers.get(b"origin")
            if origin is not None and self._is_foreign(origin.decode("latin-1"), headers.get(b"host", b"")):
                message = f"pages of {origin.decode('latin-1')} may not ask this server (CANVASS_ORIGINS)"
                await problem(Refusal(403, "foreign_origin", message))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_foreign(self, origin: str, host: bytes) -> bool:
        return origin not in self._allowed and _host_of(origin) != host.decode("latin-1")


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        # No address: half of an IPv6 one, say.
        return None
