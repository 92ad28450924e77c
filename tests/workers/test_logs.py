from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

PROGRAM = """
import logging, warnings
import structlog
from workers.logs import set_up_logs
from workers.settings import Settings

set_up_logs(Settings(log_format="{format}", log_level="{level}"))
log = structlog.get_logger()
log.debug("for debugging")
log.info("something happened", decision="dec_1")
logging.getLogger("celery.worker").warning("the broker is %s", "away")
logging.getLogger("celery.worker").info("task received")
warnings.warn("old")


def fail(state):
    raise ValueError("no such thing")


try:
    fail("a secret state")
except ValueError:
    log.exception("ours failed", decision="dec_1")
    logging.getLogger("asyncio").exception("theirs failed")
"""


def logged(**settings: str) -> str:
    """What a process of those settings writes to standard error."""
    program = PROGRAM.replace("{format}", settings.get("format", "json")).replace(
        "{level}", settings.get("level", "INFO")
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == ""
    return done.stderr


def lines(**settings: str) -> dict[str, dict[str, Any]]:
    """The lines by their events."""
    return {line["event"]: line for line in map(json.loads, logged(**settings).splitlines())}


def test_every_line_is_json_whoever_logs_it() -> None:
    told = lines()
    assert told["something happened"]["decision"] == "dec_1"
    assert told["the broker is away"]["level"] == "warning"
    assert told["the broker is away"]["logger"] == "celery.worker"
    assert any("UserWarning: old" in event for event in told)
    assert all({"event", "level", "timestamp"} <= line.keys() for line in told.values())


def test_a_traceback_is_a_part_of_its_line_and_holds_no_variables() -> None:
    text, told = logged(), lines()
    for event in ("ours failed", "theirs failed"):
        (error,) = told[event]["exception"]
        assert (error["exc_type"], error["exc_value"]) == ("ValueError", "no such thing")
        assert error["frames"][-1]["name"] == "fail"
    # The program's own text is not in its traceback: it was given on the command line.
    assert "a secret state" not in text


def test_libraries_are_heard_from_warnings_on_and_we_from_where_the_setting_says() -> None:
    assert "for debugging" not in lines()
    assert "for debugging" in lines(level="DEBUG")
    assert "task received" not in lines(level="DEBUG")
    assert "something happened" not in lines(level="ERROR")
    assert "the broker is away" not in lines(level="ERROR")


def test_on_a_console_lines_are_plain() -> None:
    text = logged(format="console")
    assert "something happened" in text
    assert "the broker is away" in text
    assert "ValueError: no such thing" in text
    assert "{" not in text
