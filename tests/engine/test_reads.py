"""The shape of a read's answer, in both routes."""

import math

from tests.engine.support import PAD, SLOT, Server, canvas_read, isolated, label_id, rows, slot_of

TEMPLATE = f"answer:{SLOT}"
PROMPT = isolated("Is it urgent?")


def test_there_is_one_row_per_canvas_position(plain: Server) -> None:
    for width in (16, 32, 64):
        logprobs = plain.read(PROMPT, TEMPLATE, width=width).body["choices"][0]["logprobs"]
        assert [len(column) for column in logprobs.values()] == [width] * 4


def test_every_row_holds_every_asked_id(plain: Server) -> None:
    asked = [f"token_id:{label_id(label)}" for label in ("yes", "no")]
    assert all(set(asked) <= set(row) for row in rows(plain.read(PROMPT, TEMPLATE)))


def test_a_pinned_position_holds_its_seed(plain: Server) -> None:
    reply = plain.read(PROMPT, TEMPLATE)
    canvas = canvas_read(PROMPT, TEMPLATE)["vllm_xargs"]["diffusion_seed_canvas"]
    tokens = reply.body["choices"][0]["logprobs"]["tokens"]
    slot = slot_of(TEMPLATE)
    assert tokens[:slot] + tokens[slot + 1 :] == [
        f"token_id:{token}" for token in canvas[:slot] + canvas[slot + 1 :]
    ]
    assert rows(reply)[-1][f"token_id:{PAD}"] == 0.0


def test_without_pins_nothing_is_a_slot(plain: Server) -> None:
    reply = plain.read(PROMPT, TEMPLATE, xargs={"diffusion_pinned": None})
    assert all(value == 0.0 for value in reply.body["choices"][0]["logprobs"]["token_logprobs"])


def test_max_tokens_below_the_canvas_cuts_the_rows(plain: Server) -> None:
    assert len(rows(plain.read(PROMPT, TEMPLATE, max_tokens=5))) == 5


def test_tokens_come_as_text_unless_ids_are_wanted(plain: Server) -> None:
    reply = plain.read(PROMPT, TEMPLATE, return_tokens_as_token_ids=False)
    assert " yes" in rows(reply)[slot_of(TEMPLATE)]


def test_the_chat_form_holds_the_same_rows(plain: Server) -> None:
    body = canvas_read(PROMPT, TEMPLATE, prompt=None, logprobs=True, top_logprobs=4)
    body["messages"] = [{"role": "user", "content": "Question: Is it urgent?\nyes: yes\nno: no"}]
    content = plain.post("/v1/chat/completions", body).body["choices"][0]["logprobs"]["content"]
    assert len(content) == 16
    slot = content[slot_of(TEMPLATE)]
    assert {top["token"] for top in slot["top_logprobs"]} == {
        f"token_id:{label_id(label)}" for label in ("yes", "no")
    }
    assert slot["logprob"] == max(top["logprob"] for top in slot["top_logprobs"])


def test_constrained_mass_is_always_one(plain: Server, llama: Server) -> None:
    for server in (plain, llama):
        reply = server.read(PROMPT, TEMPLATE, xargs={"diffusion_constrained": True})
        row = rows(reply)[slot_of(TEMPLATE)]
        assert set(row) == {f"token_id:{label_id(label)}" for label in ("yes", "no")}
        assert math.isclose(sum(math.exp(value) for value in row.values()), 1, abs_tol=1e-6)
