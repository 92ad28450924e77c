"""What the SDK asks over HTTP and what it makes of each answer, against a server of recorded bodies."""

from __future__ import annotations

import asyncio
import time
from typing import Any, assert_type

import httpx2
import pytest

from client import (
    ApiError,
    AsyncCanvass,
    BadKey,
    BadRequest,
    BadUrl,
    Canceled,
    Canvass,
    CanvassError,
    CheckFailed,
    Decision,
    DecisionFailed,
    Expired,
    InvalidValue,
    ModelRejected,
    NotFound,
    NotJson,
    NotRecorded,
    Overloaded,
    RateLimited,
    ServerFault,
    StillRunning,
    Unauthorized,
    Unreachable,
)
from client.errors import BadKey as CommandsBadKey
from client.errors import ClientError
from tests.client.recorded import (
    ANSWERED,
    BODY,
    BUSY,
    FULL,
    ID,
    ID_HEADER,
    INVALID,
    REFUSED,
    Asked,
    Recorded,
    Reply,
    Serve,
    Ticket,
    job,
)


def decide(server: Recorded, **options: Any) -> Decision[Ticket]:
    with Canvass(server.url) as canvass:
        return canvass.decide(Ticket, "It burns.", **options)


def test_a_decision_is_an_instance_with_its_evidence(serve: Serve) -> None:
    server = serve(ANSWERED)
    with Canvass(server.url) as canvass:
        decision = canvass.decide(Ticket, "It burns.")
    assert_type(decision, Decision[Ticket])
    assert decision.value == Ticket(urgent=True, stars=4)
    assert decision.job_id == ID
    assert decision.usage == (20, 2)
    assert decision.of("urgent") is decision.evidence["/urgent"]
    assert decision.of("urgent").engine == "http://127.0.0.1:9001"
    assert (decision.model, decision.answers["urgent"]["noul"]) == ("jev-latest", 0.9)
    (asked,) = server.asked
    assert asked.body == {"model": "jev-latest", "state": "It burns.", "schema": Ticket.model_json_schema()}
    assert asked.headers["prefer"] == "wait=50"
    assert len(asked.headers["idempotency-key"]) == 32
    assert "authorization" not in asked.headers


def test_options_go_into_the_body_under_their_names(serve: Serve) -> None:
    server = serve(ANSWERED)
    options: dict[str, Any] = {
        "instructions": "Tickets of a shop.",
        "samples": 4,
        "steps": 2,
        "think": 64,
        "seed": 7,
        "audit": True,
        "schema_version": "3",
        "deadline_ms": 5000,
        "metadata": {"ticket": 4711},
        "diagnostics": True,
    }
    decide(
        server,
        **options,
        model="other",
        extra_body={"auto_max": 8},
        images=[b"\x89PNG", "data:image/gif;base64,AA=="],
    )
    told = {
        **options,
        "model": "other",
        "auto_max": 8,
        "images": ["data:application/octet-stream;base64,iVBORw==", "data:image/gif;base64,AA=="],
    }
    assert {name: server.asked[0].body[name] for name in told} == told


def test_messages_are_the_state(serve: Serve) -> None:
    server, messages = serve(ANSWERED), [{"role": "user", "content": "It burns."}]
    with Canvass(server.url) as canvass:
        canvass.decide(Ticket, messages=messages)
        assert server.asked[0].body["state"] == messages
        with pytest.raises(TypeError, match="one of the two"):
            canvass.decide(Ticket)
        with pytest.raises(TypeError, match="one of the two"):
            canvass.decide(Ticket, "It burns.", messages=messages)
        with pytest.raises(ValueError, match="at least one"):
            canvass.decide(Ticket, messages=[])
    assert len(server.asked) == 1


def test_a_state_may_hold_models_and_what_is_no_json_is_refused(serve: Serve) -> None:
    server = serve(ANSWERED)
    with Canvass(server.url) as canvass:
        canvass.decide(Ticket, {"earlier": Ticket(urgent=False, stars=1), "nan": float("nan")})
        assert server.asked[0].body["state"] == {"earlier": {"urgent": False, "stars": 1}, "nan": None}
        for state in (object(), "\ud800"):
            with pytest.raises(NotJson):
                canvass.decide(Ticket, {"it": state})


def test_url_and_key_come_from_the_environment(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(ANSWERED)
    monkeypatch.setenv("CANVASS_URL", f"{server.url}/")
    monkeypatch.setenv("CANVASS_KEY", "secret")
    with Canvass() as canvass:
        canvass.decide(Ticket, "It burns.")
    with Canvass(api_key="mine") as canvass:
        canvass.decide(Ticket, "It burns.")
    assert [one.headers["authorization"] for one in server.asked] == ["Bearer secret", "Bearer mine"]


def test_a_url_and_a_key_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadUrl):
        Canvass("localhost:8011")
    with pytest.raises(BadKey) as told:
        Canvass(api_key="two words")
    assert isinstance(told.value, CommandsBadKey)
    assert isinstance(told.value, CanvassError)


def test_a_decision_that_takes_longer_is_polled(serve: Serve) -> None:
    server = serve(
        Reply(202, job("running"), ID_HEADER),
        Reply(200, job("running")),
        Reply(200, job("succeeded", result=BODY)),
    )
    assert decide(server).value.stars == 4
    assert server.paths() == ["POST /v1/systemone", f"GET /v1/jobs/{ID}", f"GET /v1/jobs/{ID}"]


RATE = Reply(
    429, {"detail": {"error_type": "rate_limit_error", "message": "slowly"}}, {**REFUSED, "retry-after": "0"}
)
IN_FLIGHT = Reply(
    409,
    {"detail": {"error_type": "api_usage_error", "message": "in flight"}},
    {**REFUSED, "retry-after": "0"},
)


def test_a_request_without_room_is_repeated_under_one_key(serve: Serve) -> None:
    gateway = Reply(502, b"<html>Bad Gateway</html>")
    server = serve(RATE, IN_FLIGHT, gateway, None, BUSY, ANSWERED)
    assert decide(server).job_id == ID
    assert len(server.asked) == 6
    assert len({one.headers["idempotency-key"] for one in server.asked}) == 1


def test_two_calls_have_two_keys_unless_the_caller_names_one(serve: Serve) -> None:
    server = serve(ANSWERED)
    for key in (None, None, "mine", "mine"):
        decide(server, **({"idempotency_key": key} if key else {}))
    first, second, *named = [one.headers["idempotency-key"] for one in server.asked]
    assert first != second
    assert named == ["mine", "mine"]


def test_repeating_is_bounded_and_ends_in_the_last_refusal(serve: Serve) -> None:
    server = serve(BUSY)
    with Canvass(server.url, retries=2) as canvass, pytest.raises(Overloaded) as told:
        canvass.decide(Ticket, "It burns.")
    assert len(server.asked) == 3
    assert told.value.retry_after_s == 0.02
    assert (told.value.status, told.value.code, told.value.message) == (529, "overloaded_error", "full")
    assert told.value.request_id == "dec_of_nothing"


def test_a_wait_that_would_outlast_the_call_is_not_begun(serve: Serve) -> None:
    server, begun = serve(Reply(429, RATE.body, {"retry-after": "30"})), time.monotonic()
    with pytest.raises(RateLimited):
        decide(server, timeout=5)
    assert time.monotonic() - begun < 4
    assert len(server.asked) == 1


def test_nothing_there_is_told_soon() -> None:
    begun = time.monotonic()
    with Canvass("http://127.0.0.1:9") as canvass, pytest.raises(Unreachable, match="canvass up") as told:
        canvass.decide(Ticket, "It burns.")
    assert time.monotonic() - begun < 5
    assert isinstance(told.value, ClientError)


def told(status: int, error_type: str) -> Reply:
    return Reply(status, {"detail": {"error_type": error_type, "message": "no"}})


@pytest.mark.parametrize(
    ("reply", "error", "code", "path"),
    [
        (Reply(422, {"detail": INVALID}, REFUSED), BadRequest, "schema_type", "schema.properties.a"),
        (told(400, "max_tokens_exceeded"), BadRequest, "max_tokens_exceeded", ""),
        (told(401, "authentication_error"), Unauthorized, "authentication_error", ""),
        (told(403, "authentication_error"), Unauthorized, "authentication_error", ""),
        (Reply(404, {"detail": "no such route", "code": "not_found"}), NotFound, "not_found", ""),
        (
            Reply(422, {"detail": "d", "code": "invalid_request", "errors": [{"pointer": "/a/0"}]}),
            BadRequest,
            "invalid_request",
            "a.0",
        ),
        (
            Reply(422, {"detail": "a: d", "code": "x", "errors": [{"pointer": "", "code": "y"}]}),
            BadRequest,
            "y",
            "",
        ),
        (Reply(500, b"oops"), ServerFault, "no_message", ""),
        (Reply(200, b"[]", ID_HEADER), ServerFault, "no_json", ""),
        (Reply(200, {"answers": {}}, ID_HEADER), ServerFault, "no_value", ""),
    ],
)
def test_each_refusal_has_its_type(
    serve: Serve, reply: Reply, error: type[ApiError], code: str, path: str
) -> None:
    server = serve(reply)
    with pytest.raises(error) as told:
        decide(server)
    assert (told.value.code, told.value.path) == (code, path)
    assert isinstance(told.value, CanvassError)
    assert len(server.asked) == 1


def test_a_problem_document_is_told_once_and_by_the_name_of_its_rule(serve: Serve) -> None:
    errors = [
        {"pointer": "/schema/properties/a~1b", "detail": "no such type", "code": "schema_type"},
        {"pointer": "/state", "detail": "missing", "code": "missing"},
    ]
    detail = "schema.properties.a/b: no such type"
    server = serve(Reply(422, {"detail": detail, "code": "invalid_request", "errors": errors}))
    with Canvass(server.url) as canvass, pytest.raises(BadRequest) as told:
        canvass.compile(Ticket)
    assert str(told.value) == "422 schema_type: schema.properties.a/b: no such type (and 1 more)"
    assert (told.value.path, told.value.code) == ("schema.properties.a/b", "schema_type")


FAULT = {"code": "no_engine", "message": "no engine could take a read"}


@pytest.mark.parametrize(
    ("status", "error", "raised"),
    [
        ("failed", FAULT, DecisionFailed),
        ("expired", {"code": "expired", "message": "late"}, Expired),
        ("canceled", None, Canceled),
    ],
)
def test_a_job_that_ended_without_a_value_tells_how(
    serve: Serve, status: str, error: Any, raised: type[DecisionFailed]
) -> None:
    # The door tells it as an overload; that the job has ended, only the job says.
    server = serve(Reply(529, FULL, {**ID_HEADER, "retry-after": "1"}), Reply(200, job(status, error=error)))
    with pytest.raises(raised) as told:
        decide(server)
    assert type(told.value) is raised
    assert told.value.job_id == ID
    assert told.value.code == (error["code"] if error else "canceled")
    assert server.paths() == ["POST /v1/systemone", f"GET /v1/jobs/{ID}"]


def test_a_value_that_is_not_valid_carries_faults_and_evidence(serve: Serve) -> None:
    errors = [{"path": "/stars", "code": "maximum", "message": "9 is more than 5"}]
    server = serve(Reply(200, {**BODY, "value": None, "valid": False, "errors": errors}, ID_HEADER))
    with pytest.raises(InvalidValue, match="/stars: 9 is more than 5") as told:
        decide(server)
    assert told.value.errors == tuple(errors)
    assert told.value.evidence["/urgent"].confidence == 0.9
    assert told.value.job_id == ID


THREE = {**BODY, "value": {"urgent": True, "stars": 3}}


def test_a_value_that_the_models_validators_reject_carries_its_evidence(serve: Serve) -> None:
    server = serve(Reply(200, THREE, ID_HEADER))
    with pytest.raises(ModelRejected, match=r"Ticket rejects .* stars: .*three says nothing") as told:
        decide(server)
    assert told.value.value == THREE["value"]
    assert told.value.errors[0]["loc"] == ("stars",)
    assert told.value.evidence["/urgent"].kind == "read"


def test_a_rejection_is_in_the_audit(serve: Serve) -> None:
    server = serve(Reply(200, THREE, ID_HEADER), Reply(201, {"checks": []}))
    with pytest.raises(ModelRejected):
        decide(server, audit=True)
    assert server.paths()[1] == f"POST /v1/jobs/{ID}/audit"
    (check,) = server.asked[1].body["checks"]
    assert (check["name"], check["passed"]) == ("Ticket", False)
    server = serve(Reply(200, THREE, ID_HEADER), Reply(404, {"detail": "gone", "code": "not_audited"}))
    with pytest.raises(ModelRejected) as told:
        decide(server, audit=True)
    assert "not_audited" in told.value.__notes__[0]


def test_a_check_that_fails_raises_after_it_was_recorded(serve: Serve) -> None:
    server = serve(ANSWERED, Reply(201, {"checks": []}))
    checks = {"calm": lambda ticket: "it burns" if ticket.urgent else None, "stars": lambda t: t.stars > 1}
    with pytest.raises(CheckFailed, match="calm: it burns") as told:
        decide(server, audit=True, checks=checks)
    assert told.value.decision.value.stars == 4
    assert [one.name for one in told.value.failed] == ["calm"]
    assert server.asked[1].body == {
        "checks": [
            {"name": "calm", "passed": False, "message": "it burns"},
            {"name": "stars", "passed": True, "message": ""},
        ]
    }


def test_a_check_that_fails_may_be_told_alone_and_nothing_is_posted_without_an_audit(serve: Serve) -> None:
    server = serve(ANSWERED)
    decision = decide(server, checks={"calm": lambda ticket: not ticket.urgent}, on_check_failure="record")
    assert [(one.name, one.passed) for one in decision.checks] == [("calm", False)]
    assert len(server.asked) == 1


def test_checks_that_could_not_be_recorded_are_an_error_with_the_decision(serve: Serve) -> None:
    server = serve(ANSWERED, Reply(404, {"detail": "no audit", "code": "not_audited"}))
    with pytest.raises(NotRecorded, match="not_audited") as told:
        decide(server, audit=True, checks={"stars": lambda ticket: True})
    assert told.value.decision.value.stars == 4
    assert isinstance(told.value.__cause__, NotFound)


def test_checks_are_recorded_by_their_whole_names_and_what_is_no_name_is_refused_first(
    serve: Serve,
) -> None:
    server = serve(ANSWERED, Reply(201, {"checks": []}))
    longest = {"n" * 199 + end: lambda ticket: True for end in "ab"}
    decide(server, audit=True, checks=longest)
    assert [one["name"] for one in server.asked[1].body["checks"]] == list(longest)
    too_long = {"n" * 200 + end: lambda ticket: True for end in "ab"}
    with Canvass(server.url) as canvass:
        for call in (
            lambda: canvass.decide(Ticket, "It burns.", checks=too_long),
            lambda: canvass.submit(Ticket, "It burns.", checks=too_long),
            lambda: canvass.wait(ID, Ticket, checks=too_long),
            lambda: canvass.map(Ticket, ["It burns."], checks=too_long),
        ):
            with pytest.raises(ValueError, match="1 to 200 characters, and this one 201"):
                call()
    assert len(server.asked) == 2, "nothing was asked"


def test_a_decision_can_be_submitted_looked_at_and_waited_for(serve: Serve) -> None:
    def by(asked: Asked) -> Reply:
        if asked.method == "POST":
            return Reply(202, job("canceled" if "cancel" in asked.path else "queued"), ID_HEADER)
        return Reply(200, job("succeeded", result=BODY) if "wait=" in asked.path else job("running"))

    server = serve(by=by)
    with Canvass(server.url) as canvass:
        submitted = canvass.submit(Ticket, "It burns.", checks={"no": lambda ticket: False})
        assert (submitted.id, submitted.status(), submitted.cancel()) == (ID, "running", "canceled")
        with pytest.raises(CheckFailed):
            submitted.wait()
        assert_type(canvass.wait(ID, Ticket), Decision[Ticket])
        assert canvass.wait(ID, Ticket).value.urgent
    assert server.asked[0].headers["prefer"] == "respond-async"


def test_a_wait_that_is_over_names_the_job(serve: Serve) -> None:
    server = serve(by=lambda asked: Reply(200, job("running"), after_s=0.1))
    with Canvass(server.url) as canvass, pytest.raises(StillRunning, match=ID) as told:
        canvass.wait(ID, Ticket, timeout=0.3)
    assert told.value.job_id == ID
    assert isinstance(told.value, TimeoutError)


def test_a_given_http_client_is_used_and_left_open(serve: Serve) -> None:
    server = serve(ANSWERED)
    with httpx2.Client(headers={"x-mine": "yes"}) as http:
        with Canvass(server.url, http_client=http) as canvass:
            canvass.decide(Ticket, "It burns.")
        assert not http.is_closed
    assert server.asked[0].headers["x-mine"] == "yes"


def test_the_client_for_a_loop_does_the_same(serve: Serve) -> None:
    server = serve(
        BUSY,
        Reply(202, job("running"), ID_HEADER),
        Reply(200, job("succeeded", result=BODY)),
        Reply(202, job("queued"), ID_HEADER),
        Reply(200, job("running")),
        Reply(202, job("canceled")),
        Reply(200, job("canceled")),
    )

    async def run() -> None:
        async with AsyncCanvass(server.url) as canvass:
            decision = await canvass.decide(Ticket, "It burns.")
            assert_type(decision, Decision[Ticket])
            assert decision.value.stars == 4
            submitted = await canvass.submit(Ticket, "It burns.")
            assert (await submitted.status(), await submitted.cancel()) == ("running", "canceled")
            with pytest.raises(Canceled):
                await submitted.wait()

    asyncio.run(run())


def test_an_audit_is_read_line_by_line_and_a_plan_as_it_is(serve: Serve) -> None:
    server = serve(Reply(200, b'{"type": "decision"}\n{"type": "read"}\n'), Reply(200, {"object": "plan"}))
    with Canvass(server.url) as canvass:
        assert canvass.audit(ID) == [{"type": "decision"}, {"type": "read"}]
        assert canvass.compile(Ticket, state="It burns.") == {"object": "plan"}
    assert server.paths() == [f"GET /v1/jobs/{ID}/audit", "POST /v1/compile"]
    assert server.asked[1].body["schema"] == Ticket.model_json_schema()
