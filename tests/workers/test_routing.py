from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest

from workers.routing import POLICIES
from workers.routing.policy import Prefix
from workers.routing.prefix import LOAD_FACTOR, SHORT_TOKENS, by_prefix


@dataclass(slots=True)
class Engine:
    url: str
    in_flight: int = 0


def pool(count: int) -> list[Engine]:
    return [Engine(f"http://engine-{number}:8000") for number in range(count)]


def prefixes(count: int, tokens: int = 1000) -> list[Prefix]:
    chance = Random(7)
    return [Prefix(chance.getrandbits(64), tokens) for _ in range(count)]


def test_reads_of_one_prompt_go_to_one_engine_while_it_is_not_too_loaded() -> None:
    engines = pool(4)
    for prefix in prefixes(50):
        assert len({by_prefix(engines, prefix).url for _ in range(5)}) == 1


def test_the_order_in_which_engines_are_listed_changes_nothing() -> None:
    engines = pool(5)
    for prefix in prefixes(50):
        assert by_prefix(engines, prefix).url == by_prefix(engines[::-1], prefix).url


def test_prompts_spread_evenly() -> None:
    engines = pool(4)
    counts = Counter(by_prefix(engines, prefix).url for prefix in prefixes(4000))
    assert max(counts.values()) < 1.1 * 1000
    assert min(counts.values()) > 0.9 * 1000


def test_an_engine_that_goes_takes_only_its_own_prompts_along() -> None:
    engines = pool(5)
    before = {prefix.key: by_prefix(engines, prefix).url for prefix in prefixes(500)}
    left = engines[1:]
    for prefix in prefixes(500):
        if before[prefix.key] != engines[0].url:
            assert by_prefix(left, prefix).url == before[prefix.key]


def test_no_engine_has_more_than_its_bounded_share_whatever_is_asked() -> None:
    engines = pool(4)
    one = prefixes(1)[0]
    for _ in range(400):
        by_prefix(engines, one).in_flight += 1
    mean = sum(engine.in_flight for engine in engines) / len(engines)
    assert max(engine.in_flight for engine in engines) <= LOAD_FACTOR * mean + 1


def test_an_engine_over_the_bound_passes_the_read_on() -> None:
    engines = pool(3)
    prefix = prefixes(1)[0]
    first = by_prefix(engines, prefix)
    first.in_flight = 50
    assert by_prefix(engines, prefix) is not first


def test_a_short_prompt_goes_to_the_less_loaded_of_two() -> None:
    engines = pool(2)
    short = Prefix(key=1, tokens=SHORT_TOKENS - 1)
    engines[0].in_flight, engines[1].in_flight = 4, 3
    assert by_prefix(engines, short) is engines[1]
    engines[0].in_flight = 2
    assert by_prefix(engines, short) is engines[0]


def test_least_loaded_takes_the_first_listed_of_equals() -> None:
    engines = pool(3)
    choose = POLICIES["least-loaded"]()
    engines[0].in_flight = 1
    assert choose(engines, prefixes(1)[0]) is engines[1]


def test_round_robin_takes_each_in_its_turn() -> None:
    engines = pool(3)
    choose = POLICIES["round-robin"]()
    assert [choose(engines, prefixes(1)[0]) for _ in range(6)] == [*engines, *engines]


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_takes_a_pool_of_one(name: str) -> None:
    engines = pool(1)
    engines[0].in_flight = 100
    assert POLICIES[name]()(engines, prefixes(1)[0]) is engines[0]
