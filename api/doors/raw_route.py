"""A route whose endpoint takes the request and gives the response, with nothing in between.

Doors read and check their bodies themselves, each in its dialect's terms, so FastAPI has no parameters
to solve and no model to serialise. The route still stands in the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute


class RawRoute(APIRoute):
    """To be named as a router's `route_class`; its endpoints are `async def (Request) -> Response`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint itself."""
        return self.endpoint
