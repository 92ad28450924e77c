"""The latency model, the prefix cache and the queue."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.engine.support import SLOT, Reply, Server, isolated

Scripted = Callable[..., Server]
ANSWER = f"answer:{SLOT}"
LONG = "The parcel never came. " * 40


def test_a_custom_latency_is_constant_whatever_else_runs(scripted: Scripted) -> None:
    server = scripted([], "--latency", "50,0,1000")
    for together in (1, 8):
        assert 0.05 <= _time(server, together) < 0.15


def test_sequences_share_steps_up_to_the_batch(scripted: Scripted) -> None:
    server = scripted([], "--latency", "60,10,4")
    assert 0.07 <= _time(server, 1) < 0.16
    # Of eight, one starts alone (70 ms); four and three follow in two steps (100 and 90 ms).
    assert 0.25 <= _time(server, 8) < 0.45


def test_each_denoise_step_costs(scripted: Scripted) -> None:
    server = scripted([], "--latency", "30,0,10")
    began = time.monotonic()
    server.read(isolated("Is it?"), ANSWER, xargs={"diffusion_max_steps": 4})
    assert 0.12 <= time.monotonic() - began < 0.25


def test_a_cached_prefix_needs_no_prefill(scripted: Scripted) -> None:
    server = scripted([], "--profile", "gb10")
    cold, warm = (server.read(isolated("Is it?", state=LONG), ANSWER).body["usage"] for _ in range(2))
    assert cold["prompt_tokens_details"]["cached_tokens"] == 0
    assert warm["prompt_tokens_details"]["cached_tokens"] == warm["prompt_tokens"] // 16 * 16


def test_questions_on_one_state_share_its_blocks(scripted: Scripted) -> None:
    server = scripted([])
    server.read(isolated("Is it urgent?", state=LONG), ANSWER)
    second = server.read(isolated("Is it polite?", state=LONG), ANSWER).body["usage"]
    assert second["prompt_tokens_details"]["cached_tokens"] > 150


def test_a_cache_salt_keeps_tenants_apart(scripted: Scripted) -> None:
    server = scripted([])
    cached = [
        server.read(isolated("Is it?", state=LONG), ANSWER, cache_salt=salt).body["usage"][
            "prompt_tokens_details"
        ]["cached_tokens"]
        for salt in ("a", "b", "a")
    ]
    assert cached[:2] == [0, 0]
    assert cached[2] > 0


def test_a_full_cache_forgets_the_oldest(scripted: Scripted) -> None:
    server = scripted([], "--cache-blocks", "16")
    cached = [
        server.read(isolated("Is it?", state=state * 90), ANSWER).body["usage"]["prompt_tokens_details"][
            "cached_tokens"
        ]
        for state in ("One parcel. ", "Two letters. ", "One parcel. ")
    ]
    # What all prompts begin with (the system message) is the only thing that stays.
    assert cached[2] == cached[1] < 48


def test_over_the_queue_limit_the_answer_is_503(scripted: Scripted) -> None:
    server = scripted([], "--latency", "200,0,1", "--max-queued", "1")
    with ThreadPoolExecutor(4) as threads:
        replies: list[Reply] = list(threads.map(lambda _: server.read(isolated("Is it?"), ANSWER), range(4)))
    assert sorted(reply.status for reply in replies) == [200, 200, 503, 503]
    assert {reply.body["error"]["type"] for reply in replies if reply.status == 503} == {
        "ServiceUnavailableError"
    }
    assert 'vllm:admission_rejections_total{model_name="script",engine="0"} 2' in server.get("/metrics")


def test_metrics_show_what_runs_and_what_waits(scripted: Scripted) -> None:
    server = scripted([], "--latency", "300,0,1")
    reads = [threading.Thread(target=server.read, args=(isolated("Is it?"), ANSWER)) for _ in range(3)]
    for read in reads:
        read.start()
    time.sleep(0.15)
    metrics = server.get("/metrics")
    for read in reads:
        read.join()
    assert 'num_requests_running{model_name="script",engine="0"} 1' in metrics
    assert 'num_requests_waiting{model_name="script",engine="0"} 2' in metrics


def test_a_client_that_goes_away_frees_its_place(scripted: Scripted) -> None:
    server = scripted([], "--latency", "2000,0,1")
    with pytest.raises(TimeoutError):
        server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}, timeout=0.2)
    time.sleep(0.1)
    assert 'num_requests_running{model_name="script",engine="0"} 0' in server.get("/metrics")


def _time(server: Server, together: int) -> float:
    """Seconds until that many simultaneous reads are all answered."""
    with ThreadPoolExecutor(together) as threads:
        began = time.monotonic()
        list(threads.map(lambda _: server.read(isolated("Is it?"), ANSWER), range(together)))
        return time.monotonic() - began
