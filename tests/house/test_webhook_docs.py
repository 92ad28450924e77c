"""docs/webhooks.md: its receivers run, and tell a good signature from a bad one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from client.ports import free_port
from workers.webhooks.payload import headers_of

DOCS = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = '{"type":"decision.completed","data":{"id":"dec_☂","status":"succeeded"}}'.encode()


@pytest.mark.parametrize(("language", "program"), [("python", sys.executable), ("javascript", "node")])
def test_a_receiver_of_the_docs_verifies_what_canvass_signs(
    language: str, program: str, tmp_path: Path
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    (code,) = re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)
    file, port = tmp_path / "receiver", free_port()
    file.write_text(code)
    receiver = subprocess.Popen(
        [program, str(file)],
        env={**os.environ, "WEBHOOK_SECRET": SECRET, "PORT": str(port), "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        good = headers_of("dec_1:completed", BODY, SECRET, time.time())
        assert sent(port, BODY, good) == 204
        assert sent(port, BODY + b" ", good) == 400
        assert sent(port, BODY, headers_of("dec_1:completed", BODY, SECRET, time.time() - 900)) == 400
        assert sent(port, BODY, headers_of("dec_1:completed", BODY, "whsec_" + "A" * 32, time.time())) == 400
        assert sent(port, BODY, {}) == 400
    finally:
        receiver.send_signal(signal.SIGTERM)
        printed, _ = receiver.communicate(timeout=20)
    assert printed.decode().splitlines() == ["decision.completed dec_☂ succeeded"]


def sent(port: int, body: bytes, headers: dict[str, str]) -> int:
    """The status that a receiver answers with, once it listens."""
    until = time.monotonic() + 20
    while True:
        try:
            return httpx2.post(f"http://127.0.0.1:{port}/", content=body, headers=headers).status_code
        except httpx2.ConnectError:
            assert time.monotonic() < until
            time.sleep(0.05)
