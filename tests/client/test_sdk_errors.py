"""Errors of the SDK go from one process to another as they are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

import pytest
from pydantic import ValidationError

from client import (
    ApiError,
    BadKey,
    BadUrl,
    Canceled,
    CanvassError,
    CheckFailed,
    DecisionFailed,
    Expired,
    InvalidValue,
    ModelRejected,
    NotExpressible,
    NotJson,
    NotRecorded,
    StillRunning,
    Unreachable,
)
from client.errors import ClientError, ServerUnreachable, TooMuch, WrongOffsets
from client.sdk.decision import Decision, decision_of
from client.sdk.evidence import EvidenceMap
from tests.client.recorded import BODY, ID, Ticket, job

E = TypeVar("E", bound=CanvassError)

EVIDENCE = EvidenceMap(BODY["fields"])
ENDED = job("failed", error={"code": "no_engine", "message": "none could"})


def decision() -> Decision[Ticket]:
    return decision_of(Ticket, ID, BODY)


def rejected() -> ModelRejected:
    with pytest.raises(ModelRejected) as told:
        decision_of(Ticket, ID, {**BODY, "value": {"urgent": True, "stars": 3}})
    return told.value


def below(kind: type[E]) -> Iterator[type[E]]:
    """A kind of error and all that are kinds of it."""
    yield kind
    for one in kind.__subclasses__():
        yield from below(one)


def made() -> list[ClientError]:
    """One of each kind, made as the SDK makes it."""
    refusals = [
        kind(422, "code", "why", "a.b", retry_after_s=2.5, request_id="dec_1") for kind in below(ApiError)
    ]
    return [
        *refusals,
        CanvassError("no"),
        BadUrl("no"),
        BadKey("no"),
        NotExpressible("no"),
        NotJson("no"),
        Unreachable("http://a", "why", connected=True),
        StillRunning(ID, 2.5),
        *(kind(ENDED) for kind in (DecisionFailed, Expired, Canceled)),
        InvalidValue(ID, [{"path": "/a", "code": "c", "message": "m"}], EVIDENCE, BODY),
        rejected(),
        ModelRejected(ID, "Ticket", {}, LookupError("none"), EVIDENCE, BODY),
        CheckFailed(decision()),
        NotRecorded(decision(), ApiError(404, "not_audited", "none")),
        ServerUnreachable("http://a", "why"),
        TooMuch(429, "slowly", "3"),
        WrongOffsets(["one", "two"]),
    ]


def same(one: object, other: object) -> bool:
    """Whether two attributes are alike; evidence and errors are, if they look alike."""
    return one == other or (
        type(one) is type(other) and isinstance(one, Exception | Decision) and repr(one) == repr(other)
    )


def check(error: ClientError, again: ClientError) -> None:
    assert type(again) is type(error)
    assert (str(again), again.args) == (str(error), error.args)
    assert list(vars(again)) == list(vars(error))
    for name, value in vars(error).items():
        assert same(value, vars(again)[name]), name


def test_each_kind_is_among_those_that_are_tried() -> None:
    assert set(below(CanvassError)) <= {type(error) for error in made()}


@pytest.mark.parametrize("error", made(), ids=lambda error: type(error).__name__)
def test_an_error_survives_a_pickle_and_a_copy(error: ClientError) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        check(error, pickle.loads(pickle.dumps(error, protocol)))
    check(error, copy.copy(error))
    check(error, copy.deepcopy(error))


def test_notes_stay_and_what_the_models_validators_said() -> None:
    error = rejected()
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error))
    assert again.__notes__ == ["a note"]
    assert isinstance(again.cause, ValidationError)
    assert again.cause.errors()[0]["loc"] == ("stars",)
    assert again.evidence["/urgent"].confidence == 0.9


def refuse() -> None:
    raise ApiError(429, "slowly", "later", retry_after_s=2.5)


def test_an_error_of_another_process_is_raised_here() -> None:
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes,
        pytest.raises(ApiError, match="slowly") as told,
    ):
        processes.submit(refuse).result(timeout=60)
    assert told.value.retry_after_s == 2.5
