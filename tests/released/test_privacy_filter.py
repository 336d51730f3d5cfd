"""The privacy filter: every path costs at most what was put in; the ledger says so (R6, R10-R12).

Prices are exact. Noise itself is tested with the sampler; here it is only looked at once, at
the false-alarm rate `ALPHA`.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noise_laws import gaussian, laplace
from pegsynth.errors import BudgetError
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.privacy import Allowance, Budget, Ledger, NoisyCounts, Selection, UnitBound, Unspent
from pegsynth.privacy.conversion import rho_at
from pegsynth.privacy.privacy_json import verify
from pegsynth.random import RandomStream
from significance import outcomes_fit

DELTA = 1e-9
routes = pytest.mark.parametrize("route", ["pure", "zcdp"])
units = pytest.mark.parametrize("unit", [1, 3])


def budget_of(route, epsilon=2.0):
    return Budget(epsilon=epsilon, delta=None if route == "pure" else DELTA)


def filter_of(route, *, epsilon=2.0, unit=1, seed=1):
    whole = budget_of(route, epsilon).whole(route)
    return PrivacyFilter(whole, RandomStream(seed), rows_per_unit=unit)


def claim(budget_filter, unit=1):
    bound = (UnitBound(rows_per_unit=unit),) if unit > 1 else ()
    return Ledger(
        (*bound, *budget_filter.events), delta=DELTA if budget_filter.route == "zcdp" else 0.0
    )


def spent(budget_filter, unit=1):
    """Prices of all that was done, in the privacy filter's own currency."""
    done = [event for event in budget_filter.events if not isinstance(event, Unspent)]
    return sum(Fraction(event.price(budget_filter.route, rows_per_unit=unit)) for event in done)


# What a part buys


def test_the_noise_of_a_part_by_hand():
    """Pure: b = k/(share eps), deviation b sqrt(2). Else sigma = k/sqrt(2 share rho)."""
    pure = Allowance("pure", Fraction(2))
    assert Price(pure).deviation(0.25) == pytest.approx(math.sqrt(2) * 2)
    assert Price(pure, 3).deviation(0.25) == pytest.approx(math.sqrt(2) * 6)
    zcdp = Allowance("zcdp", Fraction(1, 2))
    assert Price(zcdp).deviation(0.25) == pytest.approx(2.0)
    assert Price(zcdp, 3).deviation(0.25) == pytest.approx(6.0)


@routes
@units
def test_a_measurement_pays_its_share_and_says_its_noise(route, unit):
    budget_filter = filter_of(route, unit=unit)
    _, deviation = budget_filter.measure(np.array([5, 0]), 0.25, purpose="block")
    assert deviation == budget_filter.deviation(0.25)
    event = budget_filter.events[0]
    assert isinstance(event, NoisyCounts)
    assert (event.cells, event.purpose) == (1, "block")
    whole = budget_of(route).whole(route).amount
    assert float(spent(budget_filter, unit) / whole) == pytest.approx(0.25, rel=1e-12)


@routes
@units
def test_a_choice_pays_at_most_its_share(route, unit):
    """Pure: eps_s = share eps/k. Else eps_s = sqrt(8 share rho)/k; the unit brings k or k^2."""
    budget_filter = filter_of(route, unit=unit)
    budget_filter.choose([3, 1], 0.1, purpose="heads")
    event = budget_filter.events[0]
    assert isinstance(event, Selection)
    whole = float(budget_of(route).whole(route).amount)
    epsilon = event.epsilon_numerator / event.epsilon_denominator
    expected = 0.1 * whole if route == "pure" else math.sqrt(0.8 * whole)
    assert epsilon == pytest.approx(expected / unit, rel=1e-9)
    assert epsilon <= expected / unit
    assert 0.1 - 1e-9 < float(spent(budget_filter, unit)) / whole <= 0.1


def test_noise_and_choices_are_those_of_the_events():
    """Two fits, at rate ALPHA each; the twin is noise of another law."""
    budget_filter = filter_of("pure", epsilon=4.0)
    noisy, _ = budget_filter.measure(np.zeros(20_000, dtype=np.int64), 0.125, purpose="block")
    inside = [int(n) for n in noisy if abs(n) <= 60]
    law = {k: float(share) for k, share in laplace(2.0, 60).items()}
    assert outcomes_fit(inside, law)
    assert not outcomes_fit(inside, {k: float(p) for k, p in gaussian(2.8, 60).items()})
    chosen = [budget_filter.choose([0, 2], 1e-4, purpose="heads") for _ in range(4_000)]
    epsilon = (
        budget_filter.events[1].epsilon_numerator / budget_filter.events[1].epsilon_denominator
    )
    odds = math.exp(epsilon)
    assert outcomes_fit(chosen, {0: 1 / (1 + odds), 1: odds / (1 + odds)})


# The filter


@routes
def test_more_than_what_is_left_is_refused(route):
    budget_filter = filter_of(route)
    budget_filter.measure(np.zeros(1, dtype=np.int64), 0.7, purpose="block")
    before = budget_filter.events
    with pytest.raises(BudgetError, match="more than what is left"):
        budget_filter.measure(np.zeros(1, dtype=np.int64), 0.3001, purpose="block")
    with pytest.raises(BudgetError, match="more than what is left"):
        budget_filter.choose([0, 1], 0.3001, purpose="heads")
    assert budget_filter.events == before
    budget_filter.measure(np.zeros(1, dtype=np.int64), 0.29999, purpose="block")
    assert 0 < budget_filter.left < 1.1e-5


def test_a_choice_too_small_to_be_one_is_refused():
    with pytest.raises(BudgetError, match="too small"):
        filter_of("pure", epsilon=1e-9).choose([0, 1], 1e-6, purpose="heads")


@routes
@units
def test_an_untouched_purse_claims_its_whole(route, unit):
    """Otherwise an outcome on which nothing is spent would claim less than others cost."""
    budget_filter = filter_of(route, unit=unit)
    assert [type(event) for event in budget_filter.events] == [Unspent]
    assert 2.0 * (1 - 1e-9) < claim(budget_filter, unit).epsilon <= 2.0


@given(
    route=st.sampled_from(["pure", "zcdp"]),
    unit=st.integers(1, 4),
    epsilon=st.floats(0.01, 50),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_adaptive_path_claims_the_stated_epsilon(route, unit, epsilon, seed):
    """Amounts and questions follow the answers; the claim does not move (R6, R11)."""
    words = np.random.default_rng(seed)
    budget_filter = filter_of(route, epsilon=epsilon, unit=unit, seed=seed)
    share = 0.05
    for _ in range(words.integers(0, 12)):
        counts = words.integers(0, 9, 4)
        if share > budget_filter.left:
            break
        if words.random() < 0.4:
            share *= (
                1.5 if budget_filter.choose(counts.tolist(), share, purpose="heads") % 2 else 0.5
            )
        else:
            noisy, _ = budget_filter.measure(counts, share, purpose="block")
            share *= 2 if noisy[0] > noisy[1] else 0.7
    whole = budget_of(route, epsilon).whole(route).amount
    assert spent(budget_filter, unit) <= whole
    ledger = claim(budget_filter, unit)
    assert epsilon * (1 - 1e-9) < ledger.epsilon <= epsilon
    assert verify(ledger.to_json()) == []


def test_a_purse_that_forgets_what_is_left_claims_less():
    """The broken twin: without `Unspent` the claim would depend on the path."""
    claims = []
    for shares in ((0.1,), (0.1, 0.8)):
        budget_filter = filter_of("zcdp")
        for share in shares:
            budget_filter.measure(np.zeros(1, dtype=np.int64), share, purpose="block")
        claims.append(Ledger(budget_filter.events[:-1], delta=DELTA).epsilon)
        assert 2.0 * (1 - 1e-9) < claim(budget_filter).epsilon <= 2.0
    assert claims[0] < 0.5 * claims[1]


# What is left over, as an event


def test_unspent_is_rounded_up_and_priced_in_its_own_currency_only():
    long = Fraction(10**40 // 3, 10**40)
    event = Unspent.of(long, route="pure")
    amount = Fraction(event.amount_numerator, event.amount_denominator)
    assert long < amount <= long + Fraction(1, 10**30)
    assert float(event.price("pure")) == pytest.approx(1 / 3)
    assert event.price("zcdp") is None
    other = Unspent.of(Fraction(1, 3), route="zcdp")
    assert float(other.price("zcdp")) == pytest.approx(1 / 3)
    assert other.price("pure") is None


def test_unspent_is_for_a_unit_with_all_its_rows():
    """It was taken off the whole, which is the unit's already (R12)."""
    for route in ("pure", "zcdp"):
        event = Unspent.of(Fraction(1, 4), route=route)
        assert event.price(route, rows_per_unit=5) == event.price(route)


def test_an_amount_that_is_short_stays_as_it_is():
    """A reservation of a stated epsilon must not come out a hair above it."""
    for epsilon in (0.1, 1e-3, 7.0):
        event = Unspent.of(Fraction(epsilon), route="pure")
        assert Fraction(event.amount_numerator, event.amount_denominator) == Fraction(epsilon)
        assert Ledger((event,)).epsilon == epsilon


def test_the_smallest_amount_is_still_an_amount():
    event = Unspent.of(Fraction(1, 10**50), route="pure")
    assert (event.amount_numerator, event.amount_denominator) == (1, 10**30)


def test_amounts_of_different_currencies_add_up_as_whole_runs_alone():
    """A path that spent the rest differently might have cost more in the other currency."""
    pure = Ledger((Unspent.of(Fraction(1), route="pure"),))
    zcdp = Ledger((Unspent.of(Fraction(rho_at(1.0, delta=DELTA)), route="zcdp"),), delta=DELTA)
    mixed = Ledger((*pure.events, *zcdp.events), delta=DELTA)
    assert mixed.guarantee.kind == "none"
    assert "does not add up" in mixed.not_covered[0]
    assert Ledger.combine([pure, zcdp]).rho == pytest.approx(0.5 + zcdp.rho)
    assert Ledger.combine([pure, pure]).epsilon == 2
    assert 1 < Ledger.combine([zcdp, zcdp]).epsilon < 2
    edited = Ledger(zcdp.events)
    assert edited.guarantee.kind == "none"
    assert "state a delta" in edited.not_covered[0]
    # Beside parts that have a pure price, a pure rest adds up under a delta as well.
    laplace_noise = NoisyCounts.laplace(1.0, cells=1, purpose="marginals")
    assert Ledger((*pure.events, laplace_noise), delta=DELTA).epsilon == 2
