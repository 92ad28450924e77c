"""Ends the children of a process that can no longer do it itself: killed, crashed, or gone.

    python -I -S guard.py GRACE_S        reads lines "+PID" and "-PID" on standard input

The parent holds the only other end of that pipe, so the end of the input means that the parent is
gone, whatever took it. Then every process group still listed gets SIGTERM, last started first, and
SIGKILL after GRACE_S seconds in all. A pipe instead of Linux's PR_SET_PDEATHSIG, because that signal
follows the thread that forked rather than the process, and is one signal with nothing after it.

Standard library only, and run as a file: it starts in 10 ms.
"""

import contextlib
import os
import signal
import sys
import time

_POLL_S = 0.02


def read_groups(lines: "list[str]") -> "list[int]":
    """The process groups that lines of "+PID" and "-PID" leave, in the order they were started."""
    groups: list[int] = []
    for line in lines:
        sign, number = line[:1], line[1:].strip()
        if not number.isdigit():
            continue
        if sign == "+":
            groups.append(int(number))
        elif int(number) in groups:
            groups.remove(int(number))
    return groups


def end(groups: "list[int]", grace_s: float) -> None:
    """End the groups: SIGTERM to each, last first, and SIGKILL to what is left after `grace_s`.

    Each group has an equal share of that time, so that one that hangs leaves the others theirs.
    """
    for group in reversed(groups):
        _send(group, signal.SIGTERM)
        deadline = time.monotonic() + grace_s / len(groups)
        while _alive(group) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    for group in groups:
        _send(group, signal.SIGKILL)


def _send(group: int, number: signal.Signals) -> None:
    # Gone already, which is what was wanted.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(group)


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended and waits to be reaped, which in a container may be for ever."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        # Gone meanwhile, which the next look sees; or a system without /proc, where init reaps.
        return False


def main() -> None:
    """Wait for the end of the input, then end what is listed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A service manager signals every process at once; the parent ends the children in order, and
        # this process ends with the parent's end of the pipe.
        signal.signal(number, signal.SIG_IGN)
    end(read_groups(list(sys.stdin)), float(sys.argv[1]))


if __name__ == "__main__":
    main()
