"""Each fault as a client sees it, and each liar as a canary must find it."""

import http.client
import json
import time
import urllib.error
from collections.abc import Callable

import pytest

from tests.engine.support import SLOT, Server, canvas_read, isolated, label_id, rows, slot_of

Scripted = Callable[..., Server]
ANSWER = f"answer:{SLOT}"
PROMPT = isolated("Is it urgent?")


def _read(server: Server, timeout: float = 5) -> object:
    return server.post("/v1/completions", canvas_read(PROMPT, ANSWER), timeout)


def test_refuse_closes_the_connection_before_an_answer(scripted: Scripted) -> None:
    with pytest.raises(http.client.RemoteDisconnected):
        _read(scripted([], "--fault", "refuse:1"))


def test_reset_resets_the_connection(scripted: Scripted) -> None:
    with pytest.raises((ConnectionResetError, urllib.error.URLError), match="reset"):
        _read(scripted([], "--fault", "reset:1"))


def test_hang_gives_no_answer_but_the_server_lives(scripted: Scripted) -> None:
    server = scripted([], "--fault", "hang:1")
    with pytest.raises(TimeoutError):
        _read(server, timeout=0.3)
    assert server.get("/health") == ""


def test_slow_answers_late(scripted: Scripted) -> None:
    server = scripted([], "--fault", "slow:1")
    began = time.monotonic()
    assert server.read(PROMPT, ANSWER).status == 200
    assert time.monotonic() - began >= 1


@pytest.mark.parametrize("status", [500, 503])
def test_a_status_fault_has_an_error_object(scripted: Scripted, status: int) -> None:
    reply = scripted([], "--fault", f"{status}:1").read(PROMPT, ANSWER)
    assert (reply.status, reply.body["error"]["code"]) == (status, status)


def test_garbage_is_200_without_json(scripted: Scripted) -> None:
    with pytest.raises(json.JSONDecodeError):
        _read(scripted([], "--fault", "garbage:1"))


def test_truncated_breaks_off_in_the_body(scripted: Scripted) -> None:
    with pytest.raises(http.client.IncompleteRead):
        _read(scripted([], "--fault", "truncated:1"))


def test_wrong_rows_is_one_row_short(scripted: Scripted) -> None:
    assert len(rows(scripted([], "--fault", "wrong-rows:1").read(PROMPT, ANSWER))) == 15


def test_dies_ends_the_process_after_that_many_requests(scripted: Scripted) -> None:
    server = scripted([], "--fault", "dies:2")
    assert [server.read(PROMPT, ANSWER).status for _ in range(2)] == [200, 200]
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        _read(server)
    assert server.process.wait(timeout=5) == 1


def test_a_rate_is_kept_and_the_seed_repeats_it(scripted: Scripted) -> None:
    def failures() -> list[int]:
        server = scripted([], "--fault", "500:0.3", "--seed", "5")
        return [server.read(PROMPT, ANSWER).status for _ in range(60)]

    first = failures()
    assert 8 <= first.count(500) <= 28
    assert first == failures()


def test_a_server_that_ignores_the_canvas_answers_prose(scripted: Scripted) -> None:
    reply = scripted([], "--liar", "ignore-canvas").read(PROMPT, ANSWER, seed=3)
    choice = reply.body["choices"][0]
    assert (reply.status, choice["logprobs"]) == (200, None)
    assert choice["text"]


def test_a_server_that_ignores_the_grammar_answers_prose(scripted: Scripted) -> None:
    reply = scripted([], "--liar", "ignore-grammar").chat("x", structured_outputs={"json": {}}, max_tokens=20)
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.body["choices"][0]["message"]["content"])


def test_null_logprobs(scripted: Scripted) -> None:
    reply = scripted([], "--liar", "null-logprobs").read(PROMPT, ANSWER)
    assert reply.body["choices"][0]["logprobs"] is None


def test_short_rows(scripted: Scripted) -> None:
    assert len(rows(scripted([], "--liar", "short-rows").read(PROMPT, ANSWER))) == 8


def test_wrong_model(scripted: Scripted) -> None:
    server = scripted([], "--liar", "wrong-model")
    assert server.read(PROMPT, ANSWER).body["model"] == "another-model"
    assert '"id":"script"' in server.get("/v1/models")


def test_nan(scripted: Scripted) -> None:
    found = rows(scripted([], "--liar", "nan").read(PROMPT, ANSWER))
    assert set(found[slot_of(ANSWER)].values()) == {None}


def test_no_ids(scripted: Scripted) -> None:
    row = rows(scripted([], "--liar", "no-ids").read(PROMPT, ANSWER))[slot_of(ANSWER)]
    assert f"token_id:{label_id('yes')}" not in row
    assert row
