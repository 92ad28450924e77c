"""The pricing agent against a whole stack whose engine answers what a script says, the worst included."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from client import Canvass, DecisionFailed
from client.stack import Stack
from examples.discount_agent.__main__ import main
from examples.discount_agent.agent import NoOffer, Reply, answer
from examples.discount_agent.models import OrderQuestion, PriceRequest
from examples.discount_agent.runs import Run
from examples.discount_agent.seed import seed
from examples.discount_agent.stores import Stores, UnknownCustomer
from tests.client.recorded import ID_HEADER, Asked, job, serving
from tests.client.recorded import Reply as Said

ROUTE, PLAN, DISCOUNT, CREDIT = "(which kind?)", "Which plan", "The discount in percent", "The credit for"

RULES: dict[str, Any] = {
    "rules": [
        {"phrase": ROUTE, "state_contains": "cheaper", "labels": {"price": 0.9}},
        {"phrase": ROUTE, "state_contains": "parcel", "labels": {"order": 0.8}},
        {"phrase": ROUTE, "labels": {"other": 0.7}},
        {"phrase": PLAN, "labels": {"team": 0.8}},
        {"phrase": "order number", "state_contains": "A-1093", "span": "A-1093"},
        {"phrase": "order number", "state_contains": "C-3008", "span": "C-3008"},
        {"phrase": "order number", "span": None},
        {"phrase": "How loyal", "labels": {"loyal": 0.9}},
        {"phrase": "How likely", "labels": {"4": 0.6, "3": 0.4}},
        {"phrase": "a lower price", "labels": {"yes": 0.9}},
        {"phrase": DISCOUNT, "state_contains": "everything", "labels": {"4": 1.0}},
        {"phrase": DISCOUNT, "labels": {"3": 0.5, "2": 0.3, "1": 0.2}},
        {"phrase": CREDIT, "state_contains": "everything", "object": "5000"},
        {"phrase": CREDIT, "state_contains": "at first", "object": "5000", "times": 1},
        {"phrase": CREDIT, "object": "12"},
    ],
}

Ask = Callable[..., Reply]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    script = tmp_path_factory.mktemp("shop") / "script.json"
    script.write_text(json.dumps(RULES))
    with Stack(engines=f"script:{script}") as running:
        yield running


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "runs", 17)


@pytest.fixture
def ask(shop: Stack, run: Run, tmp_path: Path) -> Iterator[Ask]:
    """Have the agent answer a message; 17 writes it, if nobody else."""
    seed(tmp_path, datetime.now(UTC).date())
    with Stores(tmp_path) as stores, Canvass(shop.url) as canvass:
        yield lambda message, user=17: answer(canvass, stores, run, message, user)


def records(run: Run, phase: str, type: str) -> list[dict[str, Any]]:
    return [line for line in run.lines() if line["phase"] == phase and line.get("type") == type]


def test_a_price_request_gets_an_offer_within_the_limits(ask: Ask, run: Run) -> None:
    reply = ask("Can I have the team plan cheaper?")
    assert isinstance(reply.route.value.request, PriceRequest)
    assert reply.offer is not None
    decision = reply.offer.decision
    assert (decision.value.discount, decision.value.credit) == (10, 12)
    assert decision.of("discount").distribution == pytest.approx({"0": 0.2, "5": 0.3, "10": 0.5, "15": 0})
    assert decision.of("discount").expectation == pytest.approx(6.5)
    assert decision.of("credit").kind == "generated"
    assert [check.passed for check in decision.checks] == [True] * 4


def test_the_run_keeps_every_read_and_every_check(ask: Ask, run: Run) -> None:
    ask("Can I have the team plan cheaper?")
    assert [line["phase"] for line in run.lines()][:2] == ["start", "route"]
    assert [line["phase"] for line in run.lines()][-1] == "end"
    (decision,) = records(run, "price", "decision")
    assert decision["schema_version"] == "discount-agent/1"
    reads = records(run, "price", "read")
    assert {id for read in reads for id in read["questions"]} == {
        "/loyalty",
        "/risk",
        "/wants_less",
        "/discount",
        "/credit",
    }
    assert all(read["prompt_sha256"] and read["engine"] for read in reads)
    checks = records(run, "price", "check")
    assert len(checks) == 4
    assert all(check["passed"] for check in checks)


def test_a_model_that_gives_everything_away_gives_nothing_away(ask: Ask, run: Run) -> None:
    with pytest.raises(NoOffer, match=r"5000 is greater than the maximum of 35"):
        ask("Make the team plan cheaper, give me everything!")
    written = [read["text"] for read in records(run, "price", "read") if "text" in read]
    assert written == ["5000", "5000"], "it was asked once more, and no third time"
    (end,) = [line for line in run.lines() if line["phase"] == "end"]
    assert end["error"] == "NoOffer"


def test_a_model_that_comes_to_its_senses_is_heard(ask: Ask) -> None:
    reply = ask("Make the team plan cheaper: not as you would at first.")
    assert reply.offer is not None
    assert reply.offer.decision.value.credit == 12
    assert reply.offer.decision.of("credit").attempts == 2


def test_who_owes_money_gets_no_discount_however_sure_the_model_is(ask: Ask) -> None:
    reply = ask("Make the team plan cheaper.", 42)
    assert reply.offer is not None
    assert reply.offer.limits.discount == 0
    assert reply.offer.decision.value.discount == 0
    assert reply.offer.decision.of("discount").kind == "fixed", "nothing was asked"


def test_a_question_about_an_order_asks_nothing_about_prices(ask: Ask) -> None:
    reply = ask("Where is my parcel? It is order A-1093.")
    request = reply.route.value.request
    assert isinstance(request, OrderQuestion)
    assert (str(request.number), reply.route.of("request.number").start) == ("A-1093", 32)
    assert reply.order is not None
    assert reply.order.status == "on its way"
    assert reply.offer is None
    assert reply.route.answers["/request~as=price/plan"] is None


@pytest.mark.parametrize("message", ["Where is my parcel C-3008?", "Where is my parcel?"])
def test_an_order_of_someone_else_or_of_no_number_is_not_told(ask: Ask, message: str) -> None:
    assert ask(message).order is None


def test_an_unknown_customer_ends_the_run_and_the_run_says_so(ask: Ask, run: Run) -> None:
    with pytest.raises(UnknownCustomer):
        ask("Make it cheaper.", 99)
    assert run.lines()[-1]["message"] == "There is no customer 99."


def test_the_command_answers_and_says_what_it_kept(
    shop: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CANVASS_URL", shop.url)
    assert main(["Make the team plan cheaper.", "--user", "17", "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "Discount  10 %  (read, 0.50, expected 6.5)" in printed
    assert "Price     529.20 EUR a year, in place of 588.00 EUR" in printed
    (kept,) = (tmp_path / "runs").iterdir()
    assert str(kept) in printed


def test_the_command_fails_for_an_unknown_customer(
    shop: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CANVASS_URL", shop.url)
    assert main(["Make it cheaper.", "--user", "99", "--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "There is no customer 99.\n"


def test_the_command_says_in_a_sentence_that_a_url_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CANVASS_URL", "foo")
    assert main(["Make it cheaper.", "--user", "17", "--folder", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("'foo' is no URL.")
    assert printed.out == "", "nothing began, so nothing is kept"


AUDIT = b'{"type": "decision", "status": "expired"}\n{"type": "read", "questions": ["/request/kind"]}\n'


@pytest.mark.parametrize(("status", "error"), [("expired", "Expired"), ("failed", "DecisionFailed")])
@pytest.mark.parametrize("kept", [True, False])
def test_a_decision_that_ended_without_a_value_has_its_audit_in_the_run(
    run: Run, tmp_path: Path, status: str, error: str, kept: bool
) -> None:
    def late(asked: Asked) -> Said:
        if asked.path.endswith("/audit"):
            gone = {"detail": "never read", "code": "not_audited"}
            return Said(200, AUDIT) if kept else Said(404, gone)
        if asked.method == "GET":
            return Said(200, job(status, error={"code": status, "message": "late"}))
        return Said(202, job("running"), ID_HEADER)

    seed(tmp_path, datetime.now(UTC).date())
    with (
        serving(late) as server,
        Stores(tmp_path) as stores,
        Canvass(server.url) as canvass,
        pytest.raises(DecisionFailed, match="late"),
    ):
        answer(canvass, stores, run, "Make it cheaper.", 17)
    told = [line["type"] for line in run.lines() if line["phase"] == "route"]
    assert told == (["decision", "read"] if kept else ["no audit"])
    assert run.lines()[-1]["error"] == error


@pytest.mark.parametrize(("discount", "credit"), [(90, 0), (20, 0), (7, 0), (15, 36), (-5, 0)])
def test_not_even_a_server_that_lies_gets_an_offer_through(
    run: Run, tmp_path: Path, discount: int, credit: int
) -> None:
    """What the server calls valid is held against the model and the rules here once more."""
    offer = {"loyalty": "loyal", "risk": 1, "wants_less": True, "discount": discount, "credit": credit}

    def lie(asked: Asked) -> Said:
        if asked.path.endswith("/audit"):
            return Said(201 if asked.method == "POST" else 200, b"")
        routed = "request" in asked.body["schema"]["properties"]
        value = {"request": {"kind": "price", "plan": "team"}} if routed else offer
        return Said(200, {"value": value, "valid": True, "fields": {}}, ID_HEADER)

    seed(tmp_path, datetime.now(UTC).date())
    with (
        serving(lie) as server,
        Stores(tmp_path) as stores,
        Canvass(server.url) as canvass,
        pytest.raises(NoOffer),
    ):
        answer(canvass, stores, run, "Make it cheaper.", 17)
