"""Audits on a real stack: what a decision read, kept as long as its job and for its owner alone."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest
import redis
from redis.asyncio import Redis

from client.stack import Stack
from tests.line.conftest import ask_at
from tests.line.job_support import ASYNC, cancel, job, submit, until, until_status
from workers.settings import Settings
from workers.store.audits import MOST_CHECKS, Audits
from workers.store.store import Store

ADMIN = {"authorization": "Bearer an admin key for the tests"}
RETENTION_S = 3
STATE = "Dana Smith of Acme Inc. ordered two red chairs."
TOPIC = {
    "type": "object",
    "properties": {"topic": {"type": "string", "minLength": 3}},
    "required": ["topic"],
}
URGENT = {"type": "noul", "instructions": "Is it urgent?"}
EVERYTHING: dict[str, Any] = {
    "urgent": URGENT,
    "team": {"type": "choice", "instructions": "Which team?", "criteria": {"sales": None, "support": None}},
    "bad": {"type": "score", "instructions": "How bad?", "criteria": ["not", "very"]},
    "who": {"type": "span", "instructions": "Who ordered?", "depends_on": ["urgent"]},
    "names": {"type": "spans", "instructions": "Which names?"},
    "about": {
        "type": "object",
        "instructions": "Right at last?",
        "criteria": TOPIC,
        "depends_on": ["who"],
    },
    "never": {"type": "noul", "instructions": "Is it calm?", "ask_if": {"urgent": False}},
}

RULES: dict[str, Any] = {
    "rules": [
        {"phrase": "Is it urgent", "labels": {"yes": 0.75}},
        {"phrase": "Which team", "labels": {"sales": 0.5, "support": 0.25}},
        {"phrase": "How bad", "labels": {"1": 0.75}},
        {"phrase": "Who ordered", "span": "Dana Smith"},
        {"phrase": "Which names", "spans": ["Dana Smith", "Acme Inc."]},
        {"phrase": "Right at last", "state_contains": "was not valid", "object": {"topic": "chairs"}},
        {"phrase": "Right at last", "object": {"topic": "ch"}, "thought": "Chairs are meant."},
        {"phrase": "Is it slow", "fault": "slow", "labels": {"yes": 0.5}},
        {"phrase": "Is it shaky", "fault": "500", "times": 1, "labels": {"yes": 0.5}},
        {"phrase": "Does it fail", "fault": "500", "labels": {"yes": 0.5}},
    ]
}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("audits") / "script.json"
    path.write_text(json.dumps(RULES))
    return f"script:{path}"


@pytest.fixture(scope="module")
def stack(script: str) -> Iterator[Stack]:
    env = {"CANVASS_SHARD_READS": "16"}
    with Stack(engines=script, engine_args=("--max-model-len", "8192"), env=env) as running:
        yield running


@pytest.fixture(scope="module")
def brief(script: str) -> Iterator[Stack]:
    """A stack that keeps little for long, and gives keys away."""
    env = {
        "CANVASS_RETENTION_S": str(RETENTION_S),
        "CANVASS_ADMIN_KEY": "an admin key for the tests",
        "CANVASS_DEADLINE_S": "20",
    }
    with Stack(engines=script, env=env) as running:
        yield running


Line = dict[str, Any]


def audited(stack: Stack, headers: Any = None, **fields: Any) -> str:
    """The id of a decision that was answered and audited."""
    body = {"model": "jev-latest", "state": STATE, "questions": {"urgent": URGENT}, "audit": True, **fields}
    response = httpx2.post(f"{stack.url}/v1/systemone", json=body, headers=headers, timeout=60)
    assert response.status_code == 200, response.text
    return str(response.headers["x-typesafe-request-id"])


def audit(stack: Stack, id: str, headers: Any = None) -> httpx2.Response:
    return httpx2.get(f"{stack.url}/v1/jobs/{id}/audit", headers=headers, timeout=30)


def lines(stack: Stack, id: str, headers: Any = None) -> list[Line]:
    response = audit(stack, id, headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("application/x-ndjson")
    assert response.headers["cache-control"] == "no-store"
    assert response.text.endswith("\n")
    return [json.loads(line) for line in response.text.splitlines()]


def check(stack: Stack, id: str, *checks: Any, headers: Any = None) -> httpx2.Response:
    body = {"checks": list(checks)}
    return httpx2.post(f"{stack.url}/v1/jobs/{id}/audit", json=body, headers=headers, timeout=30)


def code(response: httpx2.Response) -> tuple[int, str]:
    assert response.headers["content-type"].startswith("application/problem+json")
    return response.status_code, response.json()["code"]


def test_an_audit_tells_the_decision_and_every_read(stack: Stack) -> None:
    id = audited(stack, questions=EVERYTHING, schema_version="orders-7", seed=9)
    head, *reads = lines(stack, id)
    assert (head["type"], head["id"], head["status"]) == ("decision", id, "succeeded")
    assert (head["door"], head["model"], head["schema_version"]) == ("systemone", "jev-latest", "orders-7")
    assert head["questions"] == list(EVERYTHING)
    assert head["state_sha256"] == sha256(STATE.encode()).hexdigest()
    assert head["created_at"] <= head["ended_at"]
    told = [(read["questions"], read["kind"], read["attempt"], read["draw"]) for read in reads]
    assert sorted(told) == [
        (["about"], "object", 0, 0),
        (["about"], "object", 1, 0),
        (["bad"], "label", 0, 0),
        (["names"], "list", 0, 0),
        (["names"], "list", 0, 1),
        (["team"], "label", 0, 0),
        (["urgent"], "label", 0, 0),
        (["who"], "span", 0, 0),
    ]
    for read in reads:
        assert read["type"] == "read"
        assert (read["engine"], read["model"]) == (stack.engine_urls[0], "script")
        assert abs(read["at"] - time.time()) < 60
        assert read["ms"] > 0
        assert len(read["prompt_sha256"]) == 64
    by_kind = {(read["questions"][0], read["attempt"]): read for read in reads}
    assert by_kind["urgent", 0]["logprobs"]["urgent"]["yes"] == pytest.approx(-0.287682, abs=1e-4)
    assert by_kind["urgent", 0]["canvas"]["seed"] == 9
    assert list(by_kind["team", 0]["logprobs"]["team"]) == ["sales", "support"]
    assert list(by_kind["bad", 0]["logprobs"]["bad"]) == ["0", "1"]
    (piece,) = by_kind["who", 0]["items"]
    assert STATE[piece["start"] : piece["end"]] == "Dana Smith"
    assert by_kind["about", 0]["text"] == '{"topic":"ch"}'
    assert json.loads(by_kind["about", 1]["text"]) == {"topic": "chairs"}
    assert json.loads(by_kind["about", 1]["grammar"])["required"] == ["topic"]


def test_the_same_decision_has_the_same_hashes_and_another_state_others(stack: Stack) -> None:
    def hashes(state: str) -> list[tuple[str, str]]:
        id = audited(stack, state=state, samples=2)
        return [(read["prompt_sha256"], read["canvas"]["sha256"]) for read in lines(stack, id)[1:]]

    first, again, other = hashes(STATE), hashes(STATE), hashes(STATE + "!")
    assert first == again
    assert len({canvas for _, canvas in first}) == 2
    assert {prompt for prompt, _ in first}.isdisjoint({prompt for prompt, _ in other})


def test_reads_of_many_shards_are_all_in_the_audit(stack: Stack) -> None:
    questions = {f"q{number}": {**URGENT, "instructions": f"Is it urgent? ({number})"} for number in range(4)}
    _, *reads = lines(stack, audited(stack, questions=questions, samples=16))
    assert len(reads) == 64
    assert len({read["id"] for read in reads}) == 64
    assert len({read["prompt_sha256"] for read in reads}) == 4
    assert len({read["canvas"]["sha256"] for read in reads}) == 16


def test_requests_that_came_to_nothing_are_told(stack: Stack) -> None:
    once = {"type": "noul", "instructions": "Is it shaky?"}
    _, read = lines(stack, audited(stack, questions={"once": once}))
    (tried,) = read["tried"]
    assert tried["engine"] == stack.engine_urls[0]
    assert "500" in tried["why"]
    assert "logprobs" in read


def test_a_thought_is_in_the_audit(stack: Stack) -> None:
    id = audited(stack, questions={"about": EVERYTHING["about"] | {"depends_on": []}}, think=40)
    _, thought, *objects = lines(stack, id)
    assert (thought["kind"], thought["text"]) == ("thought", "Chairs are meant.")
    assert [read["kind"] for read in objects] == ["object", "object"]


def test_a_schema_and_its_version_are_in_the_audit(stack: Stack) -> None:
    schema = {
        "type": "object",
        "properties": {"urgent": {"type": "boolean", "description": "Is it urgent?"}},
        "required": ["urgent"],
    }
    body = {"model": "jev-latest", "state": STATE, "schema": schema, "schema_version": "v1", "audit": True}
    response = httpx2.post(f"{stack.url}/v1/systemone", json=body, timeout=60)
    assert response.status_code == 200, response.text
    head, read = lines(stack, response.headers["x-typesafe-request-id"])
    assert head["schema_version"] == "v1"
    assert head["schema_sha256"] == sha256(json.dumps(schema).encode()).hexdigest()
    assert next(iter(read["logprobs"].values()))["yes"] == pytest.approx(-0.287682, abs=1e-4)


def test_audits_of_the_other_doors_are_kept_too(stack: Stack) -> None:
    schema = {"questions": [{"id": "urgent", **URGENT}], "audit": True}
    chat = {
        "model": "jev-latest",
        "messages": [
            {"role": "system", "content": json.dumps(schema)},
            {"role": "user", "content": STATE},
        ],
    }
    response = httpx2.post(f"{stack.url}/v1/chat/completions", json=chat, timeout=60)
    assert response.status_code == 200, response.text
    id = response.headers["x-request-id"]
    head, read = lines(stack, id)
    assert (head["door"], read["kind"]) == ("chat", "label")


def test_checks_stand_beside_the_reads_and_one_of_a_name_takes_anothers_place(stack: Stack) -> None:
    id = audited(stack)
    first = check(stack, id, {"name": "cap", "passed": False, "message": "over 20 %"})
    assert first.status_code == 201, first.text
    assert first.json() == {"checks": [{"name": "cap", "passed": False, "message": "over 20 %"}]}
    assert (
        check(stack, id, {"name": "ünits", "passed": True}, {"name": "a:b", "passed": True}).status_code
        == 201
    )
    before = [line for line in lines(stack, id) if line["type"] == "check"]
    assert [(line["name"], line["passed"]) for line in before] == [
        ("a:b", True),
        ("cap", False),
        ("ünits", True),
    ]
    assert check(stack, id, {"name": "cap", "passed": True}).status_code == 201
    after = {line["name"]: line for line in lines(stack, id) if line["type"] == "check"}
    assert (after["cap"]["passed"], after["cap"]["message"]) == (True, None)
    assert after["cap"]["at"] >= before[1]["at"]
    assert after["ünits"] == before[2]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"checks": []},
        {"checks": [{"name": "", "passed": True}]},
        {"checks": [{"name": "a"}]},
        {"checks": [{"name": "a", "passed": "yes"}]},
        {"checks": [{"name": "a", "passed": 1}]},
        {"checks": [{"name": "a", "passed": True, "more": 1}]},
        {"checks": [{"name": "a" * 201, "passed": True}]},
        {"checks": [{"name": "a", "passed": True, "message": "x" * 2001}]},
        {"checks": [{"name": str(number), "passed": True} for number in range(101)]},
    ],
)
def test_checks_that_are_none_are_refused(stack: Stack, body: Any) -> None:
    id = audited(stack)
    response = httpx2.post(f"{stack.url}/v1/jobs/{id}/audit", json=body)
    assert code(response) == (422, "invalid_request")
    assert len(lines(stack, id)) == 2


def test_an_audit_has_so_many_checks_and_no_more(stack: Stack) -> None:
    id = audited(stack)
    for first in range(0, MOST_CHECKS - 10, 90):
        some = [{"name": f"c{number}", "passed": True} for number in range(first, first + 90)]
        assert check(stack, id, *some).status_code == 201
    kept = lines(stack, id)
    assert len(kept) == 2 + MOST_CHECKS - 10
    eleven = [{"name": f"new {number}", "passed": True} for number in range(11)]
    assert code(check(stack, id, *eleven)) == (422, "too_many_checks")
    assert lines(stack, id) == kept, "none of them was kept"
    again = {"name": "c0", "passed": False}
    assert check(stack, id, again, *eleven[:10]).status_code == 201
    assert code(check(stack, id, eleven[10])) == (422, "too_many_checks")
    assert check(stack, id, again).status_code == 201
    assert len(lines(stack, id)) == 2 + MOST_CHECKS


def test_half_of_a_surrogate_pair_in_a_check_is_refused(stack: Stack) -> None:
    id = audited(stack)
    content = b'{"checks": [{"name": "\\ud800", "passed": true}]}'
    response = httpx2.post(
        f"{stack.url}/v1/jobs/{id}/audit", content=content, headers={"content-type": "application/json"}
    )
    assert response.status_code == 422, response.text


def test_a_job_without_an_audit_says_so(stack: Stack) -> None:
    id = audited(stack, audit=False)
    assert code(audit(stack, id)) == (404, "not_audited")
    assert code(check(stack, id, {"name": "a", "passed": True})) == (404, "not_audited")


def test_a_job_that_nobody_has_is_not_found(stack: Stack) -> None:
    assert code(audit(stack, "dec_none")) == (404, "not_found")
    assert code(check(stack, "dec_none", {"name": "a", "passed": True})) == (404, "not_found")


def test_a_job_that_runs_has_no_audit_yet(stack: Stack) -> None:
    slow = {"questions": {"q": {"type": "noul", "instructions": "Is it slow?"}}, "audit": True}
    id = submit(stack.url, slow)
    assert code(audit(stack, id)) == (409, "not_done")
    assert code(check(stack, id, {"name": "a", "passed": True})) == (409, "not_done")
    assert job(stack.url, id, wait=30)["status"] == "succeeded"
    assert len(lines(stack, id)) == 2


def test_a_decision_that_was_canceled_is_audited_as_far_as_it_came(stack: Stack) -> None:
    slow = {"type": "noul", "instructions": "Is it slow?", "depends_on": ["urgent"]}
    id = submit(stack.url, {"questions": {"urgent": URGENT, "slow": slow}, "audit": True})
    until(lambda: job(stack.url, id)["progress"]["reads_done"] == 1, 20)
    cancel(stack.url, id)
    until_status(stack.url, id, "canceled", 20)
    head, *reads = lines(stack, id)
    assert head["status"] == "canceled"
    assert [read["questions"] for read in reads] == [["urgent"]]


def test_a_failed_decision_is_audited_with_what_failed(stack: Stack) -> None:
    """Its second prompt is too long: what it read before is in the audit, and the job says why it failed."""
    long = {"type": "noul", "instructions": "word " * 9000, "depends_on": ["urgent"]}
    body = {"questions": {"urgent": URGENT, "long": long}, "audit": True}
    id = submit(stack.url, body)
    ended = job(stack.url, id, wait=30)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "max_tokens_exceeded")
    head, *reads = lines(stack, id)
    assert (head["status"], [read["questions"] for read in reads]) == ("failed", [["urgent"]])


def test_an_audit_goes_with_its_job(brief: Stack) -> None:
    fail = {"type": "noul", "instructions": "Does it fail?"}
    headers = {"prefer": "respond-async"}
    body = {"model": "jev-latest", "state": STATE, "questions": {"fail": fail}, "audit": True}
    key = made(brief, "first")
    failed = httpx2.post(f"{brief.url}/v1/systemone", json=body, headers={**headers, **key}, timeout=30)
    assert failed.status_code == 202, failed.text
    id = audited(brief, key)
    name = f"canvass:audit:{id}"
    with redis.Redis.from_url(brief.redis_url) as connection:
        assert 0 < int(connection.ttl(name)) <= RETENTION_S
        assert check(brief, id, {"name": "a", "passed": True}, headers=key).status_code == 201
        assert 0 < int(connection.ttl(name)) <= RETENTION_S
        time.sleep(RETENTION_S + 1)
        assert audit(brief, id, key).status_code == 404
        late = check(brief, id, {"name": "b", "passed": True}, headers=key)
        assert late.status_code == 404
        assert not connection.exists(name)
    broken = f"{brief.url}/v1/jobs/{failed.json()['id']}"
    ended = httpx2.get(broken, params={"wait": 40}, headers=key, timeout=60).json()
    assert ended["status"] in ("failed", "expired"), ended
    head, *reads = lines(brief, failed.json()["id"], key)
    assert head["status"] == ended["status"]
    assert [read["error"]["code"] for read in reads] == (["no_engine"] if ended["status"] == "failed" else [])


def made(stack: Stack, name: str) -> dict[str, str]:
    """The header of a new key."""
    response = httpx2.post(f"{stack.url}/v1/keys", json={"name": name}, headers=ADMIN)
    assert response.status_code == 201, response.text
    header = {"authorization": f"Bearer {response.json()['key']}"}
    until(lambda: httpx2.get(f"{stack.url}/v1/jobs", headers=header).status_code == 200, 5)
    return header


def test_a_check_of_an_audit_that_has_just_gone_brings_nothing_back(stack: Stack) -> None:
    """What was brought back would have no expiry."""

    async def story() -> tuple[bool, bytes | None, int, bool, int]:
        async with Redis.from_url(stack.redis_url) as connection:
            store = Store(connection, Settings())
            audits = Audits(store, Settings())
            late = await audits.add_checks("gone", {"a": b"{}"})
            lines = await audits.lines("gone")
            left = int(await connection.exists(store.key("audit", "gone")))
            await audits.keep("there", b"{}")
            kept = await audits.add_checks("there", {"a": b"{}"})
            expires = int(await connection.ttl(store.key("audit", "there")))
            await store.close()
            return late, lines, left, kept, expires

    late, lines, left, kept, expires = asyncio.run(story())
    assert (late, lines, left) == (False, None, 0)
    assert kept is True
    assert expires > 0


def test_an_audit_is_its_owners_alone(brief: Stack) -> None:
    owner, other = made(brief, "owner"), made(brief, "other")
    id = audited(brief, owner)
    assert audit(brief, id, owner).status_code == 200
    assert code(audit(brief, id, other)) == (404, "not_found")
    assert code(check(brief, id, {"name": "a", "passed": True}, headers=other)) == (404, "not_found")
    assert audit(brief, id).status_code in (401, 403)
    assert audit(brief, id, ADMIN).status_code in (401, 403)
    assert [line["type"] for line in lines(brief, id, owner)] == ["decision", "read"]


def test_the_states_of_a_batch_are_not_audited(stack: Stack) -> None:
    body = {"model": "jev-latest", "states": ["a"], "questions": {"urgent": URGENT}, "audit": True}
    response = httpx2.post(f"{stack.url}/v1/batches", json=body)
    assert response.status_code == 422, response.text
    (error,) = response.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/audit", "not_served")


def test_an_audit_is_asked_for_by_a_boolean(stack: Stack) -> None:
    response = ask_at(stack.url, questions={"urgent": URGENT}, audit="yes")
    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"] == ["body", "audit"]
    assert (
        httpx2.post(
            f"{stack.url}/v1/systemone",
            json={
                "model": "jev-latest",
                "state": "x",
                "questions": {"u": URGENT},
                "schema_version": "v" * 201,
            },
            headers=ASYNC,
        ).status_code
        == 422
    )
