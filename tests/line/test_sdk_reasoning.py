"""The SDK on a real stack: a model becomes a plan, then a value, each field of which has its evidence."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, assert_type

import httpx2
import pytest
from pydantic import BaseModel, Field, model_validator

from client import (
    Alone,
    AsyncCanvass,
    BadRequest,
    Canceled,
    Canvass,
    CheckFailed,
    Decision,
    Expired,
    InvalidValue,
    ModelRejected,
    NotFound,
    Span,
    StillRunning,
    Unauthorized,
)
from client.stack import Stack

ADMIN = "an admin key for the tests"
TEXT = "Order INV-1042 of Ada: two chairs and a table. Please hurry."

RULES: dict[str, Any] = {
    "rules": [
        {"phrase": "Is it urgent", "state_contains": "Please hurry", "labels": {"yes": 0.9}},
        {"phrase": "Is it urgent", "labels": {"yes": 0.1}},
        {"phrase": "Which team", "labels": {"sales": 0.75, "support": 0.25}},
        {"phrase": "The order number", "span": "INV-1042"},
        {"phrase": "Each thing", "spans": ["chairs", "table"]},
        {"phrase": "A discount", "labels": {"no": 0.8}},
        {"phrase": "How happy", "labels": {"4": 0.75, "3": 0.25}},
        {"phrase": "paint", "labels": {"yes": 0.6}},
        {"phrase": "wood", "labels": {"yes": 0.3}},
        {"phrase": "A reply", "object": '"We are on it."'},
        {"phrase": "Something broken", "object": '"half a te'},
        {"phrase": "The price", "object": "12.5"},
    ]
}


class Order(BaseModel):
    """An order."""

    urgent: bool = Field(description="Is it urgent?")
    team: Literal["sales", "support"] = Field(description="Which team?")
    number: Span = Field(description="The order number")
    things: list[Span] = Field(description="Each thing")
    discount: Annotated[int, Field(ge=1, le=5)] | None = Field(description="A discount")
    happy: int = Field(ge=1, le=5, description="How happy?")
    about: list[Literal["paint", "wood"]]
    reply: str = Field(description="A reply")
    version: Literal["v1"]


class Urgent(BaseModel):
    urgent: bool = Field(description="Is it urgent?")


class Slow(BaseModel):
    """Six questions, each of which sees those before it: 2.4 s on the slow stack."""

    a: bool
    b: bool
    c: bool
    d: bool
    e: bool
    f: bool


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that API keys may be made of."""
    path: Path = tmp_path_factory.mktemp("shop") / "script.json"
    path.write_text(json.dumps(RULES))
    env = {"CANVASS_ADMIN_KEY": ADMIN}
    with Stack(engines=f"script:{path}", engine_args=("--latency", "20,0,1000"), env=env) as running:
        yield running


def made(stack: Stack, **limits: int) -> str:
    body, headers = {"name": "a test", **limits}, {"authorization": f"Bearer {ADMIN}"}
    response = httpx2.post(f"{stack.url}/v1/keys", json=body, headers=headers)
    assert response.status_code == 201, response.text
    return str(response.json()["key"])


@pytest.fixture(scope="module")
def key(shop: Stack) -> str:
    return made(shop)


@pytest.fixture
def canvass(shop: Stack, key: str) -> Iterator[Canvass]:
    with Canvass(shop.url, api_key=key) as client:
        yield client


def check_order(decision: Decision[Order]) -> None:
    assert decision.value == Order(
        urgent=True,
        team="sales",
        number=Span(text="INV-1042", start=6, end=14),
        things=[Span(text="chairs", start=27, end=33), Span(text="table", start=40, end=45)],
        discount=None,
        happy=4,
        about=["paint"],
        reply="We are on it.",
        version="v1",
    )
    of = decision.of
    assert (of("urgent").kind, of("urgent").confidence) == ("read", 0.9)
    assert of("urgent").distribution == {"yes": 0.9, "no": 0.1}
    assert of("team").distribution == {"sales": 0.75, "support": 0.25}
    assert (of("number").kind, of("number").start, of("number").end) == ("span", 6, 14)
    assert [item["start"] for item in of("things").items or ()] == [27, 40]
    assert of("discount").distribution == {"yes": 0.2, "no": 0.8}
    assert of("happy").expectation == pytest.approx(3.75)
    assert of("about").distribution == {"paint": 0.6, "wood": 0.3}
    assert (of("reply").kind, of("reply").attempts, of("reply").finish_reason) == ("generated", 1, "stop")
    assert of("version").kind == "fixed"
    assert {of(name).model for name in ("urgent", "number", "reply")} == {"script"}


def test_every_kind_of_field_arrives_with_its_evidence(canvass: Canvass) -> None:
    decision = canvass.decide(Order, TEXT)
    assert_type(decision, Decision[Order])
    check_order(decision)
    assert decision.usage.input_tokens > decision.usage.output_tokens > 0
    assert canvass.job(decision.job_id)["status"] == "succeeded"


def test_the_client_for_a_loop_gets_the_same(shop: Stack, key: str) -> None:
    async def decided() -> Decision[Order]:
        async with AsyncCanvass(shop.url, api_key=key) as client:
            return await client.decide(Order, TEXT)

    check_order(asyncio.run(decided()))


def test_a_state_may_be_a_conversation(canvass: Canvass) -> None:
    messages = [{"role": "user", "content": "Please hurry."}, {"role": "assistant", "content": "We do."}]
    assert canvass.decide(Urgent, messages=messages).value.urgent
    assert not canvass.decide(Urgent, messages=messages[1:]).value.urgent


def test_what_was_submitted_is_found_again_by_its_id(shop: Stack, key: str) -> None:
    with Canvass(shop.url, api_key=key) as client:
        id = client.submit(Order, TEXT, metadata={"order": 1042}).id
    with Canvass(shop.url, api_key=key) as client:
        check_order(client.wait(id, Order))
        assert client.job(id)["metadata"] == {"order": 1042}


def test_an_audit_has_the_reads_the_schemas_version_and_the_checks(canvass: Canvass) -> None:
    checks = {
        "polite": lambda order: "on it" in order.reply,
        "calm": lambda order: "urgent" if order.urgent else None,
    }
    decision = canvass.decide(
        Order, TEXT, audit=True, schema_version="2026-11", checks=checks, on_check_failure="record"
    )
    first, *rest = canvass.audit(decision.job_id)
    assert (first["type"], first["schema_version"]) == ("decision", "2026-11")
    reads = [one for one in rest if one["type"] == "read"]
    assert {"label", "span", "list", "object"} == {one["kind"] for one in reads}
    told = {one["name"]: (one["passed"], one["message"]) for one in rest if one["type"] == "check"}
    assert told == {"polite": (True, ""), "calm": (False, "urgent")}
    with pytest.raises(CheckFailed, match="calm: urgent"):
        canvass.wait(decision.job_id, Order, checks=checks)


def test_a_decision_without_an_audit_has_none(canvass: Canvass) -> None:
    with pytest.raises(NotFound, match="not_audited"):
        canvass.audit(canvass.decide(Urgent, TEXT).job_id)


def test_what_the_models_own_rules_reject_is_told_and_recorded(canvass: Canvass) -> None:
    class Priced(BaseModel):
        price: float = Field(description="The price")

        @model_validator(mode="after")
        def _is_cheap(self) -> Priced:
            if self.price > 10:
                raise ValueError("no more than 10")
            return self

    with pytest.raises(ModelRejected, match="no more than 10") as told:
        canvass.decide(Priced, TEXT, audit=True)
    assert told.value.value == {"price": 12.5}
    assert told.value.evidence["/price"].kind == "generated"
    check = canvass.audit(told.value.job_id)[-1]
    assert (check["type"], check["name"], check["passed"]) == ("check", "Priced", False)


def test_a_value_that_cannot_be_written_says_which_field(canvass: Canvass) -> None:
    class Broken(BaseModel):
        urgent: bool = Field(description="Is it urgent?")
        text: str = Field(description="Something broken")

    with pytest.raises(InvalidValue, match="/text: ") as told:
        canvass.decide(Broken, TEXT)
    assert told.value.errors[0]["path"] == "/text"
    assert told.value.evidence["/text"].attempts == 2
    assert told.value.evidence["/urgent"].confidence == 0.9
    assert canvass.job(told.value.job_id)["status"] == "succeeded"


def test_a_model_that_the_server_cannot_compile_is_refused_with_a_path(canvass: Canvass) -> None:
    class Impossible(BaseModel):
        short: str = Field(json_schema_extra={"x-canvass": {"max_tokens": 0}})

    with pytest.raises(BadRequest, match="max_tokens") as told:
        canvass.decide(Impossible, TEXT)
    assert told.value.path.startswith("schema")
    with pytest.raises(BadRequest, match="max_tokens") as compiled:
        canvass.compile(Impossible)
    assert (compiled.value.code, compiled.value.path) == (told.value.code, told.value.path)
    assert str(compiled.value) == str(told.value)


def test_a_wrong_key_is_told_as_one(shop: Stack, key: str) -> None:
    with Canvass(shop.url, api_key="wrong") as client, pytest.raises(Unauthorized) as told:
        client.decide(Urgent, TEXT)
    assert told.value.status == 401


class LosesTheFirst(httpx2.HTTPTransport):
    """Sends everything on, and loses the first response."""

    lost = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = super().handle_request(request)
        if not self.lost:
            self.lost += 1
            response.close()
            raise httpx2.ReadError("the connection was lost", request=request)
        return response


def test_a_request_whose_answer_was_lost_finds_its_decision_again(shop: Stack) -> None:
    key, transport = made(shop), LosesTheFirst()
    with httpx2.Client(transport=transport) as http:
        decision = Canvass(shop.url, api_key=key, http_client=http).decide(Urgent, TEXT)
    assert transport.lost == 1
    headers = {"authorization": f"Bearer {key}"}
    jobs = httpx2.get(f"{shop.url}/v1/jobs", headers=headers).json()["data"]
    assert [job["id"] for job in jobs] == [decision.job_id]


class HurriesTheFirst(httpx2.HTTPTransport):
    """Sends everything on, and gives the first response too little time."""

    sent = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if not self.sent:
            request.extensions["timeout"] = {**request.extensions["timeout"], "read": 0.3}
        self.sent += 1
        return super().handle_request(request)


def test_a_request_that_still_waits_is_not_made_a_second_one(slow: Stack) -> None:
    transport = HurriesTheFirst()
    with httpx2.Client(transport=transport) as http:
        client = Canvass(slow.url, http_client=http, retries=1)
        decision = client.decide(Slow, TEXT, metadata={"test": "hurries"})
    assert transport.sent > 2
    jobs = httpx2.get(f"{slow.url}/v1/jobs", params={"limit": 100}).json()["data"]
    assert [job["id"] for job in jobs if job["metadata"] == {"test": "hurries"}] == [decision.job_id]


STATES = [TEXT if number % 3 else f"Order {number}. No hurry." for number in range(60)]


def test_a_map_over_many_states_has_each_result_once(canvass: Canvass) -> None:
    results = list(canvass.map(Urgent, iter(STATES), concurrency=8))
    assert sorted(result.index for result in results) == list(range(60))
    assert all(result.value.urgent == bool(result.index % 3) for result in results)
    assert len({result.decision.job_id for result in results if result.decision}) == 60


def test_a_map_keeps_within_what_its_key_may_have_open(shop: Stack) -> None:
    key = made(shop, most_open=1)
    with Canvass(shop.url, api_key=key) as client:
        results = list(client.map(Urgent, STATES[:6], concurrency=3))
    assert [result.error for result in results] == [None] * 6


def test_a_map_on_a_loop_takes_states_as_they_come(shop: Stack, key: str) -> None:
    async def states() -> Any:
        for state in STATES[:12]:
            await asyncio.sleep(0.01)
            yield state

    async def mapped() -> list[bool]:
        async with AsyncCanvass(shop.url, api_key=key) as client:
            found = [result async for result in client.map(Urgent, states(), concurrency=4)]
        return [result.value.urgent for result in sorted(found, key=lambda result: result.index)]

    assert asyncio.run(mapped()) == [bool(number % 3) for number in range(12)]


def test_a_decision_that_outlasts_the_longest_wait_is_followed(
    slow: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Canvass(slow.url) as client:
        monkeypatch.setattr(client._server, "slice_s", 1.0)
        decision = client.decide(Slow, TEXT)
    assert set(decision.evidence) == {"/a", "/b", "/c", "/d", "/e", "/f"}


def test_a_call_that_gives_up_leaves_the_job_to_be_waited_for_or_canceled(slow: Stack) -> None:
    with Canvass(slow.url) as client:
        with pytest.raises(StillRunning) as told:
            client.decide(Slow, TEXT, timeout=0.5)
        assert client.wait(told.value.job_id, Slow).job_id == told.value.job_id
        submitted = client.submit(Slow, TEXT)
        assert submitted.status() in ("queued", "running")
        submitted.cancel()
        with pytest.raises(Canceled):
            submitted.wait()


def test_a_deadline_that_passes_is_told_as_one_and_not_tried_again(slow: Stack) -> None:
    with Canvass(slow.url) as client, pytest.raises(Expired) as told:
        client.decide(Slow, TEXT, deadline_ms=500)
    assert told.value.job["status"] == "expired"


def test_fields_that_stand_alone_are_read_side_by_side(slow: Stack) -> None:
    class Apart(BaseModel):
        a: Annotated[bool, Alone]
        b: Annotated[bool, Alone]
        c: bool

    with Canvass(slow.url) as client:
        assert client.compile(Apart)["stages"] == [["/a", "/b"], ["/c"]]
        assert len(client.compile(Slow)["stages"]) == 6


MODULE = """
from pydantic import BaseModel, Field
from client import Span

class Ticket(BaseModel):
    urgent: bool = Field(description="Is it urgent?")
    number: Span | None = Field(description="The order number")
    reply: str

class Bad(BaseModel):
    short: str = Field(json_schema_extra={"x-canvass": {"max_tokens": 0}})

class Empty(BaseModel):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tickets.py").write_text(MODULE)
    (tmp_path / "state.txt").write_text(TEXT)
    return tmp_path


def explained(stack: Stack, key: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "client", "explain", "--url", stack.url, *arguments]
    env = {**os.environ, "CANVASS_KEY": key}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60)


def test_the_command_explains_a_model_of_this_folder(shop: Stack, key: str, folder: Path) -> None:
    told = explained(shop, key, folder, "tickets:Ticket", "--state", "state.txt")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("Ticket: 3 fields, 3 questions, 3 stages, 3 reads\n")
    rows = [line.split() for line in told.stdout.splitlines() if line.strip().startswith("/")]
    assert [(row[0], row[1]) for row in rows] == [
        ("/urgent", "read,"),
        ("/number", "span,"),
        ("/reply", "generated,"),
    ]


def test_the_command_tells_the_plan_as_json_too(shop: Stack, key: str, folder: Path) -> None:
    told = explained(shop, key, folder, "tickets:Ticket", "--json")
    plan = json.loads(told.stdout)
    assert plan["stages"] == [["/urgent"], ["/number"], ["/reply"]]
    assert plan["reads"]["all"] == 3


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tickets", "names no model"),
        ("nowhere:Ticket", "no module 'nowhere'"),
        ("tickets:Nothing", "no Pydantic model"),
        ("tickets:Bad", "max_tokens"),
    ],
)
def test_the_command_says_in_a_sentence_what_it_cannot_explain(
    shop: Stack, key: str, folder: Path, name: str, said: str
) -> None:
    told = explained(shop, key, folder, name)
    assert told.returncode == 1
    assert said in told.stderr
    assert "Traceback" not in told.stderr


def test_the_command_says_what_is_wrong_with_a_schema_once(shop: Stack, key: str, folder: Path) -> None:
    told = explained(shop, key, folder, "tickets:Empty")
    assert told.returncode == 1
    assert told.stderr.startswith("422 schema_closed: schema: ")
    assert told.stderr.count("schema: ") == 1


def test_the_command_tells_of_its_own_option_where_no_server_answers(shop: Stack, folder: Path) -> None:
    told = explained(shop, "", folder, "tickets:Ticket", "--url", "http://127.0.0.1:9")
    assert told.returncode == 1
    assert "Cannot reach Canvass" in told.stderr
    assert "--url" in told.stderr
    assert "base_url" not in told.stderr
