"""One child process: started in a session of its own, logging to a file, and ended for certain."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from client.errors import ChildEnded, NotReady

POLL_S = 0.02
_TAIL_LINES = 15
_GUARD_GRACE_S = 10.0

T = TypeVar("T")


class Guard:
    """Ends the children should this process be killed: the parent's side of `client/guard.py`."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("guard.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), str(_GUARD_GRACE_S)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    @property
    def pid(self) -> int:
        """The guard's process id."""
        return self._process.pid

    def watch(self, pid: int) -> None:
        """Add a process group."""
        self._tell(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        """Take a process group off: it has ended, and its number may be used again."""
        self._tell(f"-{pid}\n")

    def close(self) -> None:
        """End the guard, and with it whatever is still watched."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        # A guard that somebody killed is no reason to end the stack; children are still ended by stop().
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line)
            self._process.stdin.flush()


class Child:
    """One child process, startable again after it ended.

    Its output goes to `log`, standard output apart to `output` when given. `grace_s` is the time in
    seconds between SIGTERM and SIGKILL. It leads a session of its own, so that Ctrl-C in a terminal
    reaches the parent alone, which ends its children in order; signals go to its whole group.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        guard: Guard,
        output: Path | None = None,
        grace_s: float = 5.0,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.command = tuple(command)
        self.env = dict(env)
        self.log = log
        self.output = output
        self.grace_s = grace_s
        self._guard = guard
        self._pass_fds = tuple(pass_fds)
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._end_wanted = False

    @property
    def pid(self) -> int:
        """The process id of the last start; a RuntimeError before it."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal, None while it runs."""
        return None if self._process is None else self._process.poll()

    @property
    def ended_unasked(self) -> bool:
        """Whether it ended without `stop` or `kill`."""
        return self._process is not None and not self._end_wanted and not self.running

    def start(self) -> None:
        """Start it; its log goes on where it is started again, and begins anew the first time."""
        mode = "wb" if self._process is None else "ab"
        if self._process is not None:
            self._guard.forget(self._process.pid)
        self._end_wanted = False
        with self.log.open(mode) as log:
            self._log_start = log.tell()
            output = self.output.open("wb") if self.output else contextlib.nullcontext(log)
            with output as stdout:
                self._process = subprocess.Popen(
                    self.command,
                    env=self.env,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=self._pass_fds,
                )
        self._guard.watch(self._process.pid)

    def terminate(self) -> None:
        """Ask it to end; `stop` waits for it."""
        self._end_wanted = True
        if self.running:
            self._signal(signal.SIGTERM)

    def stop(self, grace_s: float | None = None) -> None:
        """End it: SIGTERM, then SIGKILL after `grace_s` seconds. Returns when it is gone."""
        was_running = self.running
        self.terminate()
        if self._process is None:
            return
        if was_running:
            try:
                self._process.wait(self.grace_s if grace_s is None else grace_s)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self._process.wait()
        self._guard.forget(self._process.pid)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would. Returns when it is gone."""
        self._end_wanted = True
        if self.running:
            self._signal(signal.SIGKILL)
            self.stop()

    def strike(self) -> None:
        """Send SIGKILL without waiting: safe in a signal handler, even in one that interrupts `stop`."""
        if self._process is not None and self._process.returncode is None:
            self._signal(signal.SIGKILL)

    def written(self) -> str:
        """What it has logged since its last start."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", errors="replace")

    def printed(self) -> str:
        """What it has written to standard output since its last start, where that is kept apart."""
        if self.output is None or not self.output.exists():
            return ""
        return self.output.read_text(encoding="utf-8", errors="replace")

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """The last lines of its log since its last start."""
        return "\n".join(self.written().rstrip().splitlines()[-lines:])

    def require_alive(self) -> None:
        """Raise `ChildEnded`, with the end of its log, when it ended without being asked to."""
        if self.ended_unasked:
            status = self.returncode
            how = f"by signal {-status}" if status is not None and status < 0 else f"with status {status}"
            tail = self.tail()
            said = f"Its log, {self.log}, ends:\n{tail}" if tail else f"It logged nothing in {self.log}."
            raise ChildEnded(f"{self.name} ended {how}. {said}")

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


def wait_until(probe: Callable[[], T | None], *, timeout_s: float | None, what: Callable[[], str]) -> T:
    """The first value of `probe` that is not None; `NotReady` with `what()` after `timeout_s` seconds."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        value = probe()
        if value is not None:
            return value
        if deadline is not None and time.monotonic() > deadline:
            raise NotReady(what())
        time.sleep(POLL_S)


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of this project in a new interpreter.

    `-P` keeps the current folder off the path: a user's own folder named `api` must not be run.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def child_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """A child's environment: this process's own without its `CANVASS_` settings, and `settings`.

    Settings of the surrounding shell would make one stack unlike the next.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CANVASS_")}
    root = _module_path()
    if root:
        inherited["PYTHONPATH"] = os.pathsep.join(filter(None, [root, inherited.get("PYTHONPATH")]))
    # A ready line must reach the log when it is printed, not when a buffer is full.
    return {**inherited, "PYTHONUNBUFFERED": "1", **settings}


def _module_path() -> str | None:
    """What PYTHONPATH must begin with for `module_command`; None where the packages are installed."""
    root = Path(__file__).resolve().parent.parent
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    return None if root in installed else str(root)
