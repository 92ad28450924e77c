"""Jobs as pure functions of what the store keeps: status, object, events and their numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import orjson
import pytest

from workers.jobs import TERMINAL, Event, Fields, events_of, job_of, status_of

QUEUED: Fields = {
    "status": b"open",
    "created": b"1000",
    "deadline": b"1600.5",
    "stage": b"0",
    "stages": b"3",
    "planned": b"4",
}
RUNNING: Fields = {**QUEUED, "started": b"1001.25"}
MOVED: Fields = {
    **RUNNING,
    "stage": b"1",
    "done": b"4",
    "planned": b"6",
    "log": b"progress 1002 0 2 4\nprogress 1003 0 4 4\nprogress 1004 1 4 6\nstage 1004 1 4 6\n",
}
BODY = {"answers": {"a": {"noul": 0.5}}}
ENDED: Fields = {
    **MOVED,
    "status": b"succeeded",
    "body": orjson.dumps(BODY),
    "done": b"6",
    "finished": b"1005",
    "expires": b"4605",
}
ERROR = {"code": "no_engine", "message": "none is in"}


def failed(status: str, fields: Fields = QUEUED) -> Fields:
    return {
        **fields,
        "status": status.encode(),
        "body": orjson.dumps(ERROR),
        "finished": b"1005",
        "expires": b"4605",
    }


def job(fields: Fields, **more: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = orjson.loads(orjson.dumps(job_of("dec_1", fields, **more)))
    return decoded


def told(fields: Fields) -> list[tuple[int, str]]:
    return [(event.number, event.name) for event in events_of("dec_1", fields)]


def same(first: list[Event], second: list[Event]) -> bool:
    return orjson.dumps(first) == orjson.dumps(second)


def test_an_open_decision_is_queued_until_a_worker_began_it() -> None:
    assert status_of(QUEUED) == "queued"
    assert status_of(RUNNING) == "running"


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_a_terminal_status_is_told_as_it_is(status: str) -> None:
    fields = ENDED if status == "succeeded" else failed(status)
    assert status_of(fields) == status
    assert job(fields)["done"] is True


def test_a_queued_job_has_a_place_and_no_times_yet() -> None:
    assert job(QUEUED, position=3) == {
        "id": "dec_1",
        "object": "job",
        "status": "queued",
        "done": False,
        "created_at": "1970-01-01T00:16:40.000Z",
        "started_at": None,
        "finished_at": None,
        "deadline_at": "1970-01-01T00:26:40.500Z",
        "expires_at": None,
        "cancel_requested_at": None,
        "progress": {"stage": 1, "stages": 3, "reads_done": 0, "reads_planned": 4},
        "queue_position": 3,
        "metadata": None,
        "urls": {
            "get": "/v1/jobs/dec_1",
            "events": "/v1/jobs/dec_1/events",
            "cancel": "/v1/jobs/dec_1/cancel",
            "deliveries": "/v1/jobs/dec_1/deliveries",
            "audit": "/v1/jobs/dec_1/audit",
        },
    }


def test_a_job_that_runs_has_no_place_in_the_queue() -> None:
    shown = job(RUNNING, position=1)
    assert "queue_position" not in shown
    assert shown["started_at"] == "1970-01-01T00:16:41.250Z"
    assert "result" not in shown
    assert "error" not in shown


def test_a_success_has_the_doors_own_body_and_says_until_when_it_is_kept() -> None:
    shown = job(ENDED)
    assert shown["result"] == BODY
    assert "error" not in shown
    assert shown["expires_at"] == "1970-01-01T01:16:45.000Z"
    assert shown["progress"] == {"stage": 2, "stages": 3, "reads_done": 6, "reads_planned": 6}


def test_a_list_shows_a_success_without_its_result() -> None:
    assert "result" not in job(ENDED, whole=False)


def test_a_job_without_an_answer_says_why() -> None:
    shown = job(failed("failed", MOVED), whole=False)
    assert shown["error"] == ERROR
    assert "result" not in shown


def test_metadata_comes_back_as_it_was_sent() -> None:
    metadata = {"ticket": 7, "nested": {"a": [None, "ü"]}}
    assert job({**QUEUED, "metadata": orjson.dumps(metadata)})["metadata"] == metadata


def test_the_events_of_a_whole_life_are_numbered_from_one() -> None:
    assert told(ENDED) == [
        (1, "queued"),
        (2, "started"),
        (3, "stage"),
        (4, "progress"),
        (5, "progress"),
        (6, "progress"),
        (7, "stage"),
        (8, "done"),
    ]


def test_an_event_keeps_its_number_and_its_words_whenever_it_is_looked_at() -> None:
    looks = [events_of("dec_1", fields) for fields in (QUEUED, RUNNING, MOVED, ENDED)]
    for earlier, later in pairwise(looks):
        assert same(earlier, later[: len(earlier)])
        assert len(later) > len(earlier)


def test_events_say_when_and_how_far() -> None:
    (_, _, stage, first, *_, last, done) = events_of("dec_1", ENDED)
    assert stage.data == {"at": "1970-01-01T00:16:41.250Z", "stage": 1, "stages": 3}
    assert first.data == {
        "at": "1970-01-01T00:16:42.000Z",
        "stage": 1,
        "stages": 3,
        "reads_done": 2,
        "reads_planned": 4,
    }
    assert last.data["stage"] == 2
    assert orjson.loads(orjson.dumps(done.data)) == job(ENDED)


def test_a_job_that_ends_in_the_queue_was_never_started() -> None:
    assert told(failed("canceled")) == [(1, "queued"), (2, "done")]
