"""Child processes: started, watched, ended for certain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from client import redis_server
from client.errors import ChildEnded, DataInUse, NotReady, PortTaken
from client.guard import read_groups
from client.ports import free_port, local_url, require_free
from client.process import Child, Guard, wait_until

SLEEP = "import time; print('here', flush=True); time.sleep(60)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
ORPHANING = """
import os, sys, signal
from pathlib import Path
from client.process import Child, Guard
folder = Path(sys.argv[1])
child = Child("child", [sys.executable, "-c", "import time; time.sleep(60)"], env={},
              log=folder / "child.log", guard=Guard())
child.start()
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def guard() -> Iterator[Guard]:
    guard = Guard()
    yield guard
    guard.close()


def python(code: str, folder: Path, guard: Guard, grace_s: float = 5.0) -> Child:
    command = [sys.executable, "-c", code]
    return Child("child", command, env={}, log=folder / "child.log", guard=guard, grace_s=grace_s)


def gone(pid: int) -> bool | None:
    """True once a process has ended, for `wait_until`; one that nobody reaped counts as ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return True if state == "Z" else None


def await_text(child: Child, text: str) -> None:
    wait_until(lambda: text in child.written() or None, timeout_s=10, what=lambda: f"no {text!r}")


def test_a_stopped_child_is_gone(tmp_path: Path, guard: Guard) -> None:
    child = python(SLEEP, tmp_path, guard)
    child.start()
    await_text(child, "here")
    assert child.running
    child.stop()
    assert not child.running
    assert not Path(f"/proc/{child.pid}").exists()
    child.require_alive()  # ended because it was asked to: no complaint


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path, guard: Guard) -> None:
    child = python(STUBBORN, tmp_path, guard, grace_s=0.1)
    child.start()
    await_text(child, "here")
    child.stop()
    assert child.returncode == -signal.SIGKILL


def test_a_child_that_ends_by_itself_is_reported_with_the_end_of_its_log(
    tmp_path: Path, guard: Guard
) -> None:
    child = python("import sys; print('the reason', file=sys.stderr); sys.exit(3)", tmp_path, guard)
    child.start()
    wait_until(lambda: True if child.ended_unasked else None, timeout_s=10, what=lambda: "still running")
    with pytest.raises(ChildEnded, match=r"child ended with status 3(.|\n)*the reason"):
        child.require_alive()


def test_a_child_can_be_started_again_and_its_log_goes_on(tmp_path: Path, guard: Guard) -> None:
    child = python(SLEEP, tmp_path, guard)
    child.start()
    await_text(child, "here")
    first = child.pid
    child.kill()
    child.start()
    await_text(child, "here")
    assert child.pid != first
    assert child.log.read_text() == "here\nhere\n"
    assert child.written() == "here\n"
    child.stop()


def test_the_children_of_a_killed_process_end(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    killed = subprocess.run(
        [sys.executable, "-c", ORPHANING, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert killed.returncode == -signal.SIGKILL
    pid = int(killed.stdout)
    assert wait_until(lambda: gone(pid), timeout_s=10, what=lambda: f"{pid} lives on")


def test_the_guard_lists_what_was_started_and_not_forgotten() -> None:
    assert read_groups(["+1\n", "+2\n", "-1\n", "+3\n", "nonsense\n", "-9\n"]) == [2, 3]


def test_a_redis_answers_keeps_its_writes_and_is_gone_after_its_stop(tmp_path: Path, guard: Guard) -> None:
    port = free_port()
    redis = Child(
        "redis", redis_server.redis_command(port, tmp_path), env={}, log=tmp_path / "log", guard=guard
    )
    redis.start()
    wait_until(lambda: redis_server.answers_ping(port) or None, timeout_s=10, what=redis.tail)
    with pytest.raises(PortTaken):
        require_free("127.0.0.1", port)
    redis.stop()
    assert not redis_server.answers_ping(port)
    assert not Path(f"/proc/{redis.pid}").exists()
    assert list(tmp_path.glob("appendonly*"))


def test_a_data_folder_serves_one_stack_at_a_time(tmp_path: Path) -> None:
    lock = redis_server.lock_folder(tmp_path)
    with pytest.raises(DataInUse, match=str(tmp_path)):
        redis_server.lock_folder(tmp_path)
    os.close(lock)
    os.close(redis_server.lock_folder(tmp_path))


def test_waiting_ends_with_what_was_waited_for() -> None:
    start = time.monotonic()
    with pytest.raises(NotReady, match="a thing did not come"):
        wait_until(lambda: None, timeout_s=0.05, what=lambda: "a thing did not come")
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:80"), ("::", "http://[::1]:80"), ("box", "http://box:80")],
)
def test_a_server_on_every_address_is_reached_on_the_loopback(host: str, url: str) -> None:
    assert local_url(host, 80) == url
