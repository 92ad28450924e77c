"""`canvass keys`, and `canvass ask` with a key, against a real stack."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from client.cli import main
from client.stack import Stack

ADMIN = "an-admin-key"
NAME = "the billing team's, [bold]all[/bold] of it"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    script = tmp_path_factory.mktemp("keys") / "script.json"
    script.write_text(json.dumps({"rules": [{"phrase": "Is it urgent", "labels": {"yes": 0.9}}]}))
    with Stack(engines=f"script:{script}", env={"CANVASS_ADMIN_KEY": ADMIN}) as running:
        yield running


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


Canvass = Callable[..., Ran]


@pytest.fixture
def canvass(stack: Stack, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Canvass:
    """Run the command in this process, with the stack's address and admin key in the environment."""
    monkeypatch.setenv("CANVASS_URL", stack.url)
    monkeypatch.setenv("CANVASS_ADMIN_KEY", ADMIN)
    monkeypatch.delenv("CANVASS_KEY", raising=False)

    def running(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["canvass", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, *capfd.readouterr())

    return running


@pytest.fixture
def decision(tmp_path: Path) -> str:
    file = tmp_path / "decision.json"
    question = {"type": "noul", "instructions": "Is it urgent?"}
    file.write_text(json.dumps({"state": "It burns.", "questions": {"q": question}}))
    return str(file)


def made(canvass: Canvass, *options: str) -> dict[str, str]:
    ran = canvass("keys", "create", NAME, *options)
    assert ran.status == 0, ran.err
    assert "does not show them again" in ran.err
    lines = (re.split(r" {2,}|(?<=secret) ", line, maxsplit=1) for line in ran.out.splitlines())
    return {label.strip(): value.strip() for label, value in lines}


def test_a_key_is_made_listed_and_revoked(canvass: Canvass, decision: str) -> None:
    key = made(canvass, "--rate-per-minute", "60", "--most-open", "7")
    assert key["Key"].startswith("cvs_")
    assert key["Webhook secret"].startswith("whsec_")
    assert canvass("ask", decision, "--key", key["Key"]).status == 0

    listed = canvass("keys", "list").out
    (line,) = (line for line in listed.splitlines() if key["Id"] in line)
    for shown in (NAME, key["Key"][:8], " 60 ", " 7 "):
        assert shown in line
    assert key["Key"] not in listed
    assert key["Webhook secret"] not in listed

    revoked = canvass("keys", "revoke", key["Id"])
    assert (revoked.status, key["Id"] in revoked.out) == (0, True)
    ran = canvass("ask", decision, "--key", key["Key"])
    assert ran.status == 1
    assert ran.err.startswith("401 authentication_error: ")
    assert "was revoked" in ran.err
    assert "--key or CANVASS_KEY" in ran.err


def test_a_decision_without_a_key_is_told_how_to_send_one(
    canvass: Canvass, decision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = made(canvass)
    ran = canvass("ask", decision)
    assert ran.status == 1
    assert ran.err.startswith("403 authentication_error: ")
    assert "--key or CANVASS_KEY" in ran.err
    monkeypatch.setenv("CANVASS_KEY", key["Key"])
    assert canvass("ask", decision).status == 0


def test_over_the_rate_the_command_says_when_to_come_back(canvass: Canvass, decision: str) -> None:
    key = made(canvass, "--rate-per-minute", "1")["Key"]
    assert canvass("ask", decision, "--key", key).status == 0
    ran = canvass("ask", decision, "--key", key)
    assert ran.status == 1
    assert re.search(r"429 rate_limit_error: .* Try again in \d+ s\.", ran.err, re.DOTALL)


@pytest.mark.parametrize("key", ["", "two words", "schl\u00fcssel", "line\nend"])
def test_what_cannot_be_a_key_is_not_sent(canvass: Canvass, decision: str, key: str) -> None:
    ran = canvass("ask", decision, "--key", key)
    assert ran.status == 1
    assert "one word of printable ASCII" in ran.err


def test_a_wrong_admin_key_and_a_wrong_id_are_told(canvass: Canvass) -> None:
    wrong = canvass("keys", "list", "--admin-key", "guessed")
    assert wrong.status == 1
    assert wrong.err.startswith("401: this is not the server's admin key")
    unknown = canvass("keys", "revoke", "no such key")
    assert unknown.status == 1
    assert unknown.err == "404: there is no key 'no such key'\n"


def test_without_an_admin_key_nothing_is_asked(canvass: Canvass, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CANVASS_ADMIN_KEY")
    ran = canvass("keys", "list")
    assert ran.status == 2
    assert "--admin-key" in ran.err
