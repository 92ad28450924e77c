"""`python -m workers`: one worker process, set up by environment variables (workers/settings.py)."""

from __future__ import annotations

import os
import socket

from workers.celery_app import BATCH
from workers.logs import set_up_logs
from workers.settings import Settings
from workers.tasks import make_worker

BATCH_NICENESS = 10
"""How far a worker for batches alone steps back from the processor."""


def main() -> None:
    """Run a worker until it is told to stop: SIGTERM lets what runs end first."""
    settings = Settings()
    set_up_logs(settings)
    if settings.lanes == (BATCH,):
        os.nice(BATCH_NICENESS)
    make_worker(settings).worker_main(
        [
            "--quiet",
            "worker",
            "--pool=threads",
            f"--concurrency={settings.worker_threads}",
            f"--queues={','.join(settings.lanes)}",
            f"--hostname={socket.gethostname()}-{os.getpid()}",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            "--loglevel=WARNING",
        ]
    )


if __name__ == "__main__":
    main()
