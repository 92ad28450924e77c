"""The small model: its distributions are exact, its draws differ, its blanks keep to the allowed ids."""

import json
import math
import threading
import time

import pytest

from tests.engine.support import (
    EOS,
    NOISE,
    SLOT,
    Server,
    ids,
    isolated,
    label_id,
    rows,
    share,
    slot_of,
    written,
)

ANSWER = f"answer:{SLOT}"
STATE = "The parcel never came. Nobody answers my mails. I want my money back today."
PROMPT = isolated("Is the customer angry?", state=STATE)


def test_a_slot_has_the_distribution_of_the_next_token(llama: Server) -> None:
    row = rows(llama.read(PROMPT, ANSWER, logprobs=8))[slot_of(ANSWER)]
    next_token = llama.complete(
        prompt=ids(PROMPT) + ids("answer:"), max_tokens=1, temperature=0, logprobs=8,
        return_tokens_as_token_ids=True,
    )  # fmt: skip
    for name, value in rows(next_token)[0].items():
        assert row[name] == pytest.approx(value, abs=1e-3)
    assert sum(math.exp(value) for value in row.values()) < 1 + 1e-6


def test_rare_ids_get_exact_log_probabilities_too(llama: Server) -> None:
    """Asked among rare ones or among likely ones, an id has the same value: it is one distribution."""
    rare = [40000, 41234, 30000]
    alone = rows(llama.read(PROMPT, ANSWER, logprob_token_ids=rare))[slot_of(ANSWER)]
    mixed = rows(llama.read(PROMPT, ANSWER, logprob_token_ids=[*rare, label_id("no")]))[slot_of(ANSWER)]
    for token in rare:
        assert alone[f"token_id:{token}"] == pytest.approx(mixed[f"token_id:{token}"], abs=1e-3)
        assert -50 < alone[f"token_id:{token}"] < -8


def test_an_id_that_is_part_of_a_character_is_no_trouble(llama: Server) -> None:
    (first, *_) = ids("合")
    for asked in ([first], [first, label_id("no")]):
        row = rows(llama.read(PROMPT, ANSWER, logprob_token_ids=asked))[slot_of(ANSWER)]
        assert row[f"token_id:{first}"] < 0


def test_a_read_that_is_repeated_is_fast_and_the_same(llama: Server) -> None:
    first = rows(llama.read(PROMPT, ANSWER))
    began = time.monotonic()
    second = rows(llama.read(PROMPT, ANSWER))
    assert time.monotonic() - began < 1
    at = slot_of(ANSWER)
    assert second[at] == pytest.approx(first[at], abs=1e-3)


def test_an_answer_hangs_on_its_prompt_alone_whatever_was_read_before(llama: Server) -> None:
    """What the cache holds was computed in other batches than what it does not: the bits are the same."""
    state = " ".join(f"On day {day} nobody answered me. {STATE}" for day in range(4))
    prompts = [
        isolated(question, state=told)
        for told in (state, state[: len(state) // 2])
        for question in ("Is the customer angry?", "Is it about a parcel that was sent out in March?", "Why?")
    ]
    first = [rows(llama.read(prompt, ANSWER)) for prompt in prompts]
    for place in (5, 0, 1, 4, 2, 3, 0):
        assert rows(llama.read(prompts[place], ANSWER)) == first[place]


def test_an_earlier_slot_holds_a_sample_that_the_noise_decides(llama: Server) -> None:
    template = f"first:{SLOT}\nsecond:{SLOT}"
    seconds = {
        round(share(rows(llama.read(PROMPT, template, noise=NOISE + 7 * n))[slot_of(template, 1)], "yes"), 4)
        for n in range(8)
    }
    assert len(seconds) == 2


def test_the_first_of_the_engines_own_draws_holds_the_argmax(llama: Server) -> None:
    template = f"first:{SLOT}\nsecond:{SLOT}"

    def first_draw(noise: int) -> dict[str, float]:
        reply = llama.read(PROMPT, template, noise=noise, xargs={"diffusion_samples": 3}, seed=noise)
        assert len(reply.body["choices"]) == 3
        return rows(reply)[slot_of(template, 1)]

    assert first_draw(1000) == pytest.approx(first_draw(2000), abs=1e-3)


def test_a_blank_is_written_with_the_allowed_ids_only(llama: Server) -> None:
    blank = "answer:" + SLOT * 6
    allowed = sorted({*ids(" parcel money mails"), *ids(" none"), EOS})
    prompt = isolated("What never came?", options=(), state=STATE)
    reply = llama.read(prompt, blank, logprob_token_ids=allowed)
    found = rows(reply)[slot_of(blank) : slot_of(blank) + 6]
    assert all(set(allowed) <= {int(name[9:]) for name in row} for row in found)
    assert isinstance(written(reply, slot_of(blank), 6), str)


def test_a_schema_is_enforced(llama: Server) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"enum": ["Rex", "Tom"]}, "age": {"type": "integer", "maximum": 20}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    for grammar in (
        {"structured_outputs": {"json": schema}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "dog", "schema": schema}}},
    ):
        choice = llama.chat("Describe a dog.", max_tokens=40, temperature=0, **grammar).body["choices"][0]
        assert choice["finish_reason"] == "stop"
        assert set(json.loads(choice["message"]["content"])) == {"name", "age"}


def test_a_schema_that_cannot_be_enforced_is_refused(llama: Server) -> None:
    reply = llama.chat("Hello", max_tokens=20, temperature=0, structured_outputs={"json": {"type": "wat"}})
    assert reply.status == 400


def test_a_generation_stops_at_a_string_and_at_a_token(llama: Server) -> None:
    free = llama.complete(prompt="1 2 3 4 5 6", max_tokens=12, temperature=0, return_token_ids=True)
    tokens = free.body["choices"][0]["token_ids"]
    assert len(tokens) == 12
    (seven,) = set(tokens) & set(ids("7"))
    by_token = llama.complete(prompt="1 2 3 4 5 6", max_tokens=12, temperature=0, stop_token_ids=[seven])
    by_text = llama.complete(prompt="1 2 3 4 5 6", max_tokens=12, temperature=0, stop=["7"])
    for reply in (by_token, by_text):
        assert reply.body["choices"][0]["finish_reason"] == "stop"
        assert "7" not in reply.body["choices"][0]["text"]


def test_images_are_taken_and_counted_and_not_looked_at(llama: Server) -> None:
    text = {"type": "text", "text": "Is it red?"}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    ordinary = {"max_tokens": 8, "temperature": 0}
    replies = [
        llama.post("/v1/chat/completions", {"messages": [{"role": "user", "content": parts}], **ordinary})
        for parts in ([text], [image, text], [image, text, image])
    ]
    assert [reply.status for reply in replies] == [200] * 3
    without, one, two = (reply.body["usage"]["prompt_tokens"] for reply in replies)
    assert (one - without, two - without) == (256, 512)
    assert len({reply.body["choices"][0]["message"]["content"] for reply in replies}) == 1


def test_the_event_loop_is_free_while_the_model_works(llama: Server) -> None:
    work = threading.Thread(target=llama.complete, kwargs={"prompt": "Once", "max_tokens": 60})
    work.start()
    began = time.monotonic()
    llama.get("/health")
    assert time.monotonic() - began < 0.3
    work.join()
