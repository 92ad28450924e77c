"""What a model becomes, what a value's evidence is found by, and what the SDK loads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from client import Alone, NotExpressible, Span, model_schema
from client.sdk.checks import CheckResult, run_checks
from client.sdk.evidence import EvidenceMap, pointer_of

SERVER_ONLY = (
    *("fastapi", "celery", "redis", "transformers", "tokenizers", "jsonschema_rs", "typer", "rich"),
    *("planner", "workers", "api", "engine"),
)


class Team(Enum):
    BILLING = "billing"
    TECHNICAL = "technical"


class Offer(BaseModel):
    label: str = Field(validation_alias="the/label")
    price: Decimal = Field(ge=0, le=Decimal("99.5"))


class Order(BaseModel):
    """An order."""

    total: Span = Field(description="The total amount")
    items: list[Span]
    note: Span | None
    urgent: Annotated[bool, Alone] = Field(description="Is it urgent?")
    where: Annotated[Span, Alone]
    calm: bool = Field(json_schema_extra={"alone": True})
    team: Team
    stars: int = Field(ge=1, le=5)
    offers: list[Offer] = Field(max_length=3)


def loaded(statement: str) -> set[str]:
    told = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in told.stdout.split()}


def test_the_sdk_loads_nothing_of_the_server_and_nothing_of_the_command() -> None:
    found = loaded("from client import Canvass, AsyncCanvass; Canvass().close()")
    assert found & set(SERVER_ONLY) == set()
    assert {"pydantic", "httpx2"} <= found


def test_the_package_alone_loads_no_library() -> None:
    assert loaded("import client") & {"pydantic", "httpx2", *SERVER_ONLY} == set()
    assert "pydantic" not in loaded("from client import ports")


def test_the_command_starts_without_the_sdk() -> None:
    assert "pydantic" not in loaded("import client.cli")


def test_what_the_package_does_not_have_is_said_plainly() -> None:
    import client

    with pytest.raises(AttributeError, match="'client' has no attribute 'Canvas'"):
        client.Canvas  # type: ignore[attr-defined]  # noqa: B018


def test_a_span_is_told_by_its_marker_and_carries_no_description_of_its_own() -> None:
    schema = model_schema(Order)
    span = schema["$defs"]["Span"]
    assert span["x-canvass"] == {"span": True}
    assert set(span["properties"]) == {"text", "start", "end"}
    assert "description" not in span
    assert schema["properties"]["total"] == {"$ref": "#/$defs/Span", "description": "The total amount"}
    assert schema["properties"]["items"]["items"] == {"$ref": "#/$defs/Span"}
    assert schema["properties"]["note"]["anyOf"] == [{"$ref": "#/$defs/Span"}, {"type": "null"}]


def test_a_field_that_stands_alone_says_so_in_either_way() -> None:
    properties = model_schema(Order)["properties"]
    assert properties["urgent"]["x-canvass"] == {"alone": True}
    assert properties["urgent"]["description"] == "Is it urgent?"
    assert properties["where"] == {"$ref": "#/$defs/Span", "x-canvass": {"alone": True}}
    assert properties["calm"]["alone"] is True


def test_fields_keep_their_order_and_stand_under_their_alias() -> None:
    schema = model_schema(Order)
    assert list(schema["properties"]) == list(Order.model_fields)
    assert list(schema["$defs"]["Offer"]["properties"]) == ["the/label", "price"]


def test_a_decimal_is_a_number_within_its_bounds() -> None:
    price = model_schema(Order)["$defs"]["Offer"]["properties"]["price"]
    assert price == {"maximum": 99.5, "minimum": 0.0, "title": "Price", "type": "number"}


def test_a_schema_that_is_changed_changes_nobody_elses() -> None:
    model_schema(Order)["properties"].clear()
    assert model_schema(Order)["properties"]


def test_a_field_that_json_cannot_hold_is_named() -> None:
    class Bad(BaseModel):
        name: str
        rule: Callable[[int], int]

    with pytest.raises(NotExpressible, match=r"^Bad\.rule: .*Callable"):
        model_schema(Bad)


@pytest.mark.parametrize("form", [int, dict, BaseModel, "Order", Offer(**{"the/label": "small", "price": 1})])
def test_what_is_no_model_is_refused(form: Any) -> None:
    with pytest.raises(NotExpressible, match="no pydantic model"):
        model_schema(form)


def test_a_span_reads_as_its_text_and_cannot_be_changed() -> None:
    span = Span(text="INV-1042", start=8, end=16)
    assert f"{span}" == "INV-1042"
    with pytest.raises(ValueError, match="frozen"):
        setattr(span, "text", "other")  # noqa: B010 - as code that is not type-checked would


ORDER = Order.model_validate(
    {
        "total": {"text": "5", "start": 0, "end": 1},
        "items": [],
        "note": None,
        "urgent": True,
        "where": {"text": "a", "start": 3, "end": 4},
        "calm": False,
        "team": "billing",
        "stars": 3,
        "offers": [{"the/label": "small", "price": 1.5}],
    }
)


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("", ""),
        ("urgent", "/urgent"),
        ("/offers/0/the~1label", "/offers/0/the~1label"),
        ("offers.0.label", "/offers/0/the~1label"),
        ("offers.0.price", "/offers/0/price"),
        ("offers.7.price", "/offers/7/price"),
        ("note.text", "/note/text"),
    ],
)
def test_a_path_of_attributes_becomes_the_pointer_of_its_json(path: str, pointer: str) -> None:
    assert pointer_of(ORDER, path) == pointer


def test_evidence_has_none_where_something_does_not_apply() -> None:
    evidence = EvidenceMap(
        {"/urgent": {"kind": "read", "probabilities": {"true": 0.9, "false": 0.1}, "confidence": 0.9}}
    )
    urgent = evidence["/urgent"]
    assert (urgent.kind, urgent.confidence, urgent.start, urgent.tokens) == ("read", 0.9, None, None)
    assert urgent.distribution == {"true": 0.9, "false": 0.1}
    cut = EvidenceMap({"/text": {"kind": "generated", "attempts": 2, "finish_reason": "length"}})["/text"]
    assert (cut.attempts, cut.finish_reason, cut.reason) == (2, "length", None)
    left_out = EvidenceMap({"/text": {"kind": "skipped", "reason": "urgent is no"}})["/text"]
    assert (left_out.reason, left_out.finish_reason) == ("urgent is no", None)
    assert "/calm" not in evidence
    with pytest.raises(KeyError, match="/urgent"):
        evidence["/calm"]


def test_each_way_in_which_a_check_can_fail_is_told() -> None:
    def broken(value: int) -> bool:
        raise LookupError(f"no row {value}")

    checks: dict[str, Callable[[int], bool | str | None]] = {
        "true": lambda value: True,
        "none": lambda value: None,
        "false": lambda value: False,
        "why": lambda value: f"{value} is too much",
        "broken": broken,
    }
    assert run_checks(checks, 7) == (
        CheckResult("true", True),
        CheckResult("none", True),
        CheckResult("false", False),
        CheckResult("why", False, "7 is too much"),
        CheckResult("broken", False, "no row 7"),
    )


def test_functions_of_one_name_are_each_a_check() -> None:
    found = run_checks([lambda value: True, lambda value: False, is_small], 7)
    assert [(one.name, one.passed) for one in found] == [
        ("<lambda>", True),
        ("<lambda> 2", False),
        ("is_small", True),
    ]


@pytest.mark.parametrize("name", ["", "n" * 201])
def test_a_check_whose_name_no_audit_takes_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 200 characters"):
        run_checks({name: is_small}, 7)


def test_checks_that_can_be_gone_through_only_once_are_refused() -> None:
    with pytest.raises(TypeError, match="not generator"):
        run_checks((check for check in [is_small]), 7)  # type: ignore[arg-type]


def is_small(value: int) -> bool:
    return value < 10


def test_a_literal_stays_a_closed_choice() -> None:
    class Route(BaseModel):
        kind: Literal["price", "other"]

    assert model_schema(Route)["properties"]["kind"]["enum"] == ["price", "other"]
