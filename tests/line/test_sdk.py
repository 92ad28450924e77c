"""The official SDK of System One, with nothing changed but its base URL."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import zstandard
from PIL import Image as Pillow
from typesafe_sdk import (
    AsyncTypeSafeClient,
    Box,
    Choice,
    ChoiceAnswer,
    Image,
    Noul,
    NoulAnswer,
    RetryPolicy,
    Score,
    ScoreAnswer,
    SystemOneResponse,
    TypeSafeAuthenticationError,
    TypeSafeBadRequestError,
    TypeSafeClient,
    TypeSafeInternalServerError,
    TypeSafePermissionDeniedError,
    TypeSafeRateLimitError,
    TypeSafeUnprocessableEntityError,
)

from client.stack import Stack

QUESTIONS: dict[str, Noul | Choice | Score] = {
    "urgent": Noul(instructions="Is it urgent?"),
    "team": Choice(instructions="Which team?", criteria={"billing": "Money", "technical": None}),
    "bad": Score(instructions="How bad?", criteria=["fine", "poor", "awful"]),
}
STATE = {"ticket": "My printer is on fire."}


def check(response: SystemOneResponse) -> None:
    urgent, team, bad = (response.answers[id] for id in ("urgent", "team", "bad"))
    assert isinstance(urgent, NoulAnswer)
    assert urgent.noul == 0.9
    assert isinstance(team, ChoiceAnswer)
    assert team.choice == "billing"
    assert isinstance(bad, ScoreAnswer)
    assert bad.score == pytest.approx(1.8, abs=1e-6)
    assert response.usage.input_tokens


def test_the_sync_client_reads_every_answer_type(stack: Stack) -> None:
    with TypeSafeClient(base_url=stack.url, api_key="x") as client:
        check(client.system_one(STATE, QUESTIONS))


def test_the_async_client_reads_every_answer_type(stack: Stack) -> None:
    async def ask() -> SystemOneResponse:
        async with AsyncTypeSafeClient(base_url=stack.url, api_key="x") as client:
            return await client.system_one(STATE, QUESTIONS)

    check(asyncio.run(ask()))


def test_both_clients_list_models(stack: Stack) -> None:
    async def listed() -> set[str]:
        async with AsyncTypeSafeClient(base_url=stack.url, api_key="x") as client:
            return {model.name for model in (await client.models.list()).models}

    with TypeSafeClient(base_url=stack.url, api_key="x") as client:
        models = client.models.list().models
    assert {model.name for model in models} == {"script", "jev-latest"} == asyncio.run(listed())
    assert all(time.strptime(model.release_date, "%Y-%m-%d") for model in models)


class Wire(httpx2.HTTPTransport):
    """A transport that keeps what it sent and how often."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[httpx2.Request] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        return super().handle_request(request)


def test_a_long_body_goes_as_zstd(stack: Stack) -> None:
    wire = Wire()
    with TypeSafeClient(base_url=stack.url, api_key="x", transport=wire) as client:
        check(client.system_one({**STATE, "more": "again and " * 300}, QUESTIONS))
    (sent,) = wire.sent
    assert sent.headers["content-encoding"] == "zstd"
    with zstandard.ZstdDecompressor().stream_reader(sent.content) as plain:
        assert json.loads(plain.read())["state"].keys() == {"ticket", "more"}


def test_255_options_are_answered(stack: Stack) -> None:
    many = Choice(instructions="Which of many?", criteria={f"option {n}": None for n in range(255)})
    with TypeSafeClient(base_url=stack.url, api_key="x") as client:
        answer = client.system_one(STATE, {"many": many}).choices["many"]
    assert answer.choice == "option 200"
    assert len(answer.probabilities) == 255


def test_instructions_and_descriptions_may_be_structured(stack: Stack) -> None:
    levels: list[Any] = [{"means": "fine"}, ["poor", {"or": "slow"}], "awful"]
    questions: dict[str, Noul | Choice | Score] = {
        "urgent": Noul(instructions={"ask": "Is it urgent?"}, criteria={"true": ["now", {"by": "noon"}]}),
        "team": Choice(
            instructions=["Which team?", {"only": "one"}],
            criteria={"billing": {"when": "money"}, "technical": ["faults"], "sales": None},
        ),
        "bad": Score(instructions={"ask": "How bad?"}, criteria=levels),
    }
    with TypeSafeClient(base_url=stack.url, api_key="x") as client:
        found = client.system_one(["a", {"list": ["of", "things"]}], questions)
    assert found.nouls["urgent"].noul == 0.9
    assert found.choices["team"].choice == "billing"
    assert found.scores["bad"].legend == dict(enumerate(levels))


def test_any_question_id_and_option_name_comes_back_as_it_was(stack: Stack) -> None:
    names = [
        "a b",
        " ",
        "émoji 🚀 名前",
        'quote"s \\ and /slashes',
        "0",
        "x" * 5000,
        "null",
        "line\nbreak",
        "\x00",
    ]
    with TypeSafeClient(base_url=stack.url, api_key="x") as client:
        found = client.system_one(STATE, {name: Noul(instructions="Is it urgent?") for name in names})
        assert {name: answer.noul for name, answer in found.nouls.items()} == dict.fromkeys(names, 0.9)
        options = Choice(instructions="Which?", criteria=dict.fromkeys(names))
        assert list(client.system_one(STATE, {"a": options}).choices["a"].probabilities) == names


def test_noul_criteria_may_have_one_side(stack: Stack) -> None:
    questions = {
        "yes": Noul(instructions="Is it urgent?", criteria={"true": "It burns"}),
        "no": Noul(instructions="Is it urgent?", criteria={"false": "It can wait"}),
        "alone": Noul(criteria={"true": "Is it urgent"}),
    }
    with TypeSafeClient(base_url=stack.url, api_key="x") as client:
        found = client.system_one(STATE, questions).nouls
    assert {id: answer.noul for id, answer in found.items()} == dict.fromkeys(questions, 0.9)


def test_the_clients_own_default_model_is_served(stack: Stack) -> None:
    wire = Wire()
    with TypeSafeClient(base_url=stack.url, api_key="x", transport=wire, compression=False) as client:
        check(client.system_one(STATE, QUESTIONS))
    assert json.loads(wire.sent[0].content)["model"] == "jev-latest"


def test_a_box_is_refused_with_the_reason(stack: Stack) -> None:
    with (
        TypeSafeClient(base_url=stack.url, api_key="x") as client,
        pytest.raises(TypeSafeBadRequestError, match="box questions need a model that points into images"),
    ):
        client.system_one(STATE, {"dog": Box(instructions="The dog")})


def test_errors_come_as_the_clients_own_types(stack: Stack) -> None:
    with TypeSafeClient(base_url=stack.url, api_key="x") as client:
        with pytest.raises(TypeSafeBadRequestError, match="there is no model"):
            client.system_one(STATE, QUESTIONS, model="gpt-9")
        with pytest.raises(TypeSafeUnprocessableEntityError, match="maybe"):
            client.system_one(
                STATE, QUESTIONS, extra_body={"questions": {"a": {"type": "noul", "ask_if": {"a": "maybe"}}}}
            )


def picture(colour: tuple[int, int, int]) -> bytes:
    out = io.BytesIO()
    Pillow.new("RGB", (8, 8), colour).save(out, "PNG")
    return out.getvalue()


RED, BLUE = picture((255, 0, 0)), picture((0, 0, 255))

ADMIN = "the admin's own"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that knows two images, reads in 1.5 s what is slow, and may be closed by a first key."""
    script: Path = tmp_path_factory.mktemp("sdk") / "script.json"
    rules = [
        {"phrase": "red", "image_sha256": hashlib.sha256(RED).hexdigest(), "labels": {"yes": 0.97}},
        {"phrase": "red", "image_sha256": hashlib.sha256(BLUE).hexdigest(), "labels": {"yes": 0.03}},
    ]
    script.write_text(json.dumps({"rules": rules}))
    env = {"CANVASS_ADMIN_KEY": ADMIN, "CANVASS_SYNC_LIMIT_S": "1"}
    latency = ("--latency", "100,0,1000")
    with Stack(engines=f"script:{script}", engine_args=latency, env=env) as running:
        yield running


IS_RED = {"red": Noul(instructions="Is it red?")}
ONCE = RetryPolicy(max_retries=0)


def test_images_go_as_parts_of_a_form(guarded: Stack, tmp_path: Path) -> None:
    file = tmp_path / "blue.png"
    file.write_bytes(BLUE)
    red, blue = Image(RED), Image(file)
    wire = Wire()
    with TypeSafeClient(base_url=guarded.url, api_key="x", transport=wire) as client:
        assert client.system_one(red, IS_RED).nouls["red"].noul == 0.97
        assert client.system_one({"seen": [blue]}, IS_RED).nouls["red"].noul == 0.03
        asked = {"red": Noul(instructions="Is <it> red?")}
        assert client.system_one("A thing.", asked, assets={"<it>": red}).nouls["red"].noul == 0.97
        with client.attach_assets(red):
            assert client.system_one(f"Seen: {red}", IS_RED).nouls["red"].noul == 0.97
    assert {sent.headers["content-type"].partition(";")[0] for sent in wire.sent} == {"multipart/form-data"}


def test_the_async_client_sends_images_too(guarded: Stack) -> None:
    async def ask() -> float:
        async with AsyncTypeSafeClient(base_url=guarded.url, api_key="x") as client:
            return (await client.system_one(Image(BLUE), IS_RED)).nouls["red"].noul

    assert asyncio.run(ask()) == 0.03


def test_over_the_sync_limit_the_client_gets_a_529(guarded: Stack) -> None:
    stages = {f"q{n}": {"type": "noul", "depends_on": [f"q{n - 1}"] if n else []} for n in range(20)}
    with (
        TypeSafeClient(base_url=guarded.url, api_key="x", retry=ONCE) as client,
        pytest.raises(TypeSafeInternalServerError, match="still worked on") as raised,
    ):
        client.system_one("x", IS_RED, extra_body={"questions": stages})
    assert raised.value.status == 529
    assert raised.value.body["detail"]["error_type"] == "overloaded_error"
    assert raised.value.request_id
    assert float(raised.value.headers["retry-after-ms"]) > 0


def test_keys_and_rates_are_refused_as_the_clients_own_types(guarded: Stack) -> None:
    """The last of the guarded stack's tests: it closes it."""
    admin = {"Authorization": f"Bearer {ADMIN}"}
    made = httpx2.post(f"{guarded.url}/v1/keys", json={"name": "sdk", "rate_per_minute": 2}, headers=admin)
    key = made.json()["key"]
    with TypeSafeClient(base_url=guarded.url, api_key="wrong", retry=ONCE) as client:
        with pytest.raises(TypeSafeAuthenticationError) as refused:
            client.system_one("x", IS_RED)
        assert refused.value.body["detail"]["error_type"] == "authentication_error"
        with pytest.raises(TypeSafeAuthenticationError):
            client.models.list()
    keyless = httpx2.Client(event_hooks={"request": [lambda request: request.headers.pop("authorization")]})
    with (
        TypeSafeClient(base_url=guarded.url, api_key="x", retry=ONCE, http_client=keyless) as client,
        pytest.raises(TypeSafePermissionDeniedError),
    ):
        client.system_one("x", IS_RED)
    with TypeSafeClient(base_url=guarded.url, api_key=key, retry=ONCE) as client:
        client.system_one("x", IS_RED)
        client.system_one("x", IS_RED)
        with pytest.raises(TypeSafeRateLimitError) as limited:
            client.system_one("x", IS_RED)
    assert limited.value.body["detail"]["error_type"] == "rate_limit_error"
    assert limited.value.retry_after_ms
