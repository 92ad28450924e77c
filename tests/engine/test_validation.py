"""What vLLM refuses, the stand-in refuses: a 400 that names the field."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.support import SLOT, Server, canvas_read, ids, isolated, rows

TEMPLATE = f"answer:{SLOT}"
PROMPT = isolated("Is it urgent?")


@pytest.mark.parametrize(
    ("field", "xargs"),
    [
        ("diffusion_seed_canvas", {"diffusion_seed_canvas": [5] * 15}),
        ("diffusion_seed_canvas", {"diffusion_seed_canvas": [49152] * 16}),
        ("diffusion_seed_canvas", {"diffusion_seed_canvas": [-1] * 16}),
        ("diffusion_seed_canvas", {"diffusion_seed_canvas": "text"}),
        ("diffusion_canvas_length", {"diffusion_canvas_length": 20, "diffusion_seed_canvas": [5] * 20}),
        ("diffusion_canvas_length", {"diffusion_canvas_length": 80, "diffusion_seed_canvas": [5] * 80}),
        ("diffusion_canvas_length", {"diffusion_canvas_length": 0}),
        ("diffusion_pinned", {"diffusion_seed_canvas": None}),
        ("diffusion_pinned", {"diffusion_pinned": [16]}),
        ("diffusion_pinned", {"diffusion_pinned": [-1]}),
        ("diffusion_pinned", {"diffusion_pinned": [0.5]}),
        ("diffusion_max_steps", {"diffusion_max_steps": 0}),
        ("diffusion_read_only", {"diffusion_read_only": 2}),
        ("diffusion_read_only", {"diffusion_read_only": "yes"}),
        ("diffusion_samples", {"diffusion_samples": 2}),
        ("diffusion_typo", {"diffusion_typo": 1}),
    ],
)
def test_a_wrong_canvas_field_is_refused_by_name(plain: Server, field: str, xargs: dict[str, Any]) -> None:
    reply = plain.read(PROMPT, TEMPLATE, xargs=xargs)
    assert reply.status == 400
    assert reply.body["error"]["param"] == field
    assert reply.body["error"]["type"] == "BadRequestError"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seed", 1),
        ("temperature", 0.5),
        ("min_p", 0.1),
        ("min_tokens", 1),
        ("logit_bias", {"5": 1}),
        ("bad_words", ["x"]),
        ("allowed_token_ids", [5]),
        ("response_format", {"type": "json_object"}),
        ("structured_outputs", {"json": {}}),
        ("stream", True),
        ("logprobs", 33),
        ("max_tokens", 0),
        ("n", 2),
        ("prompt", []),
        ("prompt", [49152]),
        ("prompt", {"text": "x"}),
        ("logprob_token_ids", list(range(129))),
        ("logprob_token_ids", [49152]),
    ],
)
def test_a_field_that_a_canvas_read_cannot_have_is_refused_by_name(
    plain: Server, field: str, value: Any
) -> None:
    reply = plain.read(PROMPT, TEMPLATE, **{field: value})
    assert (reply.status, reply.body["error"]["param"]) == (400, field)


def test_the_sampling_fields_may_say_what_is_the_default_anyway(plain: Server) -> None:
    assert plain.read(PROMPT, TEMPLATE, temperature=1, min_p=0, logit_bias={}).status == 200


def test_constrained_needs_the_ids_it_is_constrained_to(plain: Server) -> None:
    reply = plain.read(PROMPT, TEMPLATE, xargs={"diffusion_constrained": True}, logprob_token_ids=None)
    assert (reply.status, reply.body["error"]["param"]) == (400, "diffusion_constrained")


def test_one_hundred_and_twenty_eight_ids_are_allowed(plain: Server) -> None:
    reply = plain.read(PROMPT, TEMPLATE, logprob_token_ids=list(range(100, 228)))
    assert len(rows(reply)[0]) == 129


def test_too_long_an_input_is_refused_in_the_words_of_vllm(plain: Server) -> None:
    reply = plain.read(PROMPT, TEMPLATE, prompt=[5] * 500)
    assert reply.status == 400
    assert "maximum context length is 512 tokens" in reply.body["error"]["message"]


def test_a_canvas_that_just_fits_is_read(plain: Server) -> None:
    assert plain.read(PROMPT, TEMPLATE, prompt=[5] * 496).status == 200


def test_a_body_that_is_no_json_is_refused(plain: Server) -> None:
    assert plain.post("/v1/completions", b"{").status == 400


def test_a_model_that_is_not_served_is_not_found(plain: Server) -> None:
    reply = plain.read(PROMPT, TEMPLATE, model="gpt-9")
    assert (reply.status, reply.body["error"]["type"]) == (404, "NotFoundError")


def test_without_async_scheduling_only_the_full_width_works(scripted: Callable[..., Server]) -> None:
    server = scripted([], "--full-width-only", "--canvas", "32")
    narrow = server.read(PROMPT, TEMPLATE, width=16)
    assert (narrow.status, narrow.body["error"]["param"]) == (400, "diffusion_canvas_length")
    assert server.read(PROMPT, TEMPLATE, width=32).status == 200


def test_a_string_prompt_reads_like_its_ids(plain: Server) -> None:
    by_ids = plain.complete(**canvas_read(PROMPT, TEMPLATE))
    by_text = plain.complete(**canvas_read(PROMPT, TEMPLATE, prompt=PROMPT))
    assert rows(by_ids) == rows(by_text)
    assert by_text.body["usage"]["prompt_tokens"] == len(ids(PROMPT))
