"""On the wire: any valid System One body gets a valid answer, and any mutation of one never a 5xx.

A body is valid when the models of TypeSafe's own OpenAPI document take it; so is an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typesafe_sdk import ChoiceAnswer, NoulAnswer, ScoreAnswer, SystemOneResponse
from typesafe_sdk._schemas import models as wire

from client.stack import Stack

quick = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    scalars | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=6,
)
texts = strings | st.lists(values, max_size=3) | st.dictionaries(strings, values, max_size=3)
optional = st.none() | texts


def question(type: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(type), **fields}, optional={"instructions": optional})


nouls = question("noul") | question(
    "noul", criteria=st.none() | st.fixed_dictionaries({}, optional={"true": optional, "false": optional})
)
choices = question("choice", criteria=st.dictionaries(strings, optional, min_size=1, max_size=12))
scores = question("score", criteria=st.lists(texts, min_size=1, max_size=10))
bodies = st.fixed_dictionaries(
    {
        "model": st.just("jev-latest"),
        "state": texts,
        "questions": st.dictionaries(strings.filter(bool), nouls | choices | scores, min_size=1, max_size=4),
    },
)


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=stack.url, timeout=60) as opened:
        yield opened


@quick
@given(body=bodies)
def test_any_valid_body_gets_a_valid_answer(client: httpx2.Client, body: dict[str, Any]) -> None:
    wire.SystemOneRequest.model_validate(body)
    response = client.post("/v1/systemone", json=body)
    assert response.status_code == 200, response.text
    wire.SystemOneResponse.model_validate(response.json())
    answered = SystemOneResponse.model_validate_json(response.content)
    assert answered.answers.keys() == body["questions"].keys()
    for id, asked in body["questions"].items():
        check(asked, answered.answers[id])


def check(asked: dict[str, Any], answer: object) -> None:
    """An answer keeps what System One says of it."""
    match answer:
        case NoulAnswer():
            assert asked["type"] == "noul"
            assert 0 <= answer.noul <= 1
            return
        case ChoiceAnswer():
            assert list(answer.probabilities) == list(asked["criteria"])
            assert answer.probabilities[answer.choice] == max(answer.probabilities.values())
        case ScoreAnswer():
            assert list(answer.legend.values()) == asked["criteria"]
            assert list(answer.probabilities) == list(range(len(asked["criteria"])))
            expected = sum(level * p for level, p in answer.probabilities.items())
            assert answer.score == pytest.approx(expected, abs=1e-4)
        case _:
            pytest.fail(f"{answer!r} answers no question of ours")
    assert sum(answer.probabilities.values()) == pytest.approx(1, abs=1e-4)
    assert -1e-6 <= answer.confidence <= 1


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container and key of a JSON value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    found = [(value, key) for key in keys]
    return found + [place for _, key in found for place in places(value[key])]


# No `deadline_ms`: a decision whose time is over ends with a 529, and rightly.
EXTENSIONS = (
    "assets", "ask", "audit", "auto_max", "auto_threshold", "chunk_prompt", "chunk_rows", "diagnostics",
    "images", "instructions", "joint", "metadata", "samples", "schema", "schema_version", "seed",
    "sequential", "steps", "think", "webhook_events_filter",
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A body with one to three things wrong, as bytes."""
    body: Any = draw(bodies)
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from(places(body)))
        match draw(st.sampled_from(["replace", "drop", "add", "copy"])):
            case "replace":
                container[key] = draw(values)
            case "drop":
                del container[key]
            case "add":
                body[draw(st.sampled_from(EXTENSIONS))] = draw(values | st.integers(-1, 5))
            case "copy":
                copied = json.loads(json.dumps(draw(st.sampled_from(places(body)))[0]))
                container[key] = copied
        if not places(body):
            break
    content = json.dumps(body, ensure_ascii=draw(st.booleans())).encode()
    cut = draw(st.none() | st.integers(0, len(content)))
    if cut is not None and draw(st.booleans()):
        content = content[:cut] + draw(st.binary(max_size=3)) + content[cut + 1 :]
    return content


@quick
@given(content=mutated())
def test_a_mutation_of_a_body_never_gets_a_5xx(client: httpx2.Client, content: bytes) -> None:
    response = client.post("/v1/systemone", content=content)
    assert response.status_code in (200, 400, 413, 422), f"{response.status_code} {response.text}"
    if response.status_code == 422:
        assert response.json()["detail"][0].keys() == {"loc", "msg", "type", "input"}
    elif response.status_code != 200:
        assert response.json()["detail"].keys() == {"error_type", "message"}
