"""CPU time and memory of processes, and a server of our own to measure against."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import psutil

from client.ports import free_port


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time that processes have used so far, their children included."""
    total = 0.0
    for pid in pids:
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            times = one.cpu_times()
            total += times.user + times.system
    return total


def rss_mib(pid: int) -> float:
    """The memory of a process, its children included, in MiB."""
    process = psutil.Process(pid)
    sizes = [one.memory_info().rss for one in (process, *process.children(recursive=True))]
    return float(sum(sizes)) / 2**20


@contextmanager
def floor_server(engine: str) -> Iterator[tuple[str, int]]:
    """The URL and process id of a running `bench.floor` in front of an engine's route."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    process = subprocess.Popen([sys.executable, "-m", "bench.floor", str(port), engine])
    try:
        _wait_for(f"{url}docs", process)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes], timeout_s: float = 30) -> None:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the floor server did not start")
