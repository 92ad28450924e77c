"""`canvass webhook listen`, and the secret that `canvass up` signs with: a real process, real HTTP."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
from standardwebhooks import Webhook

from client.up import kept_secret, webhook_settings

ROOT = Path(__file__).parents[2]
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = '{"type":"decision.completed","data":{"id":"dec_1"}}'


@contextmanager
def listening(*options: str, env: dict[str, str] | None = None) -> Iterator[tuple[str, list[str]]]:
    """The listener's URL, and, once it has ended, what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CANVASS_")}
    listener = subprocess.Popen(
        [sys.executable, "-m", "client", "webhook", "listen", "--port", "0", *options],
        env={**clean, "PYTHONPATH": str(ROOT), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert listener.stdout is not None
    printed: list[str] = []
    try:
        found = re.match(r"Listening on (http://127\.0\.0\.1:\d+/)", listener.stdout.readline())
        assert found is not None
        yield found.group(1), printed
    finally:
        listener.send_signal(signal.SIGINT)
        rest, _ = listener.communicate(timeout=20)
        printed += rest.splitlines()
    assert listener.returncode == 0, rest


def send(url: str, secret: str = SECRET, body: str = BODY) -> int:
    now = datetime.now(UTC)
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign("evt_1", now, BODY),
    }
    return httpx2.post(f"{url}hook", content=body, headers=headers).status_code


def test_what_is_signed_is_shown_as_verified_and_answered_204() -> None:
    with listening("--secret", SECRET) as (url, printed):
        assert send(url) == 204
        assert send(url) == 204
    heads = [line for line in printed if line.startswith("POST")]
    assert heads == ["POST /hook  evt_1  verified", "POST /hook  evt_1 (time 2)  verified"]
    assert '  "type": "decision.completed",' in printed


def test_what_is_not_signed_with_the_secret_is_shown_and_answered_400() -> None:
    with listening("--secret", SECRET) as (url, printed):
        assert send(url, secret="whsec_" + "A" * 32) == 400
        assert send(url, body=BODY.replace("dec_1", "dec_2")) == 400
        assert httpx2.post(url, content="\x1b[31mhello").status_code == 400
    assert sum("NOT VERIFIED" in line for line in printed) == 3
    assert not any("\x1b" in line for line in printed)


def test_another_status_can_be_asked_for() -> None:
    with listening("--secret", SECRET, "--status", "503") as (url, _):
        assert send(url) == 503


def test_the_secret_of_a_canvass_up_on_this_machine_is_found(tmp_path: Path) -> None:
    secret = webhook_settings(tmp_path / "canvass", "127.0.0.1")["CANVASS_WEBHOOK_SECRET"]
    with listening(env={"XDG_STATE_HOME": str(tmp_path)}) as (url, printed):
        assert send(url, secret=secret) == 204
    assert "POST /hook  evt_1  verified" in printed


def test_without_a_secret_it_says_that_nothing_is_verified(tmp_path: Path) -> None:
    with listening(env={"XDG_STATE_HOME": str(tmp_path)}) as (url, printed):
        assert send(url) == 204
    assert "POST /hook  evt_1  not verified: no secret is known here" in printed


@pytest.mark.parametrize("secret", ["whsec_", "whsec_a"])
def test_a_secret_that_is_none_is_a_sentence(secret: str) -> None:
    command = [sys.executable, "-m", "client", "webhook", "listen", "--port", "0", "--secret", secret]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    assert "whsec_ and base64" in ended.stderr


def test_a_data_folder_keeps_one_secret_that_others_cannot_read(tmp_path: Path) -> None:
    first = webhook_settings(tmp_path / "data", "127.0.0.1")
    assert webhook_settings(tmp_path / "data", "127.0.0.1") == first
    assert kept_secret(tmp_path / "data") == first["CANVASS_WEBHOOK_SECRET"]
    assert webhook_settings(tmp_path / "other", "127.0.0.1") != first
    assert first["CANVASS_WEBHOOK_ALLOW"] == "127.0.0.1,localhost"
    assert (tmp_path / "data" / "webhook-secret").stat().st_mode & 0o777 == 0o600
    Webhook(first["CANVASS_WEBHOOK_SECRET"])


def test_a_server_that_others_reach_does_not_call_this_machine_for_them(tmp_path: Path) -> None:
    assert webhook_settings(tmp_path, "0.0.0.0")["CANVASS_WEBHOOK_ALLOW"] == ""
