"""The pool over real engines: who joins it, who goes out and comes back, and where reads go meanwhile."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from client.cli import main
from client.process import Child
from client.stack import Stack
from tests.line.job_support import ASYNC, job, post, submit, until

ADMIN = "an-admin-key"
HEADERS = {"authorization": f"Bearer {ADMIN}"}

RULES: dict[str, Any] = {
    "rules": [
        {"phrase": "Is it urgent", "labels": {"yes": 0.6}, "other": 0.3},
        {"phrase": "Is it poison", "fault": "reset", "labels": {"yes": 0.5}},
    ]
}
URGENT = {"type": "noul", "instructions": "Is it urgent?"}
ONE: dict[str, Any] = {"questions": {"q": URGENT}, "diagnostics": True}

CAUSAL = {
    "ignore-canvas": "no logprobs",
    "talkative": "rows",
    "null-logprobs": "no logprobs",
    "short-rows": "rows",
}
"""Engines that answer as those do that read no canvases, and a word of what is said of each."""

LIARS = {
    "wrong-model": "another-model",
    "nan": "no number",
    "no-ids": "a token id that was asked for",
}
"""Each liar, and a word of the reason that is given."""

IN_TIME_S = 3.0
"""Workers agree within two seconds; a slow machine gets one more."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("pool") / "script.json"
    path.write_text(json.dumps(RULES))
    return f"script:{path}"


@pytest.fixture(scope="module")
def stack(script: str) -> Iterator[Stack]:
    """Two workers over two engines; tests leave both in."""
    env = {"CANVASS_ADMIN_KEY": ADMIN, "CANVASS_ROUTING": "round-robin", "CANVASS_READ_TIMEOUT_S": "5"}
    with Stack(engines=script, engine_count=2, workers=2, env=env) as running:
        until(lambda: all(states(running, url) == ["in", "in"] for url in running.engine_urls), 20)
        yield running


def engine(stack: Stack, url: str) -> dict[str, Any]:
    """An engine as the workers see it; empty when they do not know it."""
    listed: list[dict[str, Any]] = httpx2.get(f"{stack.url}/v1/engines").json()["data"]
    return next((found for found in listed if found["url"] == url), {})


def states(stack: Stack, url: str) -> list[str]:
    """Its state at each worker that knows it."""
    return [worker["state"] for worker in engine(stack, url).get("workers", [])]


def until_states(stack: Stack, url: str, wanted: str, within_s: float = 25.0) -> dict[str, Any]:
    """The engine, once both workers say the same of it."""
    until(lambda: states(stack, url) == [wanted, wanted], within_s)
    return engine(stack, url)


def figure(url: str, name: str) -> float:
    """A metric of an engine."""
    lines = httpx2.get(f"{url}/metrics", timeout=20).text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"vllm:{name}{{"))


def tokens(url: str) -> float:
    """Prompt tokens of every request that an engine has taken."""
    return figure(url, "prefix_cache_queries_total")


def served_by(answer: httpx2.Response) -> set[str]:
    """The engines whose reads are in an answer."""
    assert answer.status_code == 200, answer.text
    return {read["engine"] for read in answer.json()["diagnostics"]["reads"]}


@contextmanager
def arguments(child: Child, *more: str) -> Iterator[None]:
    """An engine started again with further arguments, and in the end without them."""
    command = child.command
    child.command = (*command[:-2], *more, *command[-2:])
    child.kill()
    child.start()
    try:
        yield
    finally:
        child.kill()
        child.command = command
        child.start()


@contextmanager
def frozen(child: Child) -> Iterator[None]:
    os.killpg(child.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(child.pid, signal.SIGCONT)


def test_liars_never_get_a_read_and_the_list_says_why(
    script: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {**CAUSAL, **LIARS}
    own = [("--liar", name) for name in names]
    with Stack(engines=script, engine_count=len(names) + 1, each_engine_args=[*own, ()]) as stack:
        *lying, good = stack.engine_urls
        until(lambda: all(engine(stack, url).get("reason") != "not yet probed" for url in lying), 20)
        for _ in range(10):
            assert served_by(post(stack.url, ONE)) == {good}
        monkeypatch.setattr("sys.argv", ["canvass", "engines", "list", "--url", stack.url])
        with pytest.raises(SystemExit):
            main()
        printed = capsys.readouterr().out
        for url, (name, word) in zip(lying, names.items(), strict=True):
            seen = engine(stack, url)
            assert seen["reads"] == 0, name
            assert seen["state"] == ("in" if name in CAUSAL else "out"), name
            assert seen["capabilities"]["canvas"] == (name in LIARS), name
            assert word in seen["reason"], name
            (line,) = (line for line in printed.splitlines() if url in line)
            assert f" {seen['state']} " in line
            assert seen["reason"] in line
        assert engine(stack, good)["state"] == "in"


def test_an_engine_that_begins_to_lie_goes_out_and_comes_back_when_it_stops(stack: Stack) -> None:
    liar, other = stack.engines[0], stack.engine_urls[1]
    url = stack.engine_urls[0]
    with arguments(liar, "--liar", "nan"):
        # A lie is seen when it is told: each worker has to read from it once.
        until(lambda: post(stack.url, ONE).status_code == 200 and states(stack, url) == ["out", "out"], 20)
        until(lambda: LIARS["nan"] in engine(stack, url)["reason"])
        for _ in range(10):
            assert served_by(post(stack.url, ONE)) == {other}
    until_states(stack, url, "in")


def test_an_engine_that_gives_too_few_rows_once_is_left_at_once(stack: Stack) -> None:
    with arguments(stack.engines[0], "--fault", "wrong-rows:0.5", "--seed", "3"):
        until(lambda: stack.engines[0].printed() != "")
        for _ in range(20):
            assert post(stack.url, ONE).status_code == 200
    until_states(stack, stack.engine_urls[0], "in")


def test_an_engine_that_hangs_goes_out_and_comes_back(stack: Stack) -> None:
    url, other = stack.engine_urls
    with frozen(stack.engines[0]):
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda _: post(stack.url, ONE), range(16)))
        assert all(answer.status_code == 200 for answer in answers)
        until_states(stack, url, "out", 20)
        assert served_by(post(stack.url, ONE)) == {other}
    until_states(stack, url, "in")


def test_an_engine_that_refuses_goes_out_and_comes_back(stack: Stack) -> None:
    url, other = stack.engine_urls
    stack.engines[0].kill()
    for _ in range(20):
        assert served_by(post(stack.url, ONE)) == {other}
    seen = until_states(stack, url, "out")
    assert "Cannot connect" in seen["reason"] or "refused" in seen["reason"].lower()
    stack.restart(stack.engines[0])
    until_states(stack, url, "in")


def test_an_engine_that_fails_five_times_in_a_row_is_left_alone_for_a_while(stack: Stack) -> None:
    url, other = stack.engine_urls
    with arguments(stack.engines[0], "--fault", "500:1"):
        until(lambda: post(stack.url, ONE).status_code == 200 and states(stack, url) == ["out", "out"], 20)
        until(lambda: "500" in engine(stack, url)["reason"], 20)
        for _ in range(10):
            assert served_by(post(stack.url, ONE)) == {other}
    until_states(stack, url, "in")


def test_what_was_said_about_engines_reaches_every_worker(stack: Stack) -> None:
    third = stack.add_engine("--latency", "700,0,1000")
    url = stack.engine_urls[2]
    assert httpx2.post(f"{stack.url}/v1/engines", json={"url": url}, headers=HEADERS).status_code == 202
    start = time.monotonic()
    until(lambda: len(states(stack, url)) == 2)
    assert time.monotonic() - start < IN_TIME_S
    until_states(stack, url, "in", 30)

    with ThreadPoolExecutor(9) as threads:
        asked = [threads.submit(post, stack.url, ONE) for _ in range(9)]
        until(lambda: figure(url, "num_requests_running") >= 1)
        assert httpx2.post(f"{stack.url}/v1/engines/drain", params={"url": url}, headers=HEADERS).is_success
        start = time.monotonic()
        until_states(stack, url, "draining")
        assert time.monotonic() - start < IN_TIME_S
        engines = [served_by(answer.result()) for answer in asked]
    assert {url} in engines, "what it had under way it ended"
    assert engine(stack, url)["errors"] == 0
    before = tokens(url)
    for _ in range(10):
        assert url not in served_by(post(stack.url, ONE))
    assert tokens(url) == before

    assert httpx2.delete(f"{stack.url}/v1/engines", params={"url": url}, headers=HEADERS).is_success
    start = time.monotonic()
    until(lambda: states(stack, url) == [])
    assert time.monotonic() - start < IN_TIME_S
    third.stop()


def test_a_read_that_every_engine_fails_fails_its_decision_alone(stack: Stack) -> None:
    poison = {"questions": {"q": {"type": "noul", "instructions": "Is it poison?"}}}
    both = stack.engine_urls[:2]
    before = [tokens(url) for url in both]
    start = time.monotonic()
    answer = post(stack.url, poison)
    assert answer.status_code == 529
    assert time.monotonic() - start < 9, "well before its deadline"
    assert "every engine failed the read" in answer.text or "no engine" in answer.text
    assert sum(map(tokens, both)) - sum(before) < 40 * 100, "it was not tried for ever"
    until(lambda: post(stack.url, ONE).status_code == 200, 8)
    for _ in range(10):
        assert post(stack.url, ONE).status_code == 200


def test_neighbours_of_a_read_that_every_engine_fails_are_answered(stack: Stack) -> None:
    poison = {"questions": {"q": {"type": "noul", "instructions": "Is it poison?"}}}
    for url in stack.engine_urls[:2]:
        until_states(stack, url, "in")
    with ThreadPoolExecutor(5) as threads:
        poisoned = threads.submit(post, stack.url, poison)
        answers = list(threads.map(lambda _: post(stack.url, ONE).status_code, range(60)))
        assert poisoned.result().status_code == 529
    assert answers == [200] * 60


def test_what_an_engine_says_is_the_requests_fault_is_asked_once(script: str) -> None:
    later = {"type": "noul", "instructions": "word " * 400, "depends_on": ["q"]}
    limit = ("--max-model-len", "300")
    with Stack(engines=script, engine_count=2, engine_args=limit) as stack:
        first = post(stack.url, {**ONE, "questions": {"q": URGENT}})
        assert first.status_code == 200
        refused = post(stack.url, {"questions": {"q": URGENT, "later": later}})
        assert refused.status_code == 400
        time.sleep(1.2)
        for url in stack.engine_urls:
            assert (engine(stack, url)["state"], engine(stack, url)["errors"]) == ("in", 0)


def test_a_slow_read_is_asked_of_a_second_engine_too(script: str) -> None:
    args = ("--latency", "15,0,1000", "--fault", "slow:0.01")
    wide = {"questions": {f"q{n}": URGENT for n in range(16)}, "diagnostics": True, "samples": 4}
    seeds = [("--seed", str(seed)) for seed in (1, 2)]
    tried: list[str] = []
    with Stack(engines=script, engine_count=2, engine_args=args, each_engine_args=seeds) as stack:
        for _ in range(15):
            answer = post(stack.url, wide)
            assert answer.status_code == 200
            tried += [
                one["why"] for read in answer.json()["diagnostics"]["reads"] for one in read.get("tried", ())
            ]
    assert "another engine was sooner" in tried


def test_a_full_queue_says_at_once_when_to_come_back(script: str) -> None:
    with Stack(engines=script, env={"CANVASS_MOST_QUEUED": "3"}) as stack:
        with frozen(stack.workers[0]):
            ids = [submit(stack.url, ONE) for _ in range(3)]
            time.sleep(1.5)
            start = time.monotonic()
            refused = post(stack.url, ONE, ASYNC)
            assert time.monotonic() - start < 1
        assert refused.status_code == 529
        assert "wait already" in refused.json()["detail"]["message"]
        assert 1 <= int(refused.headers["retry-after"]) <= 10
        assert int(refused.headers["retry-after-ms"]) >= 1000
        for id in ids:
            assert job(stack.url, id, wait=20)["status"] == "succeeded"
        until(lambda: post(stack.url, ONE).status_code == 200)


def test_a_read_whose_deadline_passed_is_not_sent(script: str) -> None:
    env = {"CANVASS_ENGINE_IN_FLIGHT": "1"}
    with Stack(engines=script, engine_args=("--latency", "1000,0,1000"), env=env) as stack:
        (url,) = stack.engine_urls
        assert post(stack.url, ONE).status_code == 200
        one = post(stack.url, ONE).json()["usage"]["input_tokens"]
        until(lambda: figure(url, "num_requests_running") == 0)
        before = tokens(url)
        id = submit(stack.url, {**ONE, "samples": 6, "deadline_ms": 1600})
        until(lambda: bool(job(stack.url, id)["done"]))
        assert job(stack.url, id)["status"] == "expired"
        time.sleep(1.5)
        assert (tokens(url) - before) / one <= 2, "one that was answered, and one that was under way"


def masses(answer: httpx2.Response) -> list[float]:
    """The label masses in an answer's diagnostics, wherever they stand."""
    found: list[float] = []

    def look(value: Any) -> None:
        for name, inner in value.items() if isinstance(value, dict) else ():
            if name == "label_mass":
                found.append(inner if isinstance(inner, float | int) else inner["mean"])
            else:
                look(inner)
        for inner in value if isinstance(value, list) else ():
            look(inner)

    look(answer.json())
    return found


@pytest.mark.parametrize("allowed", [True, False])
def test_draws_go_as_one_request_and_reads_over_the_labels_alone_only_when_allowed(
    script: str, allowed: bool
) -> None:
    env = {"CANVASS_ENGINE_SAMPLES": str(int(allowed)), "CANVASS_CONSTRAINED": str(int(allowed))}
    with Stack(engines=script, engine_args=("--engine-samples", "8"), env=env) as stack:
        (url,) = stack.engine_urls
        can = "engine_samples"
        until(lambda: engine(stack, url)["capabilities"][can] == (8 if allowed else 0))
        time.sleep(0.5)  # the last canary may still be under way
        before = tokens(url)
        assert post(stack.url, ONE).status_code == 200
        one = tokens(url) - before
        answer = post(stack.url, {**ONE, "samples": 8})
        assert answer.status_code == 200
        assert (tokens(url) - before - one) / one == (1 if allowed else 8)
        assert masses(answer)
        assert all((mass > 0.99) is allowed for mass in masses(answer)), masses(answer)
