"""Answers: draws folded into a reading, and the figures made from it, against hand-worked numbers."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.answers import argmax, choice_confidence, entropy, expectation, fold, score_confidence
from planner.formats import Distribution, Slot, distribution

DRAWS = [
    Distribution((0.8, 0.2), mass=0.9, is_label=True),
    Distribution((0.6, 0.4), mass=0.6, is_label=True),
    Distribution((0.3, 0.7), mass=0.3, is_label=True),
]


def dist(*probabilities: float) -> Distribution:
    return Distribution(probabilities, mass=1.0, is_label=True)


def simplex(most: int) -> st.SearchStrategy[list[float]]:
    """Probabilities of one to `most` alternatives."""
    weights = st.lists(st.integers(0, 1000), min_size=1, max_size=most).filter(any)
    return weights.map(lambda row: [weight / sum(row) for weight in row])


def test_probabilities_are_the_mean_over_draws() -> None:
    assert fold(DRAWS).probabilities == pytest.approx((1.7 / 3, 1.3 / 3))


def test_stderr_is_the_sample_deviation_over_the_root_of_the_draws() -> None:
    """Squares of 0.8, 0.6 and 0.3 around their mean sum to 0.38 / 3; over 2, rooted, over root 3."""
    expected = math.sqrt(0.38 / 3 / 2) / math.sqrt(3)
    assert fold(DRAWS).stderr == pytest.approx((expected, expected))


def test_one_draw_has_no_stderr_and_agrees_with_itself() -> None:
    reading = fold(DRAWS[:1])
    assert reading.stderr == (0.0, 0.0)
    assert reading.agreement == 1.0
    assert reading.draws == 1


def test_equal_draws_have_no_stderr() -> None:
    assert fold([dist(0.1, 0.9)] * 5).stderr == (0.0, 0.0)


def test_agreement_is_the_share_of_draws_with_the_best_of_the_mean() -> None:
    assert fold(DRAWS).agreement == pytest.approx(2 / 3)


def test_the_best_alternative_is_the_mean_s_even_against_most_draws() -> None:
    reading = fold([dist(0.4, 0.6), dist(0.4, 0.6), dist(0.99, 0.01)])
    assert reading.best == 0
    assert reading.agreement == pytest.approx(1 / 3)


def test_entropy_is_that_of_the_mean() -> None:
    assert fold([dist(1.0, 0.0), dist(0.0, 1.0)]).entropy == pytest.approx(math.log(2))


def test_label_mass_is_the_mean_over_draws() -> None:
    assert fold(DRAWS).label_mass == pytest.approx(0.6)


def test_the_top_pick_is_a_label_only_when_it_is_in_every_draw() -> None:
    assert fold(DRAWS).is_label
    assert not fold([*DRAWS, Distribution((1.0, 0.0), 0.1, is_label=False)]).is_label


def test_of_equals_the_first_is_best() -> None:
    assert argmax([0.25, 0.25, 0.25, 0.25]) == 0
    assert argmax([0.2, 0.4, 0.4]) == 1


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(any), min_size=1, max_size=8), st.data()
)
def test_the_order_of_draws_changes_no_figure(weights: list[tuple[int, int]], data: st.DataObject) -> None:
    draws = [dist(a / (a + b), b / (a + b)) for a, b in weights]
    assert fold(data.draw(st.permutations(draws))) == fold(draws)


@pytest.mark.parametrize(
    ("probabilities", "nats"),
    [((0.5, 0.5), 0.693147), ((0.25, 0.25, 0.25, 0.25), 1.386294), ((0.75, 0.25), 0.562335), ((1.0, 0.0), 0)],
)
def test_entropy_is_in_nats(probabilities: tuple[float, ...], nats: float) -> None:
    assert entropy(probabilities) == pytest.approx(nats, abs=1e-6)


@pytest.mark.parametrize("certain", [(1.0,), (1.0, 0.0), (0.0, 0.0, 1.0)])
def test_the_entropy_of_a_certain_answer_is_zero_without_a_sign(certain: tuple[float, ...]) -> None:
    assert str(entropy(certain)) == "0.0"


@pytest.mark.parametrize(
    ("probabilities", "confidence"),
    [
        ((1.0,), 1),
        ((0.5, 0.5), 0),
        ((0.75, 0.25), 0.5),
        ((0.7, 0.2, 0.1), 0.55),
        ((0.25, 0.25, 0.25, 0.25), 0),
        ((0.0, 1.0, 0.0), 1),
        ((0.4, 0.3, 0.2, 0.1), 0.2),
    ],
)
def test_choice_confidence_is_typesafe_s(probabilities: tuple[float, ...], confidence: float) -> None:
    assert choice_confidence(probabilities) == pytest.approx(confidence)


@pytest.mark.parametrize(
    ("probabilities", "confidence"),
    [
        ((1.0,), 1),
        ((0.5, 0.5), 0),
        ((0.75, 0.25), 0.5),
        ((0.0, 0.0, 1.0), 1),
        ((0.1, 0.2, 0.7), 0.4),  # mode 2, spread 0.4, D 2/3
        ((0.0, 0.5, 0.5, 0.0, 0.0), 1 - 0.5 / 1.2),  # mode 1, spread 0.5, D 6/5
        ((0.1, 0.2, 0.4, 0.3), 0.3),  # mode 2, spread 0.2 + 0.2 + 0.3, D 1
        ((1 / 3, 1 / 3, 1 / 3), 0),  # mode 0, spread 1 over D 2/3: under zero is zero
        ((0.5, 0.0, 0.0, 0.5), 0),
    ],
)
def test_score_confidence_is_typesafe_s(probabilities: tuple[float, ...], confidence: float) -> None:
    assert score_confidence(probabilities) == pytest.approx(confidence)


@settings(deadline=None, max_examples=100)
@given(simplex(10))
def test_confidence_lies_between_zero_and_one(probabilities: list[float]) -> None:
    for confidence in (choice_confidence(probabilities), score_confidence(probabilities)):
        assert 0 <= confidence <= 1


def test_draws_that_cancel_out_have_no_confidence_and_not_less() -> None:
    """Each sums to one but for its last bit, and so does their mean: a sign here would reach the client."""
    slot, high, low = Slot(0, (1, 2)), math.log(0.2), math.log(0.008)
    draws = [distribution(slot, {1: low, 2: high}, 2), distribution(slot, {1: high, 2: low}, 1)]
    assert str(choice_confidence(fold(draws).probabilities)) == "0.0"


@pytest.mark.parametrize(
    ("probabilities", "level"), [((1.0,), 0), ((0.0, 0.0, 1.0), 2), ((0.2, 0.3, 0.5), 1.3), ((0.5, 0.5), 0.5)]
)
def test_a_score_is_the_sum_of_level_times_probability(
    probabilities: tuple[float, ...], level: float
) -> None:
    assert expectation(probabilities) == pytest.approx(level)
