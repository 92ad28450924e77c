"""`python -m api [--pages DIR]`: one API process, set up by environment variables (api/settings.py)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
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


def main(arguments: Sequence[str]) -> None:
    """Serve until told to stop; SIGTERM lets requests under way end first."""
    settings = settings_of(arguments)
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


def settings_of(arguments: Sequence[str]) -> ApiSettings:
    """The settings of the environment, and of the command line over them."""
    parser = argparse.ArgumentParser(prog="python -m api", description="One API process of Canvass.")
    parser.add_argument(
        "--pages", type=Path, metavar="DIR", help="folder of web pages (CANVASS_PAGES); off by default"
    )
    pages = parser.parse_args(arguments).pages
    return ApiSettings() if pages is None else ApiSettings(pages=pages)


if __name__ == "__main__":
    main(sys.argv[1:])
