from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import OpenAI
from PIL import Image
from redis import Redis

from client.stack import Stack


def png(colour: tuple[int, int, int], size: tuple[int, int] = (8, 8), format: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, format)
    return out.getvalue()


RED, BLUE = png((255, 0, 0)), png((0, 0, 255))


def coded(image: bytes) -> str:
    return base64.b64encode(image).decode()


def url(image: bytes) -> str:
    return f"data:image/png;base64,{coded(image)}"


RULES = {
    "rules": [
        {"phrase": "red", "image_sha256": hashlib.sha256(RED).hexdigest(), "labels": {"yes": 0.97}},
        {"phrase": "red", "image_sha256": hashlib.sha256(BLUE).hexdigest(), "labels": {"yes": 0.03}},
        {"phrase": "old", "state_contains": "Already answered", "labels": {"yes": 0.75}},
        {"phrase": "urgent", "state_contains": "smoke means fire", "labels": {"yes": 0.8}},
        {"phrase": "urgent", "thought": "Here smoke means fire.", "labels": {"yes": 0.3}},
    ]
}
QUESTION = {"type": "noul", "instructions": "Is it red?"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    script: Path = tmp_path_factory.mktemp("pictures") / "script.json"
    script.write_text(json.dumps(RULES))
    env = {"CANVASS_MAX_IMAGE_BYTES": "4096", "CANVASS_MAX_IMAGES": "3", "CANVASS_MAX_IMAGE_PIXELS": "10000"}
    with Stack(engines=f"script:{script}", env=env) as running:
        yield running


def ask(stack: Stack, **fields: Any) -> httpx2.Response:
    body = {"model": "jev-latest", "state": "A thing.", "questions": {"a": QUESTION}, **fields}
    return httpx2.post(f"{stack.url}/v1/systemone", json=body, timeout=30)


def noul(response: httpx2.Response, id: str = "a") -> float:
    assert response.status_code == 200, response.text
    return float(response.json()["answers"][id]["noul"])


@pytest.mark.parametrize(("image", "expected"), [(RED, 0.97), (BLUE, 0.03)])
def test_an_image_comes_in_all_three_ways(stack: Stack, image: bytes, expected: float) -> None:
    inline = {"<pic>": {"type": "image", "format": "png", "data_base64": coded(image)}}
    assert noul(ask(stack, state={"seen": "<pic>"}, assets=inline)) == expected
    assert noul(ask(stack, images=[url(image)])) == expected
    assert noul(ask(stack, images=[{"content_type": "image/png", "base64": coded(image)}])) == expected
    request = {
        "model": "jev-latest",
        "state": "Seen: <pic>.",
        "questions": {"a": QUESTION},
        "assets": {"<pic>": {"part": "photo"}},
    }
    form: Any = {"request": (None, json.dumps(request)), "photo": ("p.png", image)}
    assert noul(httpx2.post(f"{stack.url}/v1/systemone", files=form, timeout=30)) == expected


def test_a_placeholder_may_stand_in_a_question(stack: Stack) -> None:
    assets = {"@1": {"type": "image", "data_base64": coded(RED)}}
    question = {"type": "noul", "instructions": "Is @1 red?"}
    assert noul(ask(stack, questions={"a": question}, assets=assets)) == 0.97


@pytest.mark.parametrize("joint", [False, True])
def test_a_later_stage_is_told_what_was_answered(stack: Stack, joint: bool) -> None:
    later = {"type": "noul", "instructions": "Is it old?", "depends_on": ["a"]}
    response = ask(stack, questions={"a": QUESTION, "b": later}, images=[url(RED)], joint=joint)
    assert (noul(response), noul(response, "b")) == (0.97, 0.75)


def test_images_are_kept_once_by_their_content_and_never_in_a_message(stack: Stack) -> None:
    image = png((1, 2, 3))
    for _ in range(3):
        ask(stack, images=[url(image)])
    with Redis.from_url(stack.redis_url) as redis:
        key = f"canvass:image:{hashlib.sha256(image).hexdigest()}"
        assert redis.get(key) == image
        assert 0 < int(redis.ttl(key)) <= 600 + 3600


@pytest.mark.parametrize(
    ("images", "status", "told"),
    [
        (["https://example.com/a.png"], 422, "a data URL in base64"),
        (["data:image/png;base64,!!"], 422, "no base64"),
        (["data:image/png;base64,²¿"], 422, "no base64"),
        ([url(b"hello")], 422, "no image"),
        ([url(b"%PDF-1.7 hello")], 422, "are taken"),
        ([url(RED[:40])], 422, "image"),
        ([url(png((0, 0, 0), (2000, 2000)))], 413, "CANVASS_MAX_IMAGE"),
        ([url(png((9, 9, 9), (101, 100), "BMP"))], 413, "CANVASS_MAX_IMAGE_BYTES"),
        ([url(RED)] * 4, 422, "CANVASS_MAX_IMAGES"),
    ],
)
def test_what_is_no_image_or_too_large_a_one_is_refused(
    stack: Stack, images: list[str], status: int, told: str
) -> None:
    response = ask(stack, images=images)
    assert response.status_code == status, response.text
    assert told in response.text


def test_a_missing_part_and_a_form_without_a_request_are_refused(stack: Stack) -> None:
    assert ask(stack, assets={"x": {"part": "nowhere"}}).status_code == 422
    lonely = httpx2.post(f"{stack.url}/v1/systemone", files={"photo": ("p.png", RED)}, timeout=30)
    assert lonely.status_code == 422
    assert "'request'" in lonely.text


def test_a_part_without_a_filename_is_no_image(stack: Stack) -> None:
    request = {"model": "jev-latest", "state": "<p>", "questions": {"a": QUESTION}}
    request |= {"assets": {"<p>": {"part": "photo"}}}
    form: Any = {"request": (None, json.dumps(request)), "photo": (None, RED)}
    response = httpx2.post(f"{stack.url}/v1/systemone", files=form, timeout=30)
    assert response.status_code == 422
    (entry,) = response.json()["detail"]
    assert entry["loc"] == ["body", "assets", "<p>", "part"]
    assert "is a field, not a file" in entry["msg"]


def test_wrong_images_are_told_with_their_path_in_the_body(stack: Stack) -> None:
    paths: list[tuple[dict[str, Any], list[Any]]] = [
        ({"images": [1]}, ["images", 0]),
        ({"images": [url(RED), url(RED[:-30])]}, ["images", 1]),
        ({"assets": {"<p>": {"data_base64": 1}}}, ["assets", "<p>", "data_base64"]),
        ({"state": "<p>", "assets": {"<p>": {"data_base64": coded(RED[:-30])}}}, ["assets", "<p>"]),
        ({"assets": {"<p>": {"data_base64": coded(RED)}}}, ["assets", "<p>"]),
        ({"state": None, "images": [url(RED)]}, ["state"]),
        ({"state": {"\ue0009\ue000": 1}, "images": [url(RED)]}, ["state"]),
    ]
    for fields, path in paths:
        response = ask(stack, **fields)
        assert response.status_code == 422, response.text
        assert [entry["loc"] for entry in response.json()["detail"]] == [["body", *path]]


def test_a_legend_comes_back_as_it_was_sent(stack: Stack) -> None:
    question = {"type": "score", "instructions": "How bad?", "criteria": ["like <p>", {"as": "<p>"}]}
    assets = {"<p>": {"data_base64": coded(RED)}}
    response = ask(stack, questions={"a": question}, assets=assets)
    assert response.status_code == 200, response.text
    assert response.json()["answers"]["a"]["legend"] == {"0": "like <p>", "1": {"as": "<p>"}}


def test_a_thought_goes_ahead_and_is_told(stack: Stack) -> None:
    urgent = {"a": {"type": "noul", "instructions": "Is it urgent?"}}
    assert noul(ask(stack, questions=urgent)) == 0.3
    response = ask(stack, questions=urgent, think=64, samples=3, diagnostics=True)
    assert noul(response) == 0.8
    diagnostics = response.json()["diagnostics"]
    assert diagnostics["thought"].keys() == {"text", "tokens", "closed", "ms"}
    assert diagnostics["thought"]["text"] == "Here smoke means fire."
    assert diagnostics["thought"]["closed"] is True
    assert [read["kind"] for read in diagnostics["reads"]] == ["thought", "label", "label", "label"]
    assert response.json()["usage"]["output_tokens"] == diagnostics["thought"]["tokens"] + 3


def test_a_thought_that_was_cut_says_so(stack: Stack) -> None:
    urgent = {"a": {"type": "noul", "instructions": "Is it urgent?"}}
    thought = ask(stack, questions=urgent, think=1, diagnostics=True).json()["diagnostics"]["thought"]
    assert (thought["closed"], thought["tokens"]) == (False, 1)


def test_openais_doors_take_images(stack: Stack) -> None:
    with OpenAI(base_url=f"{stack.url}/v1", api_key="-", max_retries=0) as client:
        content: Any = [
            {"type": "input_text", "text": "A thing."},
            {"type": "input_image", "image_url": url(RED)},
        ]
        decision = client.decisions.create(
            model="jev-latest",
            input=[{"role": "user", "content": content}],
            questions=[{"type": "predicate", "instructions": "Is it red?"}],
        )
        assert decision.answers[0].probability == 0.97  # type: ignore[union-attr]
        schema = {"questions": [{"id": "a", **QUESTION}]}
        state: Any = [
            {"type": "text", "text": "A thing."},
            {"type": "image_url", "image_url": {"url": url(BLUE)}},
        ]
        chat = client.chat.completions.create(
            model="jev-latest",
            messages=[{"role": "system", "content": json.dumps(schema)}, {"role": "user", "content": state}],
        )
        answers = json.loads(chat.choices[0].message.content or "")["answers"]
        assert answers["a"]["noul"] == 0.03


def test_openais_doors_tell_where_a_wrong_image_stands(stack: Stack) -> None:
    part = {"type": "input_image", "image_url": url(RED[:-30])}
    content = [{"type": "input_text", "text": "A thing."}, part]
    decision = {
        "model": "jev-latest",
        "input": [{"role": "user", "content": content}],
        "questions": [{"type": "predicate", "instructions": "Is it red?"}],
    }
    large = {"type": "input_image", "image_url": url(png((0, 0, 0), (101, 100)))}
    chat = {
        "model": "jev-latest",
        "messages": [
            {"role": "system", "content": json.dumps({"questions": [{"id": "a", **QUESTION}]})},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]},
        ],
    }
    path = "input[0].content[1].image_url"
    response = httpx2.post(f"{stack.url}/v1/decisions", json=decision, timeout=30)
    assert (response.status_code, response.json()["error"]["param"]) == (400, path)
    decision["input"] = [{"role": "user", "content": [large]}]
    response = httpx2.post(f"{stack.url}/v1/decisions", json=decision, timeout=30)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "image_too_large")
    assert "input.0.content.0.image_url: an image of 10100 pixels" in response.json()["error"]["message"]
    response = httpx2.post(f"{stack.url}/v1/chat/completions", json=chat, timeout=30)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "messages[1].content[0].image_url.url"


def test_a_chat_tells_the_tokens_of_its_thought(stack: Stack) -> None:
    urgent = {"id": "a", "type": "noul", "instructions": "Is it urgent?"}
    chat = {
        "model": "jev-latest",
        "messages": [
            {"role": "system", "content": json.dumps({"questions": [urgent], "think": 64})},
            {"role": "user", "content": "A thing."},
        ],
    }
    usage = httpx2.post(f"{stack.url}/v1/chat/completions", json=chat, timeout=30).json()["usage"]
    thought = usage["completion_tokens_details"]["reasoning_tokens"]
    assert thought > 1
    assert usage["completion_tokens"] == thought + 1
