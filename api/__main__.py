"""`python -m api`: one API process, set up by environment variables (api/settings.py)."""

from __future__ import annotations

import uvicorn

from api.app import make_app
from api.settings import ApiSettings


def main() -> None:
    """Serve until told to stop; SIGTERM lets requests under way end first."""
    settings = ApiSettings()
    uvicorn.run(
        make_app(settings),
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        access_log=False,
        server_header=False,
        log_level="warning",
        timeout_graceful_shutdown=30,
    )


if __name__ == "__main__":
    main()
