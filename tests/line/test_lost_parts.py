"""What a client sees when parts are missing, and what is not lost when one dies."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
from redis.asyncio import Redis

from client.stack import Stack
from planner.decision import Alternative, Decision, Question
from planner.reads import Wave
from tests.line.conftest import ask_at
from workers.settings import Settings
from workers.store.decisions import Decisions
from workers.store.outcome import Outcome
from workers.store.store import Store
from workers.terms import Terms


def tokens_read(stack: Stack) -> float:
    """Prompt tokens that the engine has looked up in its prefix cache: of every read, once."""
    metrics = httpx2.get(f"{stack.engine_urls[0]}/metrics").text
    (line,) = (line for line in metrics.splitlines() if line.startswith("vllm:prefix_cache_queries_total{"))
    return float(line.split()[-1])


URGENT = {"urgent": {"type": "noul", "instructions": "Is it urgent?"}}


def test_a_stopped_engine_is_an_early_overload_and_its_return_is_noticed(script: str) -> None:
    with Stack(engines=script) as stack:
        (engine,) = stack.engines
        engine.stop()
        start = time.monotonic()
        response = ask_at(stack.url, questions=URGENT)
        assert response.status_code == 529
        assert response.json()["detail"]["error_type"] == "overloaded_error"
        assert int(response.headers["retry-after"]) >= 1
        assert time.monotonic() - start < 5, "well before the sync limit of 9 s"
        assert httpx2.get(f"{stack.url}/health").status_code == 200
        stack.restart(engine)
        assert ask_at(stack.url, questions=URGENT).status_code == 200


def test_a_dead_engine_is_no_loss_while_another_lives(script: str) -> None:
    with Stack(engines=script, engine_count=2) as stack:
        stack.engines[0].stop()
        for _ in range(5):
            assert ask_at(stack.url, questions=URGENT).status_code == 200


def test_over_the_sync_limit_it_is_an_overload(script: str) -> None:
    slow = ("--latency", "3000,0,1000")
    with Stack(engines=script, engine_args=slow, env={"CANVASS_SYNC_LIMIT_S": "0.5"}) as stack:
        response = ask_at(stack.url, questions=URGENT)
    assert response.status_code == 529
    assert "still worked on" in response.json()["detail"]["message"]
    assert response.headers["x-typesafe-request-id"].startswith("dec_")


def test_a_worker_killed_in_the_middle_is_replaced_by_another(script: str) -> None:
    slow = ("--latency", "2000,0,1000")
    env = {"CANVASS_SYNC_LIMIT_S": "60", "CANVASS_LEASE_S": "3"}
    with Stack(engines=script, engine_args=slow, env=env) as stack, ThreadPoolExecutor() as threads:
        answer = threads.submit(ask_at, stack.url, questions=URGENT)
        time.sleep(1)
        (worker,) = stack.workers
        assert worker.pid is not None
        os.killpg(worker.pid, signal.SIGKILL)
        stack.add_worker()
        response = answer.result(timeout=60)
    assert response.status_code == 200
    assert response.json()["answers"]["urgent"]["noul"] == 0.9


def test_a_wave_of_several_shards_is_a_chord_that_gives_one_answer(script: str) -> None:
    questions = {f"q{number}": {"type": "noul", "instructions": "Is it urgent?"} for number in range(150)}
    later = {"end": {"type": "noul", "instructions": "Is it calm?", "depends_on": ["q0"]}}
    with Stack(engines=script, workers=2, env={"CANVASS_SHARD_READS": "20"}) as stack:
        body = ask_at(stack.url, questions={**questions, **later}, diagnostics=True).json()
    assert {body["answers"][id]["noul"] for id in questions} == {0.9}
    assert body["answers"]["end"]["noul"] == 0.2
    assert body["diagnostics"]["waves"] == 2


def test_a_decision_that_runs_longer_than_the_visibility_timeout_runs_once(script: str) -> None:
    slow = ("--latency", "4000,0,1000")
    env = {"CANVASS_SYNC_LIMIT_S": "60", "CANVASS_VISIBILITY_TIMEOUT_S": "1", "CANVASS_LEASE_S": "1.2"}
    with Stack(engines=script, engine_args=slow, workers=2, env=env) as stack:
        time.sleep(3)  # the second worker's canary may still be under way
        before = tokens_read(stack)
        response = ask_at(stack.url, questions=URGENT)
        time.sleep(1)
        assert tokens_read(stack) - before == response.json()["usage"]["input_tokens"]


def test_a_decision_that_was_stored_but_never_published_is_published_by_the_watchdog(stack: Stack) -> None:
    async def save() -> Outcome:
        async with Redis.from_url(stack.redis_url) as redis:
            return await orphaned(redis)

    async def orphaned(redis: Redis) -> Outcome:
        settings = Settings(queued_lease_s=1.5)
        decisions = Decisions(Store(redis, settings), settings)
        question = Question("a", "noul", "Is it urgent?", (Alternative("yes"), Alternative("no")))
        decision = Decision("jev-latest", "A state.", (question,))
        await decisions.save("dec_orphan", decision, Wave(0, ()), 1, Terms(), "nobody")
        for _ in range(100):
            outcome = (await decisions.outcomes(["dec_orphan"]))["dec_orphan"]
            if outcome is not None:
                return outcome
            await asyncio.sleep(0.2)
        raise AssertionError("nobody saw to it")

    assert asyncio.run(save()).status == "succeeded"


def test_a_store_that_hangs_is_an_overload_within_the_sync_limit(script: str) -> None:
    with Stack(engines=script, env={"CANVASS_SYNC_LIMIT_S": "2"}) as stack:
        assert stack.redis is not None
        assert stack.redis.pid is not None
        os.kill(stack.redis.pid, signal.SIGSTOP)
        try:
            start = time.monotonic()
            assert ask_at(stack.url, questions=URGENT).status_code == 529
            assert httpx2.get(f"{stack.url}/ready", timeout=10).status_code == 503
            assert time.monotonic() - start < 8
        finally:
            os.kill(stack.redis.pid, signal.SIGCONT)


def test_a_prompt_that_outgrows_the_context_in_a_later_stage_is_the_requests_fault(script: str) -> None:
    later = {"type": "noul", "instructions": "word " * 400, "depends_on": ["urgent"]}
    with Stack(engines=script, engine_args=("--max-model-len", "300")) as stack:
        response = ask_at(stack.url, questions={**URGENT, "later": later})
    assert response.status_code == 400
    assert response.json()["detail"]["error_type"] == "max_tokens_exceeded"


def test_a_restarted_redis_loses_no_decision_under_way(script: str) -> None:
    slow = ("--latency", "2500,0,1000")
    env = {"CANVASS_SYNC_LIMIT_S": "60", "CANVASS_LEASE_S": "3"}
    with Stack(engines=script, engine_args=slow, env=env) as stack, ThreadPoolExecutor() as threads:
        answer = threads.submit(ask_at, stack.url, questions=URGENT)
        time.sleep(1)
        assert stack.redis is not None
        stack.redis.kill()
        stack.restart(stack.redis)
        assert answer.result(timeout=60).status_code == 200
        assert ask_at(stack.url, questions=URGENT).status_code == 200
