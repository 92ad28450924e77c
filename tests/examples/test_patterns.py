"""Cascade, routing and cycle on the embedded model: what it says may be wrong, it is always valid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel

from client import Canvass, Decision, Span, model_schema
from client.stack import Stack
from examples.patterns import MESSAGE, PATTERNS, Case, Plan, Refund, Triage, main

FORMS: dict[str, type[BaseModel]] = {"cascade": Triage, "routing": Case, "cycle": Plan}
MESSAGES = (MESSAGE, '{"Drucker": "brennt 🔥", "seit": 1e3}')


@pytest.fixture(scope="module")
def canvass(embedded: Stack) -> Iterator[Canvass]:
    with Canvass(embedded.url) as client:
        yield client


@pytest.fixture(scope="module")
def decided(canvass: Canvass) -> dict[tuple[str, str], Decision[Any]]:
    """Every pattern about every message."""
    return {
        (name, message): pattern(canvass, message)
        for name, pattern in PATTERNS.items()
        for message in MESSAGES
    }


Decided = dict[tuple[str, str], Decision[Any]]


def test_every_value_is_a_valid_instance_of_its_model(decided: Decided) -> None:
    for (name, _), decision in decided.items():
        form = FORMS[name]
        assert isinstance(decision.value, form)
        told = decision.body["value"]
        assert jsonschema_rs.is_valid(model_schema(form), told)
        assert form.model_validate(told) == decision.value


def test_every_field_is_answered_the_way_its_schema_says(decided: Decided) -> None:
    for message in MESSAGES:
        evidence = decided["cascade", message].evidence
        assert {pointer: told.kind for pointer, told in evidence.items()} == {
            "/topic": "read",
            "/writer": "span",
            "/anger": "read",
            "/minutes": "generated",
            "/reply": "generated",
            "/manager": "read",
            "/language": "read",
        }


def test_what_is_read_has_probabilities_that_are_those_of_its_values(decided: Decided) -> None:
    for decision in decided.values():
        for told in decision.evidence.values():
            if told.kind == "read":
                assert told.distribution is not None
                assert sum(told.distribution.values()) == pytest.approx(1, abs=1e-4)
                assert told.confidence == max(told.distribution.values())


def test_what_is_found_stands_in_the_message(decided: Decided) -> None:
    found = [
        (message, span)
        for (_, message), decision in decided.items()
        for span in (getattr(decision.value, "writer", None), *_amounts(decision.value))
        if span is not None
    ]
    assert found
    for message, span in found:
        assert message[span.start : span.end] == span.text


def _amounts(value: Any) -> list[Span]:
    request = getattr(value, "request", None)
    return [request.amount] if isinstance(request, Refund) and request.amount else []


def test_the_branch_that_was_not_picked_was_not_asked(decided: Decided) -> None:
    fields = {
        "refund": ("/request/amount", "/request/whole"),
        "repair": ("/request/device", "/request/warranty"),
    }
    for message in MESSAGES:
        decision = decided["routing", message]
        picked = decision.value.request.kind
        for kind, pointers in fields.items():
            skipped = [decision.evidence[pointer].kind == "skipped" for pointer in pointers]
            assert skipped == [kind != picked] * 2


def test_a_cycle_has_as_many_steps_as_it_said(decided: Decided) -> None:
    for message in MESSAGES:
        decision = decided["cycle", message]
        steps = decision.value.steps
        assert 1 <= len(steps) <= 3
        for number in range(3):
            kinds = {decision.of(f"steps.{number}.{name}").kind for name in ("action", "who", "minutes")}
            assert kinds == ({"read", "generated"} if number < len(steps) else {"skipped"})


def test_the_page_of_patterns_runs(
    embedded: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CANVASS_URL", embedded.url)
    main(["routing"])
    first, *fields = capsys.readouterr().out.splitlines()
    assert Case.model_validate_json(first.removeprefix("routing: "))
    assert len(fields) == 6
