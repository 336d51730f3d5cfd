"""Prices of events: hand-worked numbers, and exact enumeration of small mechanisms."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import pytest

from pegsynth.privacy import (
    BlockDraws,
    CappedDraws,
    ContingencyDraws,
    Diversity,
    Event,
    ImputationDraws,
    NoisyCounts,
    NotPrivate,
    PegsDraws,
    Selection,
    UnitBound,
    UnknownEvent,
    UrnDraws,
)
from pegsynth.privacy.recorded import total

ALPHA = {"alpha_numerator": 1, "alpha_denominator": 2}  # a = 1/2, eta = log 3
ETA = math.log(3)
ORDERS = (1.01, 1.5, 2, 4, 16, 64)


def pure(event: Event, k: int = 1) -> float | None:
    price = event.price("pure", rows_per_unit=k)
    return None if price is None else float(price)


def rho(event: Event, k: int = 1) -> float | None:
    price = event.price("zcdp", rows_per_unit=k)
    return None if price is None else float(price)


# K n S M draws (R3), K ceil(n/B) blocks of M (R4), M T visits (R5), K n (R9);
# datasets count like rows, and under a cap not at all (R13).
COUNTED = [
    (PegsDraws(features=13, rows=1000, sweeps=2, datasets=5, **ALPHA), 5 * 1000 * 2 * 13),
    (
        BlockDraws(features=13, rows=1001, block_size=10, sweeps=3, datasets=5, **ALPHA),
        5 * 101 * 13,
    ),
    (CappedDraws(features=13, visits=7, rows=10**6, sweeps=3, datasets=5, **ALPHA), 13 * 7),
    (CappedDraws(features=13, visits=7, hashings=3, **ALPHA), 3 * 13 * 7),
    (ContingencyDraws(features=13, rows=1000, datasets=5, **ALPHA), 5 * 1000),
]


@pytest.mark.parametrize(("event", "count"), COUNTED)
def test_counted_draws_cost_eta_each_and_an_eighth_of_its_square(event: Event, count: int) -> None:
    assert event.count == count
    assert pure(event) == pytest.approx(count * ETA, rel=1e-14)
    assert rho(event) == pytest.approx(count * ETA**2 / 8, rel=1e-14)


@pytest.mark.parametrize(("event", "count"), COUNTED)
def test_units_cost_k_and_k_squared(event: Event, count: int) -> None:
    # R12
    assert pure(event, 3) == pytest.approx(3 * count * ETA, rel=1e-14)
    assert rho(event, 3) == pytest.approx(9 * count * ETA**2 / 8, rel=1e-14)


def test_imputation_costs_half_the_square_and_ignores_the_unit() -> None:
    event = ImputationDraws(features=4, rows=10, datasets=2, **ALPHA)
    for k in (1, 5):
        assert pure(event, k) == pytest.approx(80 * ETA, rel=1e-14)
        assert rho(event, k) == pytest.approx(80 * ETA**2 / 2, rel=1e-14)


def test_urns_telescope() -> None:
    event = UrnDraws(features=4, visits=20, urns=3, alpha_numerator=1, alpha_denominator=1)
    assert pure(event) == pytest.approx(12 * math.log(21), rel=1e-14)
    each, at_once = 20 * math.log(2) ** 2 / 8, math.log(21) ** 2 / 8
    assert rho(event) == pytest.approx(12 * min(each, at_once), rel=1e-14)


def test_urns_under_a_rule_pay_every_draw() -> None:
    # R17: a = 1, T = 20: claim 3.05, realised 8.11.
    event = UrnDraws(features=1, visits=20, restricted=1, alpha_numerator=1, alpha_denominator=1)
    assert pure(event) == pytest.approx(20 * math.log(2), rel=1e-14)
    assert pure(event) > 8.11
    assert rho(event) == pytest.approx(20 * math.log(2) ** 2 / 8, rel=1e-14)


def test_laplace_and_gaussian_noise() -> None:
    laplace = NoisyCounts.laplace(Fraction(13, 2), cells=13, purpose="blocks")
    assert pure(laplace) == 2
    assert rho(laplace) == pytest.approx(13 * (2 / 13) ** 2 / 2, rel=1e-14)
    gaussian = NoisyCounts.gaussian(5, cells=13 * 12 // 2, purpose="order")
    assert pure(gaussian) is None
    assert rho(gaussian) == pytest.approx(13 * 12 / (4 * 25), rel=1e-14)


def test_laplace_scale_chosen_for_an_epsilon_costs_exactly_that() -> None:
    event = NoisyCounts.laplace(13 / Fraction(0.1), cells=13, purpose="blocks")
    assert pure(event) == 0.1


def test_selection() -> None:
    event = Selection.of(Fraction(1, 10), count=12, purpose="order")
    assert pure(event) == pytest.approx(1.2, rel=1e-14)
    assert rho(event) == pytest.approx(12 * 0.01 / 8, rel=1e-14)


def test_free_and_uncovered_events() -> None:
    assert pure(UnitBound(rows_per_unit=4)) == rho(UnitBound(rows_per_unit=4)) == 0
    for event in (
        Diversity(l=2, features=("a",)),
        NotPrivate.because("seeded"),
        UnknownEvent("quantum", {"kind": "quantum"}),
    ):
        assert pure(event) is None
        assert rho(event) is None
        assert total("pure", [COUNTED[0][0], event]) is None


def test_totals_add() -> None:
    events = [event for event, _ in COUNTED]
    expected = sum(count for _, count in COUNTED) * ETA
    assert float(total("pure", events)) == pytest.approx(expected, rel=1e-14)


# Exact enumeration: every outcome of a tiny mechanism on neighbours, in rational numbers.


def renyi(first: list[Fraction], second: list[Fraction], order: float) -> float:
    terms = (
        math.exp(order * math.log(p) + (1 - order) * math.log(q))
        for p, q in zip(first, second, strict=True)
    )
    return math.log(math.fsum(terms)) / (order - 1)


def small_counts() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for counts in itertools.product(range(3), repeat=3):
        for place in range(3):
            more = tuple(n + (i == place) for i, n in enumerate(counts))
            yield counts, more
            yield more, counts


def draw(counts: tuple[int, ...], alpha: Fraction) -> list[Fraction]:
    weights = [n + alpha for n in counts]
    return [w / sum(weights) for w in weights]


def sequences(counts: tuple[int, ...], alpha: Fraction, visits: int, urn: bool) -> list[Fraction]:
    """Probabilities of all sequences of `visits` values of one entry."""
    result = []
    for values in itertools.product(range(3), repeat=visits):
        state, probability = list(counts), Fraction(1)
        for value in values:
            probability *= draw(tuple(state), alpha)[value]
            state[value] += urn
        result.append(probability)
    return result


@pytest.mark.parametrize("alpha", [Fraction(1, 10), Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("urn", [False, True])
def test_prices_cover_the_enumerated_divergence(alpha: Fraction, urn: bool) -> None:
    visits = 3
    fields = {"alpha_numerator": alpha.numerator, "alpha_denominator": alpha.denominator}
    kind = UrnDraws if urn else CappedDraws
    event = kind(features=1, visits=visits, **fields)
    epsilon, bound = pure(event), rho(event)
    worst = 0.0
    for counts, other in small_counts():
        first = sequences(counts, alpha, visits, urn)
        second = sequences(other, alpha, visits, urn)
        ratio = max(math.log(p / q) for p, q in zip(first, second, strict=True))
        worst = max(worst, ratio)
        assert ratio <= epsilon * (1 + 1e-12)
        for order in ORDERS:
            assert renyi(first, second, order) <= order * bound * (1 + 1e-9)
    assert worst > 0.5 * epsilon  # the bound is not idle


def test_the_eighth_would_be_wrong_for_imputation() -> None:
    # R8: two fitted vectors may lie at opposite corners, so the range is 2 eta.
    alpha = Fraction(1, 2)
    first, second = ([(g + alpha) / (1 + 2 * alpha) for g in fit] for fit in ((1, 0), (0, 1)))
    one = ImputationDraws(features=1, rows=1, alpha_numerator=1, alpha_denominator=2)
    assert max(math.log(p / q) for p, q in zip(first, second, strict=True)) <= pure(one) * (
        1 + 1e-12
    )
    assert renyi(first, second, 1.01) > 1.01 * ETA**2 / 8
    for order in ORDERS:
        assert renyi(first, second, order) <= order * rho(one)
