"""The canvas dialect in front of another server: the same answers as over the model itself."""

import json
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


def test_its_context_is_no_longer_than_the_upstreams(engine: Callable[..., Server], llama: Server) -> None:
    behind = engine("--backend", f"upstream:{llama.url}", "--max-model-len", "999999")
    lengths = [json.loads(server.get("/v1/models"))["data"][0]["max_model_len"] for server in (behind, llama)]
    assert lengths[0] == lengths[1]


def test_an_upstream_without_room_is_a_503(
    engine: Callable[..., Server], scripted: Callable[..., Server]
) -> None:
    front = scripted([{"fault": "503", "text": "Maybe"}])
    reply = engine("--backend", f"upstream:{front.url}").read(PROMPT, ANSWER)
    assert reply.status == 503


def test_a_stop_that_is_a_special_token_ends_a_text(upstream: Server) -> None:
    asked = {"max_tokens": 60, "temperature": 0, "stop": ["<|im_end|>"], "skip_special_tokens": False}
    choice = upstream.chat("Say hi", **asked).body["choices"][0]
    assert (choice["finish_reason"], "<|im_end|>" in choice["message"]["content"]) == ("stop", False)
