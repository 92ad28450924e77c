"""The `Prefer` header in the forms that RFC 7240 allows, and in some that it does not."""

from __future__ import annotations

from time import perf_counter

import pytest

from api.preferences import Preference, read_preference

NOTHING = Preference()

FORMS: dict[str, tuple[list[str], Preference]] = {
    "no header": ([], NOTHING),
    "an empty header": ([""], NOTHING),
    "respond-async": (["respond-async"], Preference(0.0, "respond-async")),
    "names in any case": (["Respond-Async"], Preference(0.0, "respond-async")),
    "wait": (["wait=5"], Preference(5.0, "wait=5")),
    "space around": (["  wait = 5  "], Preference(5.0, "wait=5")),
    "a quoted value": (['wait="5"'], Preference(5.0, "wait=5")),
    "both in one header": (["respond-async, wait=10"], Preference(10.0, "respond-async, wait=10")),
    "both in two headers": (["wait=10", "respond-async"], Preference(10.0, "respond-async, wait=10")),
    "parameters": (["respond-async; priority=high; x"], Preference(0.0, "respond-async")),
    "a parameter named wait": (["handling=lenient; wait=7"], NOTHING),
    "a wait in quotes": (['note="a, wait=7", respond-async'], Preference(0.0, "respond-async")),
    "a wait in the quotes of a parameter": (['a=1; b="x, wait=7"'], NOTHING),
    "the first of several waits": (["wait=3, wait=9"], Preference(3.0, "wait=3")),
    "the first wait that is a number": (["wait=soon, wait=9"], Preference(9.0, "wait=9")),
    "other preferences": (["return=minimal, handling=strict"], NOTHING),
    "a wait over the limit": (["wait=61"], Preference(60.0, "wait=60")),
    "a wait of more digits than Python reads": ([f"wait={'9' * 5000}"], Preference(60.0, "wait=60")),
    "leading zeros": ([f"wait={'0' * 5000}7"], Preference(7.0, "wait=7")),
    "no wait at all": (["wait=0"], Preference(0.0, "wait=0")),
    "a negative wait": (["wait=-1"], NOTHING),
    "a fraction": (["wait=1.5"], NOTHING),
    "digits of another script": (["wait=٣"], NOTHING),
    "a wait without a value": (["wait, wait="], NOTHING),
    "a quote that is not closed": (['note="a, wait=7'], NOTHING),
    "stray commas": ([",, respond-async,"], Preference(0.0, "respond-async")),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_preference_is_read_in_this_form(name: str) -> None:
    headers, expected = FORMS[name]
    assert read_preference(headers) == expected


@pytest.mark.parametrize("text", [" ", ",", '"', '"\\', "=", ";", 'a="\\"'])
def test_a_long_header_costs_no_more_than_its_length(text: str) -> None:
    start = perf_counter()
    read_preference([text * 50_000])
    assert perf_counter() - start < 2
