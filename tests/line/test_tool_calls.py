"""A call that a chat must make is made, on an engine that cannot be forced by a grammar."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import BadRequestError, OpenAI

from client.stack import Stack
from engine.gguf_model import find_model
from engine.tokenizer import ensure_folder
from tests.line.job_support import until
from tests.line.relay_support import Upstream

ARGUMENTS = '"city": "Berlin"}}\n</tool_call>'
SCRIPT: dict[str, Any] = {
    "rules": [
        {"phrase": "Which function", "state_contains": "raining", "labels": {"get_weather": 0.9}},
        {"phrase": "Which function", "labels": {"send_mail": 0.9}},
        {"state_contains": '{"name": "', "text": ARGUMENTS},
        {"text": "I would rather talk."},
    ]
}


def tool(name: str, description: str | None = None) -> Any:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    described = {} if description is None else {"description": description}
    return {"type": "function", "function": {"name": name, "parameters": parameters, **described}}


TOOLS = [tool("get_weather", "The weather of a city"), tool("send_mail", "Sends a mail")]
RAIN: Any = [{"role": "user", "content": "Is it raining in Berlin?"}]
MAIL: Any = [
    {"role": "system", "content": [{"type": "text", "text": "You help."}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
    {"role": "user", "content": "Write to Ann."},
]


def named(name: str) -> Any:
    return {"type": "function", "function": {"name": name}}


@pytest.fixture(scope="module")
def calling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    path: Path = tmp_path_factory.mktemp("calling") / "script.json"
    path.write_text(json.dumps(SCRIPT))
    with Stack(engines=f"script:{path}") as running:
        yield running


@pytest.fixture
def client(calling: Stack) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{calling.url}/v1", api_key="x", max_retries=0) as made:
        yield made


def called(completion: Any) -> tuple[str, dict[str, Any]]:
    """The one call that an answer makes."""
    (choice,) = completion.choices
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls
    return call.function.name, json.loads(call.function.arguments)


def test_a_call_that_is_required_is_made(client: OpenAI) -> None:
    completion = client.chat.completions.create(
        model="script", messages=RAIN, tools=TOOLS[:1], tool_choice="required"
    )
    assert called(completion) == ("get_weather", {"city": "Berlin"})
    assert completion.choices[0].message.content is None


def test_of_several_functions_one_is_chosen_by_what_was_said(client: OpenAI) -> None:
    for messages, name in ((RAIN, "get_weather"), (MAIL, "send_mail")):
        completion = client.chat.completions.create(
            model="jev-latest", messages=messages, tools=TOOLS, tool_choice="required"
        )
        assert called(completion)[0] == name


def test_a_function_that_is_named_is_called_whatever_was_said(client: OpenAI) -> None:
    completion = client.chat.completions.create(
        model="script", messages=RAIN, tools=TOOLS, tool_choice=named("send_mail")
    )
    assert called(completion)[0] == "send_mail"


def test_a_call_is_streamed(client: OpenAI) -> None:
    stream = client.chat.completions.create(
        model="script", messages=RAIN, tools=TOOLS, tool_choice="required", stream=True
    )
    choices = [chunk.choices[0] for chunk in stream]
    calls = [call for choice in choices for call in choice.delta.tool_calls or []]
    assert calls[0].function is not None
    assert calls[0].function.name == "get_weather"
    assert "".join(call.function.arguments or "" for call in calls if call.function) == '{"city": "Berlin"}'
    assert choices[-1].finish_reason == "tool_calls"
    assert len(choices) > 4


def test_what_is_left_to_the_model_is_left_to_it(client: OpenAI) -> None:
    for choice in ("auto", "none"):
        completion = client.chat.completions.create(
            model="script", messages=RAIN, tools=TOOLS, tool_choice=choice
        )
        assert completion.choices[0].message.content == "I would rather talk."
        assert completion.choices[0].message.tool_calls is None


def test_the_raw_route_makes_the_call_too(calling: Stack) -> None:
    body = {"model": "script", "messages": RAIN, "tools": TOOLS, "tool_choice": "required"}
    answer = httpx2.post(f"{calling.url}/v1/raw/chat/completions", json=body, timeout=30).json()
    assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"tool_choice": "required"}, "tools", "missing"),
        ({"tool_choice": named("get_weather"), "tools": []}, "tools", "missing"),
        ({"tool_choice": named("get_time"), "tools": TOOLS}, "tool_choice.function.name", "unknown_function"),
        ({"tool_choice": {"type": "function"}, "tools": TOOLS}, "tool_choice.function.name", None),
        ({"tool_choice": "required", "tools": [{"type": "custom"}]}, "tools[0].function", "tool_type"),
        ({"tool_choice": "required", "tools": [tool("a b")]}, "tools[0].function.name", "function_name"),
        ({"tool_choice": "required", "tools": [tool("a_" * 90)]}, "tools", "too_long"),
        (
            {"tool_choice": "required", "tools": [tool(f"f{n}") for n in range(256)]},
            "tools",
            "too_long",
        ),
        (
            {"tool_choice": "required", "tools": TOOLS, "extra_body": {"vllm_xargs": {"diffusion_x": 1}}},
            "vllm_xargs",
            "not_served",
        ),
        ({"tool_choice": "required", "tools": TOOLS, "messages": []}, "messages", "missing"),
    ],
)
def test_a_call_that_cannot_be_made_is_refused(
    client: OpenAI, fields: dict[str, Any], param: str, code: str | None
) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.chat.completions.create(**{"model": "script", "messages": RAIN, **fields})
    assert refused.value.param == param
    assert code in (None, refused.value.code)


def test_an_engine_that_reads_no_canvases_gets_the_body_as_it_came(calling: Stack) -> None:
    env = {"CANVASS_TOKENIZER": str(ensure_folder(find_model(None))), "CANVASS_ADMIN_KEY": "admin"}
    behind = calling.engine_urls[0]
    with (
        Upstream(behind) as diffusion,
        Upstream(behind) as causal,
        Stack(engines=diffusion.url, env=env) as stack,
    ):
        asked = {
            "messages": RAIN,
            "tools": TOOLS,
            "tool_choice": "required",
            "behave": "echo",
            "model": "script",
        }

        def sent() -> Any:
            return httpx2.post(f"{stack.url}/v1/chat/completions", json=asked, timeout=30).json()["body"]

        seeded = sent()
        extra = seeded.pop("vllm_xargs")
        assert seeded == {**asked, "tool_choice": "auto"}
        held = extra["diffusion_pinned"]
        assert held == list(range(len(held)))
        assert 0 < len(held) < extra["diffusion_canvas_length"] == len(extra["diffusion_seed_canvas"])
        assert "diffusion_read_only" not in extra
        engine = {"url": causal.url, "capabilities": {"canvas": False}}
        headers = {"authorization": "Bearer admin"}
        assert httpx2.post(f"{stack.url}/v1/engines", json=engine, headers=headers).status_code == 202
        until(lambda: sent() == asked, within_s=10)


@pytest.fixture(scope="module")
def embedded() -> Iterator[Stack]:
    with Stack(env={"CANVASS_SYNC_LIMIT_S": "60"}) as running:
        yield running


def test_the_small_model_always_calls_by_the_right_name(embedded: Stack) -> None:
    with OpenAI(base_url=f"{embedded.url}/v1", api_key="x", max_retries=0) as client:
        for choice, names in (
            (named("send_mail"), {"send_mail"}),
            ("required", {"get_weather", "send_mail"}),
        ):
            forced: Any = {"tool_choice": choice}
            completion = client.chat.completions.create(
                model="jev-latest", messages=RAIN, tools=TOOLS, max_tokens=40, **forced
            )
            message = completion.choices[0].message
            (call,) = message.tool_calls or []
            assert call.type == "function"
            assert call.function.name in names
            assert call.function.arguments.startswith("{")
