"""Web pages of a folder that the operator names: `GET /name` serves `name.html` (API.md, section 5)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse
from starlette.routing import Match

INDEX = "index"
HEADERS = {"X-Content-Type-Options": "nosniff"}


def router(folder: Path) -> APIRouter:
    """The routes of a folder's pages; to be included last, as any one-part path is theirs."""
    pages, root = APIRouter(), folder.resolve()

    @pages.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    @pages.api_route("/{name}", methods=["GET", "HEAD"], include_in_schema=False)
    async def page(request: Request, name: str = INDEX) -> FileResponse:
        """A page, whoever asks. Raises HTTPException: 404, or 405 for what is a route of the API's."""
        if request.method == "HEAD" and _is_taken(request):
            raise HTTPException(405, "Method Not Allowed", {"Allow": "GET"})
        found = await asyncio.to_thread(page_of, root, name)
        if found is None:
            raise HTTPException(404, "there is no such page")
        return FileResponse(found, media_type="text/html", headers=HEADERS)

    return pages


def _is_taken(request: Request) -> bool:
    """Whether a path is that of a route ahead of the pages, which come last, with another method."""
    return any(route.matches(request.scope)[0] is not Match.NONE for route in request.app.routes[:-1])


def page_of(root: Path, name: str) -> Path | None:
    """The file of a page in a resolved folder, None when there is none.

    It lies in the folder, links followed; it ends in `.html`; no part of its path begins with a dot.
    """
    if name.startswith(".") or {"/", "\\"} & set(name):
        return None
    try:
        found = (root / f"{name}.html").resolve(strict=True)
        inside = found.relative_to(root)
    except (OSError, ValueError, RuntimeError):
        # Not there; a name that no file can have, or outside of the folder; links that lead in a circle.
        return None
    hidden = any(part.startswith(".") for part in inside.parts)
    return found if found.suffix == ".html" and not hidden and found.is_file() else None
