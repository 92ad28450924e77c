"""What a client sees when parts are missing, and what is not lost when one dies."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2

from client.stack import Stack
from tests.line.conftest import ask_at

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
    env = {"CANVASS_SYNC_LIMIT_S": "60", "CANVASS_VISIBILITY_TIMEOUT_S": "8"}
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
