from __future__ import annotations

import httpx2
import pytest

from client.stack import Stack
from tests.line.conftest import Ask

BODY = {
    "model": "jev-latest",
    "state": "My printer is on fire.",
    "questions": {"a": {"type": "noul", "instructions": "Is it urgent?"}},
}


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
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
