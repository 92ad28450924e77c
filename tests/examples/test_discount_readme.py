"""The README of the pricing agent shows what its commands print."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from client.stack import Stack
from examples.discount_agent.__main__ import main
from examples.discount_agent.readme import README, retold, shown

COMMANDS = shown(README.read_text())

# What the model makes of it may differ in a digit from one processor to another; these lines are ours.
FACTS = ("Customer  ", "Limits    ", "There is no customer")


def test_the_page_shows_an_offer_a_refused_discount_and_an_unknown_customer() -> None:
    assert [shlex.split(command)[-1] for command, _ in COMMANDS] == ["17", "42", "99"]


@pytest.mark.parametrize(("command", "output"), COMMANDS, ids=["17", "42", "99"])
def test_a_command_prints_what_is_shown(
    command: str,
    output: str,
    embedded: Stack,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """After a change: `python -m examples.discount_agent.readme`."""
    monkeypatch.setenv("CANVASS_URL", embedded.url)
    monkeypatch.chdir(tmp_path)
    _, _, module, *arguments = shlex.split(command)
    assert module == "examples.discount_agent"
    main(arguments)
    printed, errors = capfd.readouterr()
    told = [*errors.splitlines(), *printed.splitlines()]
    expected = [line for line in output.splitlines() if not line.startswith("Starting Canvass")]
    assert [line[:10] for line in told] == [line[:10] for line in expected]
    assert [line for line in told if line.startswith(FACTS)] == [
        line for line in expected if line.startswith(FACTS)
    ]


def test_a_page_is_retold_in_place() -> None:
    page = "Before.\n\n```console\n$ python -m a b\nold\nlines\n```\n\nAfter.\n"
    assert retold(page, lambda command: f"new of {command}\n") == (
        "Before.\n\n```console\n$ python -m a b\nnew of python -m a b\n```\n\nAfter.\n"
    )
