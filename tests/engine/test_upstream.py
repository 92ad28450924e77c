"""The canvas dialect in front of another server: the same answers as over the model itself."""

from collections.abc import Callable

import pytest

from tests.engine.support import SLOT, Server, isolated, rows, slot_of

PROMPT = isolated("Is the customer angry?", state="The parcel never came.")
ANSWER = f"answer:{SLOT}"


@pytest.fixture
def upstream(engine: Callable[..., Server], llama: Server) -> Server:
    return engine("--backend", f"upstream:{llama.url}")


def test_a_read_is_the_same_through_an_upstream(upstream: Server, llama: Server) -> None:
    at = slot_of(ANSWER)
    direct, through = rows(llama.read(PROMPT, ANSWER))[at], rows(upstream.read(PROMPT, ANSWER))[at]
    assert through == pytest.approx(direct, abs=1e-3)


def test_a_generation_is_passed_on(upstream: Server, llama: Server) -> None:
    texts = [
        server.chat("Say hi", max_tokens=8, temperature=0).body["choices"][0]["message"]["content"]
        for server in (upstream, llama)
    ]
    assert texts[0] == texts[1] != ""


def test_an_id_that_the_upstream_does_not_report_gets_a_floor(
    engine: Callable[..., Server], scripted: Callable[..., Server]
) -> None:
    """A script's generation reports its own token alone, so both labels are missing."""
    behind = engine("--backend", f"upstream:{scripted([{'text': 'Maybe'}]).url}")
    row = rows(behind.read(PROMPT, ANSWER))[slot_of(ANSWER)]
    assert sorted(row.values()) == [-20.0, -20.0, 0.0]


def test_an_upstream_that_went_away_is_a_500(
    engine: Callable[..., Server], scripted: Callable[..., Server]
) -> None:
    front = scripted([])
    behind = engine("--backend", f"upstream:{front.url}")
    front.process.kill()
    front.process.wait()
    reply = behind.read(PROMPT, ANSWER)
    assert reply.status == 500
    assert "upstream" in reply.body["error"]["message"]
