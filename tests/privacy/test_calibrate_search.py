"""The search for the smallest alpha: right from any guess, and short from a good one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.errors import BudgetError
from pegsynth.privacy import (
    Allowance,
    BlockDraws,
    Budget,
    CappedDraws,
    Draws,
    ImputationDraws,
    PegsDraws,
    UrnDraws,
    calibrate,
)
from pegsynth.privacy.calibrate import _largest_numerator, _smallest

GUESSES = st.one_of(st.floats(0, 1e30), st.just(math.inf))


@given(st.integers(1, 2**61), GUESSES, st.sampled_from([1, 2]))
def test_any_guess_finds_the_smallest(answer, guess, categories):
    answer = min(answer, _largest_numerator(categories))
    assert _smallest(lambda p: p >= answer, 1 << 20, categories, guess) == answer


@given(st.integers(1, 2**61), st.integers(-3, 3))
def test_a_good_guess_asks_a_few_times(answer, off):
    asked = []

    def affordable(numerator):
        asked.append(numerator)
        return numerator >= answer

    assert _smallest(affordable, 1 << 20, 1, float(max(1, answer + off))) == answer
    # A double is off by at most 256 here.
    assert len(asked) <= 20
    assert answer in asked
    assert answer == 1 or answer - 1 in asked


@given(GUESSES)
def test_nothing_affordable(guess):
    with pytest.raises(BudgetError, match="64 bits"):
        _smallest(lambda p: False, 1 << 20, 3, guess)


@pytest.mark.parametrize("route", ["pure", "zcdp"])
@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 20.0, 1e5])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(
    "shape",
    [
        PegsDraws.shape(features=13, rows=100, sweeps=2, datasets=2),
        BlockDraws.shape(features=13, rows=105, block_size=10),
        CappedDraws.shape(features=13, rows=10**6, visits=5),
        UrnDraws.shape(features=13, rows=10**6, visits=50, urns=2, restricted=3),
        ImputationDraws.shape(features=13, rows=100),
    ],
    ids=lambda shape: shape.kind,
)
def test_the_smallest_on_the_very_prices_of_the_ledger(shape, k, epsilon, route):
    allowance = Budget(epsilon=epsilon, delta=1e-9).whole(route)
    found = calibrate(shape, allowance, rows_per_unit=k).alpha_numerator
    assert affordable(shape, allowance, found, k)
    assert found == 1 or not affordable(shape, allowance, found - 1, k)


def affordable(shape: Draws, allowance: Allowance, numerator: int, k: int) -> bool:
    price = shape.at(numerator, 1 << 20).price(allowance.route, rows_per_unit=k)
    return price is not None and price <= float_exact(allowance)


def float_exact(allowance: Allowance):
    from pegsynth.privacy.rounding import fraction_down

    return fraction_down(allowance.amount)
