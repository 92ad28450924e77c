"""The other routes, streaming, starting and ending."""

import json
import signal
import time
import urllib.request
from collections.abc import Callable

import pytest

from tests.engine.support import Server, ids, refusal, tokenizer

Scripted = Callable[..., Server]


def test_health_is_200(plain: Server) -> None:
    assert plain.get("/health") == ""


def test_models_names_the_model_and_its_context(plain: Server) -> None:
    (model,) = json.loads(plain.get("/v1/models"))["data"]
    assert (model["id"], model["max_model_len"]) == ("script", 512)


def test_the_served_name_can_be_chosen(scripted: Scripted) -> None:
    server = scripted([], "--model-name", "google/diffusiongemma-26B-A4B-it")
    assert server.chat("x", model="google/diffusiongemma-26B-A4B-it", max_tokens=5).status == 200


def test_metrics_have_the_names_of_vllm(plain: Server) -> None:
    text = plain.get("/metrics")
    for name in (
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
        "prefix_cache_queries_total",
        "prefix_cache_hits_total",
        "admission_rejections_total",
    ):
        assert f'vllm:{name}{{model_name="script"' in text


def test_metrics_can_be_off(scripted: Scripted) -> None:
    with pytest.raises(OSError, match="404"):
        scripted([], "--metrics-off").get("/metrics")


def test_tokenize_gives_the_ids_of_a_prompt_and_of_a_chat(plain: Server) -> None:
    prompt = plain.post("/tokenize", {"prompt": "answer: yes 42"})
    assert prompt.body["tokens"] == ids("answer: yes 42")
    chat = plain.post("/tokenize", {"messages": [{"role": "user", "content": "Hi"}]})
    assert (
        tokenizer()
        .decode(chat.body["tokens"], skip_special_tokens=False)
        .endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    )


def test_the_final_message_can_be_continued(plain: Server) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "answer:"}]
    reply = plain.post("/tokenize", {"messages": messages, "continue_final_message": True})
    assert tokenizer().decode(reply.body["tokens"]).endswith("answer:")


def test_a_generation_can_be_streamed(scripted: Scripted) -> None:
    server = scripted([{"text": "one two three"}])
    body = {"messages": [{"role": "user", "content": "x"}], "stream": True, "max_tokens": 20}
    lines = _events(server, "/v1/chat/completions", body | {"stream_options": {"include_usage": True}})
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert deltas[0]["role"] == "assistant"
    assert "".join(delta.get("content", "") for delta in deltas) == "one two three"
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["completion_tokens"] == 3


def test_a_streamed_completion_joins_to_the_whole_one(llama: Server) -> None:
    body = {"prompt": "The capital of France is", "max_tokens": 8, "temperature": 0}
    whole = llama.post("/v1/completions", body).body["choices"][0]["text"]
    lines = _events(llama, "/v1/completions", body | {"stream": True})
    assert "".join(json.loads(line)["choices"][0]["text"] for line in lines[:-1]) == whole


def test_a_refusal_of_a_stream_keeps_its_status(plain: Server) -> None:
    assert plain.complete(prompt="x", stream=True, max_tokens=100_000).status == 400


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_promptly_in_the_middle_of_a_hang(scripted: Scripted, number: int) -> None:
    server = scripted([{"fault": "hang"}])
    with pytest.raises(TimeoutError):
        server.post("/v1/completions", {"prompt": "x"}, timeout=0.2)
    began = time.monotonic()
    server.process.send_signal(number)
    assert server.process.wait(timeout=5) == 0
    assert time.monotonic() - began < 1.5


def test_a_missing_model_is_one_line_on_standard_error() -> None:
    assert "/no/such.gguf is no file" in refusal("--backend", "llama:/no/such.gguf")


def _events(server: Server, path: str, body: object) -> list[str]:
    request = urllib.request.Request(server.url + path, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=20) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        return [line.decode()[6:].strip() for line in response if line.startswith(b"data: ")]
