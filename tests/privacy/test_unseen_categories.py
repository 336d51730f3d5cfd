"""The chance of finding a category that one unit alone has, against exact sums (R29)."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.errors import ParameterError
from pegsynth.privacy import Budget, CategoriesFound, Ledger, NoisyCounts, UnitBound
from pegsynth.privacy.conversion import epsilon_at, rho_at
from pegsynth.privacy.recorded import delta_taken
from pegsynth.privacy.unseen_categories import (
    gaussian_tail,
    passing,
    smallest_threshold,
    unseen_delta,
)


def exact_tail(variance: Fraction, least: int) -> Decimal:
    """Add up weights with 110 digits until they no longer count."""
    with localcontext() as context:
        context.prec = 110

        def weight(value: int) -> Decimal:
            exponent = Fraction(value * value) / (2 * variance)
            return (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()

        reach = least + 40 + int(25 * float(variance) ** 0.5)
        half = [weight(value) for value in range(1, reach)]
        return sum(half[least - 1 :], Decimal(0)) / (1 + 2 * sum(half, Decimal(0)))


@pytest.mark.parametrize(
    "variance", [Fraction(1, 9), Fraction(1), Fraction(49, 4), Fraction(10**4)]
)
@pytest.mark.parametrize("least", [1, 2, 7, 40, 600])
def test_tails_are_rounded_up_and_hardly(variance, least):
    if least**2 / variance > 2 * 200:
        least = 3
    exact, ours = exact_tail(variance, least), gaussian_tail(variance, least)
    assert ours >= exact
    # The geometric series is what costs most, where the noise is large beside 64 terms.
    assert ours <= exact * (Decimal("1.04") if variance > 100 and least > 40 else Decimal("1.6"))
    if variance <= 13:
        assert ours <= exact * (1 + Decimal("1e-9"))


def partitions(rows: int, largest: int):
    """Yield every way to deal rows to categories."""
    if rows == 0:
        yield ()
    for first in range(min(rows, largest), 0, -1):
        for rest in partitions(rows - first, first):
            yield (first, *rest)


@settings(max_examples=60, deadline=None)
@given(
    variance=st.fractions(min_value=Fraction(1, 4), max_value=400, max_denominator=8),
    threshold=st.integers(1, 60),
    rows=st.integers(1, 9),
)
def test_no_way_to_deal_rows_is_worse(variance, threshold, rows):
    if rows > threshold:
        assert unseen_delta(variance, threshold, rows) == 1
        return
    chances = {n: passing(variance, threshold, n) for n in range(1, rows + 1)}
    # Fractions, as sums of decimals would be rounded.
    worst = max(sum(Fraction(chances[n]) for n in way) for way in partitions(rows, rows))
    claimed = Fraction(unseen_delta(variance, threshold, rows))
    assert min(worst, 1) <= claimed <= worst * (1 + Fraction(1, 10**50))


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
@pytest.mark.parametrize(
    "variance", [Fraction(1, 4), Fraction(25), Fraction(10**4), Fraction(10**12)]
)
def test_the_threshold_is_the_smallest_that_is_covered(variance, rows):
    delta = Fraction(1, 10**10)
    threshold = smallest_threshold(variance, delta, rows)
    assert unseen_delta(variance, threshold, rows) <= Decimal("1e-10")
    assert unseen_delta(variance, threshold - 1, rows) > Decimal("1e-10")


@pytest.mark.parametrize("variance", [Fraction(2**256), Fraction(1, 2**256)])
def test_figures_that_no_release_has_promise_nothing_they_cannot(variance):
    # A ledger from elsewhere may hold anything.
    assert 0 < unseen_delta(variance, 2**256, 2**255) <= 1
    assert unseen_delta(Fraction(2**256), 2, 1) == 1


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1)])
def test_a_delta_that_is_none_is_refused(delta):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        smallest_threshold(Fraction(1), delta)


FOUND = CategoriesFound.of(20.0, threshold=150, features=("town", "product"))


def test_rho_adds_over_features_and_grows_with_the_square_of_a_unit():
    assert float(FOUND.price("zcdp")) == pytest.approx(2 / 800)
    assert float(FOUND.price("zcdp", rows_per_unit=3)) == pytest.approx(9 * 2 / 800)
    assert FOUND.price("pure") is None


def test_delta_adds_over_features_and_is_taken_out_of_the_stated_one():
    each = unseen_delta(Fraction(400), 150)
    assert delta_taken((FOUND, FOUND)) == Fraction(each) * 4
    delta = float(4 * each)
    guarantee = Ledger((FOUND,), delta=delta).guarantee
    assert guarantee.delta == delta
    assert guarantee.epsilon == pytest.approx(epsilon_at(guarantee.rho, delta=delta / 2))
    assert guarantee.epsilon > epsilon_at(guarantee.rho, delta=delta)
    units = Ledger((UnitBound(rows_per_unit=2), FOUND), delta=1e-9).guarantee
    assert units.rho == pytest.approx(4 * 2 / 800)


def test_a_search_needs_a_delta_and_enough_of_it():
    assert Ledger((FOUND,)).guarantee.kind == "none"
    assert "state a delta" in Ledger((FOUND,)).not_covered[0]
    short = Ledger((FOUND,), delta=float(2 * unseen_delta(Fraction(400), 150)) * (1 - 1e-9))
    assert short.guarantee.kind == "none"
    assert "state a larger one" in short.not_covered[0]


def test_runs_together_add_their_deltas():
    ledger = Ledger((FOUND, NoisyCounts.gaussian(20.0, cells=1, purpose="total")), delta=1e-9)
    taken = delta_taken(ledger.events)
    both = Ledger.combine([ledger] * 30).guarantee
    assert both.delta >= Fraction(1e-9) + 29 * Fraction(taken) * (1 - Fraction(1, 10**12))
    assert both.delta < 1.1e-9
    assert both.epsilon == pytest.approx(
        epsilon_at(both.rho, delta=float(Fraction(1e-9) - Fraction(taken))), rel=1e-9
    )


def test_a_budget_converts_what_is_left():
    budget = Budget(epsilon=1.0, delta=1e-9, delta_taken=Fraction(1e-9) / 10)
    assert float(budget.whole("zcdp").amount) == pytest.approx(rho_at(1.0, delta=0.9e-9))


def test_the_ledger_keeps_it():
    ledger = Ledger((FOUND,), delta=1e-9)
    assert Ledger.from_json(ledger.to_json()) == ledger
    assert "noisy counts above 150 became categories" in ledger.explain()
    assert "of delta" in ledger.explain()
    with pytest.raises(ParameterError, match="no feature"):
        CategoriesFound.of(2.0, threshold=3, features=())
    with pytest.raises(ParameterError, match="threshold"):
        CategoriesFound.of(2.0, threshold=0, features=("town",))
