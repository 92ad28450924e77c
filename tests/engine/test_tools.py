"""Tools: a generation goes on from a pinned canvas, and calls are found in its text as vLLM's parsers do."""

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from engine.tool_calls import FORMATS, Reader, deltas_of, message_of
from tests.engine.support import NOISE, Server, ids

WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
OPENING = '<tool_call>\n{"name": "get_weather", "arguments": {'
BERLIN = '"city": "Berlin"}}\n</tool_call>'
RULES = [{"state_contains": "get_weather", "text": BERLIN}, {"text": "It is sunny."}]


def seeded(opening: str = OPENING, width: int = 32, **changes: Any) -> dict[str, Any]:
    """The fields of a chat whose first canvas begins with a pinned text."""
    head = ids(opening)
    fields = {
        "diffusion_seed_canvas": head + [NOISE] * (width - len(head)),
        "diffusion_canvas_length": width,
        "diffusion_pinned": list(range(len(head))),
    }
    return {"tools": [WEATHER], "vllm_xargs": {**fields, **changes}}


def streamed(server: Server, **body: Any) -> list[dict[str, Any]]:
    """The chunks of a streamed chat."""
    body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True, **body}
    request = urllib.request.Request(server.url + "/v1/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as response:
        lines = response.read().decode().split("\n\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def test_a_generation_goes_on_from_its_pinned_canvas(scripted: Callable[..., Server]) -> None:
    answer = scripted(RULES).chat("How is it in Berlin?", **seeded()).body
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "get_weather", "arguments": '{"city": "Berlin"}'}
    assert choice["message"]["content"] is None
    assert answer["usage"]["completion_tokens"] == len(ids(OPENING)) + len(ids(BERLIN))


def test_the_opening_is_part_of_the_text_and_counts(scripted: Callable[..., Server]) -> None:
    server = scripted(RULES)
    body = {**seeded("Well, "), "tools": None}
    assert server.chat("Hi", **body).body["choices"][0]["message"]["content"] == "Well, It is sunny."
    head = len(ids("Well, "))
    cut = server.chat("Hi", **body, max_tokens=head).body["choices"][0]
    assert (cut["message"]["content"], cut["finish_reason"]) == ("Well, ", "length")
    assert server.chat("Hi", **body, max_tokens=1).body["choices"][0]["message"]["content"] == "Well"


def test_a_stream_tells_the_name_first_and_then_the_arguments(scripted: Callable[..., Server]) -> None:
    chunks = streamed(scripted(RULES), **seeded())
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert calls[0]["function"] == {"name": "get_weather", "arguments": ""}
    assert "".join(call["function"]["arguments"] for call in calls) == '{"city": "Berlin"}'
    assert len(calls) > 2
    assert {call["index"] for call in calls} == {0}
    assert "".join(delta.get("content") or "" for delta in deltas) == ""
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-1] == "tool_calls"


def test_the_small_model_goes_on_from_an_opening_too(llama: Server) -> None:
    choice = llama.chat("How is it in Berlin?", **seeded(), max_tokens=40).body["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert call["function"]["arguments"].startswith("{")


def test_a_model_that_calls_by_itself_is_understood(scripted: Callable[..., Server]) -> None:
    server = scripted([{"text": f"Let me see. {OPENING}{BERLIN}"}])
    message = server.chat("Hi", tools=[WEATHER]).body["choices"][0]["message"]
    assert (message["content"], len(message["tool_calls"])) == ("Let me see.", 1)
    for plain in ({}, {"tools": [WEATHER], "tool_choice": "none"}):
        message = server.chat("Hi", **plain).body["choices"][0]["message"]
        assert message["content"].startswith("Let me see. <tool_call>")
        assert "tool_calls" not in message


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"tools": [WEATHER], "tool_choice": "required"}, "structured_outputs is not supported by diffusion"),
        (
            {
                "tools": [WEATHER],
                "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
            },
            "structured_outputs is not supported by diffusion",
        ),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}},
            "does not match any of the specified",
        ),
        ({"tools": [WEATHER], "tool_choice": "always"}, "Invalid value for `tool_choice`"),
        ({"tool_choice": "required"}, "`tools` must be set"),
        ({"tools": [{"type": "function"}]}, "tools must be a list"),
        (seeded(diffusion_pinned=[0, 2]), "hold the head of the canvas"),
        (seeded(diffusion_constrained=True), "needs diffusion_read_only"),
        ({**seeded(), "temperature": 0}, "temperature is not supported by diffusion models"),
    ],
)
def test_what_vllm_refuses_is_refused(plain: Server, fields: dict[str, Any], told: str) -> None:
    reply = plain.chat("Hi", **fields)
    assert reply.status == 400
    assert told in reply.body["error"]["message"]


def test_auto_needs_a_parser(scripted: Callable[..., Server]) -> None:
    server = scripted(RULES, "--tool-call-parser", "none")
    refused = server.chat("Hi", tools=[WEATHER])
    assert (refused.status, "--tool-call-parser" in refused.body["error"]["message"]) == (400, True)


def test_one_that_writes_left_to_right_keeps_to_a_forced_call(scripted: Callable[..., Server]) -> None:
    server = scripted(RULES, "--liar", "ignore-canvas")
    message = server.chat("Hi", tools=[WEATHER], tool_choice="required").body["choices"][0]["message"]
    assert message["tool_calls"][0]["function"] == {
        "name": "get_weather",
        "arguments": '{"city": "Berlin"}',
    }


HERMES = """Two.
<tool_call>
{"name": "a", "arguments": {"x": "}{\\"</"}}
</tool_call>
<tool_call>
{"name": "b", "arguments": {}}
</tool_call>"""
GEMMA = """<|channel>thought
<channel|>Two.<|tool_call>call:a{x:<|"|>say "ü", {no}: 1<|"|>,n:-1.5,on:true,l:[1,<|"|>z<|"|>],o:{k:null}}\
<tool_call|><|tool_call>call:b{}<tool_call|>"""
TEXTS = {
    "hermes": (HERMES, [("a", {"x": '}{"</'}), ("b", {})]),
    "gemma4": (
        GEMMA,
        [("a", {"x": 'say "ü", {no}: 1', "n": -1.5, "on": True, "l": [1, "z"], "o": {"k": None}}), ("b", {})],
    ),
}


@pytest.mark.parametrize("format", TEXTS)
def test_calls_are_found_wherever_the_text_is_cut(format: str) -> None:
    text, wanted = TEXTS[format]
    message, calls = message_of(text, FORMATS[format])
    assert (calls, message["content"]) == (True, "Two.")
    told = [call["function"] for call in message["tool_calls"]]
    assert [(call["name"], json.loads(call["arguments"])) for call in told] == wanted
    skipped = len(FORMATS[format].skipped)
    for size in (1, 2, 3, 7, 11):
        reader = Reader(FORMATS[format])
        cuts = [text[:skipped], *(text[at : at + size] for at in range(skipped, len(text), size)), ""]
        pieces = [delta for cut in cuts for delta in deltas_of(reader.feed(cut, last=not cut), reader)]
        assert "".join(piece.get("content", "") for piece in pieces).strip() == "Two."
        arguments = ["", ""]
        for call in (call for piece in pieces for call in piece.get("tool_calls", [])):
            arguments[call["index"]] += call["function"]["arguments"]
        assert [json.loads(one) for one in arguments] == [value for _, value in wanted]


@pytest.mark.parametrize(
    ("rest", "arguments"),
    [
        ("7}\n</tool_call>", "7"),
        ('"x"}\n</tool_call> and so on', '"x"'),
        ('{"a": "never', '{"a": "never'),
        ("nonsense</tool_call>", "nonsense"),
    ],
)
def test_arguments_that_are_no_json_come_as_they_are(rest: str, arguments: str) -> None:
    message, _ = message_of('<tool_call>\n{"name": "a", "arguments": ' + rest, FORMATS["hermes"])
    assert message["tool_calls"][0]["function"] == {"name": "a", "arguments": arguments}


def test_text_that_only_looks_like_a_call_is_content() -> None:
    for text in ("a <tool_call> of mine", "x <tool", "  "):
        reader = Reader(FORMATS["hermes"])
        found = [*reader.feed(text), *reader.feed("", last=True)]
        assert "".join(one.content for one in found) == text
        assert message_of(text, FORMATS["hermes"]) == ({"role": "assistant", "content": text}, False)
