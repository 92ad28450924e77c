"""When a webhook is attempted, and what ends it."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from workers.settings import Settings
from workers.webhooks.schedule import MOST_RETRY_AFTER_S, TIMES_S, Next, after_attempt, retry_after_s

HOUR = 3600


def attempts(
    status: int | None = 500, chance: float = 0.0, pace: float = 1.0, pause: float | None = None
) -> list[float]:
    """When a receiver that always says the same is called, in seconds after the first call."""
    times, place = [0.0], 0
    while True:
        then = after_attempt(
            status,
            place=place,
            first=0.0,
            now=times[-1],
            chance=chance,
            pace=pace,
            retry_after_s=pause,
        )
        if then.at is None or then.place is None:
            assert then.state == "failed"
            return times
        times.append(then.at)
        place = then.place


def test_the_attempts_come_when_the_contract_says() -> None:
    assert attempts() == [0, 5, 300, 1800, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR]


def test_chance_makes_an_attempt_later_and_keeps_the_order() -> None:
    late = attempts(chance=0.999)
    assert len(late) == len(TIMES_S)
    assert late == sorted(late)
    assert all(time <= actual <= 1.1 * time for time, actual in zip(TIMES_S, late, strict=True))


def test_the_pace_shortens_all_of_them() -> None:
    assert attempts(pace=0.001)[-1] == pytest.approx(86.4)


def test_the_last_attempt_comes_while_the_delivery_is_kept() -> None:
    for pause in (None, 1.0, MOST_RETRY_AFTER_S, 1e9):
        assert attempts(chance=0.999, pause=pause)[-1] < Settings().webhook_retention_s - HOUR


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_only_a_2xx_delivers(status: int) -> None:
    assert after_attempt(status, place=0, first=0, now=1, chance=0) == Next("delivered")


@pytest.mark.parametrize("status", [None, 100, 301, 302, 304, 307, 308, 400, 401, 404, 408, 429, 500, 503])
def test_all_else_is_tried_again(status: int | None) -> None:
    assert after_attempt(status, place=0, first=0, now=1, chance=0) == Next("pending", 5, 1)


def test_410_stops_it_at_once() -> None:
    assert after_attempt(410, place=0, first=0, now=1, chance=0, retry_after_s=60) == Next("gone")


def test_a_failure_of_the_last_attempt_ends_it() -> None:
    assert after_attempt(500, place=9, first=0, now=24 * HOUR, chance=0) == Next("failed")
    assert after_attempt(204, place=9, first=0, now=24 * HOUR, chance=0) == Next("delivered")


def test_a_retry_after_leaves_out_what_would_come_before_it() -> None:
    then = after_attempt(503, place=0, first=100, now=101, chance=0, retry_after_s=120)
    assert then == Next("pending", 400, 2)


def test_a_retry_after_past_the_last_time_is_honoured_by_the_last_attempt() -> None:
    then = after_attempt(503, place=8, first=0, now=22 * HOUR, chance=0, retry_after_s=3 * HOUR)
    assert then == Next("pending", 25 * HOUR, 9)


def test_a_retry_after_is_not_honoured_for_ever() -> None:
    then = after_attempt(503, place=8, first=0, now=22 * HOUR, chance=0, retry_after_s=1e9)
    assert then == Next("pending", 26 * HOUR, 9)


def test_workers_that_were_away_make_up_for_it_with_one_attempt() -> None:
    assert after_attempt(500, place=1, first=0, now=11 * HOUR, chance=0) == Next("pending", 14 * HOUR, 7)
    assert after_attempt(500, place=1, first=0, now=99 * HOUR, chance=0) == Next("pending", 99 * HOUR, 9)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("٣", None),
        (format_datetime(datetime.fromtimestamp(1060, UTC), usegmt=True), 60),
        (format_datetime(datetime.fromtimestamp(900, UTC), usegmt=True), 0),
    ],
)
def test_a_retry_after_is_seconds_or_a_date(value: str, seconds: float | None) -> None:
    assert retry_after_s({"Retry-After": value}, now=1000.0) == seconds


@pytest.mark.parametrize(
    "secret",
    [
        "secret",
        "whsec_",
        "whsec_!!!",
        "whsec_c2hvcnQ=",
        "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0",
        "whsec_" + "A" * 100,
    ],
)
def test_a_bad_secret_stops_the_start(secret: str) -> None:
    with pytest.raises(ValueError, match="whsec_"):
        Settings(webhook_secret=secret)


def test_a_good_secret_and_a_good_allow_list_are_settings() -> None:
    settings = Settings(webhook_secret="whsec_" + "A" * 32, webhook_allow="localhost, 10.0.0.0/8")
    assert "AAAA" not in repr(settings)
    with pytest.raises(ValueError, match="no host"):
        Settings(webhook_allow="http://localhost")


def test_the_quick_second_attempt_is_made_however_long_the_first_one_hung() -> None:
    after = after_attempt(None, place=0, first=100.0, now=115.0, chance=0.0)
    assert (after.at, after.place) == (115.0, 1)
