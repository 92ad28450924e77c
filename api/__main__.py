"""`python -m api`: one API process, set up by environment variables (api/settings.py)."""

from __future__ import annotations

from types import FrameType

import uvicorn
from fastapi import FastAPI

from api.app import make_app
from api.settings import ApiSettings
from workers.logs import set_up_logs


class Server(uvicorn.Server):
    """Uvicorn's server, which tells those who wait for long that it has to go."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Have event streams and long polls end; requests for an answer are waited for."""
        if hasattr(self._app.state, "service"):
            self._app.state.service.leaving = True
        super().handle_exit(sig, frame)


def main() -> None:
    """Serve until told to stop; SIGTERM lets requests under way end first."""
    settings = ApiSettings()
    set_up_logs(settings)
    app = make_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_config=None,
        server_header=False,
        log_level="warning",
        timeout_graceful_shutdown=30,
    )
    Server(config, app).run()


if __name__ == "__main__":
    main()
