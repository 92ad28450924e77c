from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from client.stack import Stack
from tests.line.conftest import Ask

BODY = {
    "model": "jev-latest",
    "state": "My printer is on fire.",
    "questions": {"a": {"type": "noul", "instructions": "Is it urgent?"}},
}


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://[::1", "//", "http://[x]:1", ""]
)
def test_a_page_of_another_host_may_not_ask(stack: Stack, origin: str) -> None:
    response = httpx2.post(f"{stack.url}/v1/systemone", json=BODY, headers={"Origin": origin})
    assert response.status_code == 403
    assert response.json()["code"] == "foreign_origin"


def test_a_page_of_the_server_itself_may_ask_and_so_may_who_is_no_page(stack: Stack, ask: Ask) -> None:
    response = httpx2.post(f"{stack.url}/v1/systemone", json=BODY, headers={"Origin": stack.url})
    assert response.status_code == 200
    assert ask(questions=BODY["questions"]).status_code == 200


def test_a_page_of_another_host_may_look(stack: Stack) -> None:
    headers = {"Origin": "https://evil.example"}
    assert httpx2.get(f"{stack.url}/v1/models", headers=headers).status_code == 200


FRIEND = "https://app.example.com"


@pytest.fixture(scope="module")
def shared(script: str) -> Iterator[Stack]:
    """A stack that pages of one other host may ask."""
    with Stack(engines=script, env={"CANVASS_ORIGINS": f"{FRIEND}, https://other.example"}) as running:
        yield running


def preflight(stack: Stack, origin: str, path: str = "/v1/systemone") -> httpx2.Response:
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    return httpx2.options(stack.url + path, headers={"Origin": origin, **asked})


def test_an_allowed_page_may_ask_and_its_browser_lets_it_read(shared: Stack) -> None:
    allowed = preflight(shared, FRIEND)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == FRIEND
    assert allowed.headers["access-control-allow-headers"] == "authorization, content-type"
    assert "POST" in allowed.headers["access-control-allow-methods"]
    response = httpx2.post(f"{shared.url}/v1/systemone", json=BODY, headers={"Origin": FRIEND})
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == FRIEND
    assert response.headers["access-control-expose-headers"] == "*"
    assert {"Origin", "Prefer"} <= {name.strip() for name in response.headers["vary"].split(",")}


def test_an_allowed_page_reads_refusals_and_what_it_looks_at_too(shared: Stack) -> None:
    headers = {"Origin": FRIEND}
    refused = httpx2.post(f"{shared.url}/v1/systemone", json={}, headers=headers)
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (422, FRIEND)
    models = httpx2.get(f"{shared.url}/v1/models", headers=headers)
    assert models.headers["access-control-allow-origin"] == FRIEND


def test_other_pages_may_neither_ask_nor_read(shared: Stack, stack: Stack) -> None:
    evil = "https://evil.example"
    assert preflight(shared, evil).status_code == 400
    response = httpx2.post(f"{shared.url}/v1/systemone", json=BODY, headers={"Origin": evil})
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers
    # Where no origin is named, none is told anything.
    response = httpx2.post(f"{stack.url}/v1/systemone", json=BODY, headers={"Origin": stack.url})
    assert not {name for name in response.headers if name.startswith("access-control")}
    assert preflight(stack, FRIEND).status_code == 405
