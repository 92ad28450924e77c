"""`python -m api`: one API process, set up by environment variables (api/settings.py)."""

from __future__ import annotations

import uvicorn

from api.app import make_app
from api.settings import ApiSettings
from workers.logs import set_up_logs


def main() -> None:
    """Serve until told to stop; SIGTERM lets requests under way end first."""
    settings = ApiSettings()
    set_up_logs(settings)
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
