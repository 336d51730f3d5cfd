"""Residuals of tables (R27): exact numbers, exact prices, and twins that charge too little.

The price is held against the exact law of the shipped noise, for every table of a few rows on
tiny domains and every neighbour: the log-ratio of the worst output under Laplace noise, the
divergence at several orders under Gaussian noise.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from pegsynth.auditing.divergence import ROUNDING, all_tables
from pegsynth.auditing.exact_laws import noise_law, shifted
from pegsynth.auditing.paths import ORDERS
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.mechanisms.noise import noise_of
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.mechanisms.residuals import centred, residual_of
from pegsynth.privacy import Budget, Ledger, NoisyResiduals, UnitBound
from pegsynth.privacy.privacy_json import verify
from pegsynth.random import RandomStream

DOMAINS = [(2,), (5,), (2, 2), (2, 3), (3, 4), (2, 2, 2), (2, 3, 2)]


def slow_residual(counts, levels):
    """Q n with Q written out, in Python's own integers."""
    matrix = [[1]]
    for count in levels:
        one = [[count * (i == j) - 1 for j in range(count)] for i in range(count)]
        matrix = [
            [a * b for a, b in product(upper, lower)] for upper, lower in product(matrix, one)
        ]
    return [sum(a * int(b) for a, b in zip(line, counts, strict=True)) for line in matrix]


def contrasts(counts, levels):
    """Twin: differences from the last level of each feature, one for each degree of freedom."""
    table = counts.reshape(levels)
    for axis in range(len(levels)):
        last = np.take(table, [-1], axis=axis)
        table = np.delete(table, -1, axis=axis) - last
    return table.ravel()


def counted(table, levels):
    counts = np.zeros(levels, dtype=np.int64)
    for row in table:
        counts[row] += 1
    return counts.ravel()


def event_of(levels, *, pure, scale=6.0):
    kind = NoisyResiduals.laplace if pure else NoisyResiduals.gaussian
    names = tuple(f"x{i}" for i in range(len(levels)))
    return kind(scale, purpose="pairs", features=names, levels=levels)


def loss(first, second, event):
    """Worst log-ratio of an output (Laplace), or worst divergence over its order (Gaussian)."""
    noise = noise_of(event)
    shifts = [abs(int(a) - int(b)) for a, b in zip(first, second, strict=True) if a != b]
    if event.mechanism == "discrete-gaussian":
        return max(math.fsum(shifted(noise, s, order) for s in shifts) for order in ORDERS)
    law = noise_law(noise)
    # Far out the ratio of neighbouring sizes is the same everywhere; here it is taken at 0.
    return math.fsum(math.log(law[0] / law[s]) for s in shifts)


def price(event, unit=1):
    route = "pure" if event.mechanism == "discrete-laplace" else "zcdp"
    return float(event.price(route, rows_per_unit=unit))


def worst(take, levels, *, pure, unit=1, replace_one=False):
    event = event_of(levels, pure=pure)
    rows = [each for each in all_tables(levels, unit) if len(each) == unit]
    found = 0.0
    for table in all_tables(levels, 1):
        start = take(counted(table, levels), levels)
        others = [take(counted(table + more, levels), levels) for more in rows]
        if replace_one:
            pairs = [(a, b) for a in others for b in others]
        else:
            pairs = [(start, other) for other in others]
        found = max(found, *(loss(a, b, event) for a, b in pairs))
    return found, event


@pytest.mark.parametrize("levels", DOMAINS)
def test_a_residual_is_the_product_of_its_matrices(levels):
    counts = np.random.default_rng(1).integers(0, 1 << 20, math.prod(levels))
    assert residual_of(counts, levels).tolist() == slow_residual(counts, levels)


@pytest.mark.parametrize("levels", DOMAINS)
def test_every_margin_of_a_residual_is_nothing_and_the_rest_is_told_by_margins(levels):
    counts = np.random.default_rng(2).integers(0, 1000, math.prod(levels))
    table = residual_of(counts, levels).reshape(levels)
    for axis in range(len(levels)):
        assert not table.sum(axis=axis).any()
    # A product of one-way shares has the residual that its margins give it, and no other.
    shares = [np.random.default_rng(3).dirichlet(np.ones(count)) for count in levels]
    both = shares[0]
    for line in shares[1:]:
        both = np.multiply.outer(both, line)
    apart = shares[0] - 1 / levels[0]
    for line, count in zip(shares[1:], levels[1:], strict=True):
        apart = np.multiply.outer(apart, line - 1 / count)
    assert centred(both.ravel(), levels) == pytest.approx(apart.ravel(), abs=1e-12)


@pytest.mark.parametrize("levels", DOMAINS)
def test_every_row_moves_a_residual_alike(levels):
    event = event_of(levels, pure=False)
    for cell in range(math.prod(levels)):
        one = np.zeros(math.prod(levels), dtype=np.int64)
        one[cell] = 1
        moved = residual_of(one, levels)
        assert int((moved**2).sum()) == event.moves[1]
        assert int(np.abs(moved).sum()) == event.moves[0]


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("levels", [(2, 2), (2, 3), (3, 3), (2, 2, 2)])
def test_the_price_is_what_the_worst_neighbour_costs(levels, pure):
    found, event = worst(residual_of, levels, pure=pure)
    assert found <= price(event) * (1 + ROUNDING)
    assert found == pytest.approx(price(event), rel=1e-6)  # no cheaper price would hold


@pytest.mark.parametrize("pure", [True, False])
def test_units_and_replaced_rows_cost_what_the_factors_say(pure):
    levels = (2, 3)
    found, event = worst(residual_of, levels, pure=pure, unit=2)
    assert found == pytest.approx(price(event, unit=2), rel=1e-6)
    replaced, event = worst(residual_of, levels, pure=pure, replace_one=True)
    assert replaced <= (2 if pure else 4) * price(event) * (1 + ROUNDING)
    # Of two by two levels both factors are reached: a row may turn the sign of every cell.
    replaced, event = worst(residual_of, (2, 2), pure=pure, replace_one=True)
    assert replaced == pytest.approx((2 if pure else 4) * price(event), rel=1e-6)


def in_full(counts, _levels):
    """Twin: the counts themselves, blown up to the size of a residual."""
    return counts * int(np.prod(_levels))


@pytest.mark.parametrize("twin", [contrasts, in_full])
def test_twins_cost_more_than_a_residual(twin):
    """Contrasts of the size of a residual, and tables in full, charged as a residual is."""

    def blown_up(counts, levels):
        found = twin(counts, levels)
        return found * int(np.prod(levels)) if twin is contrasts else found

    found, event = worst(blown_up, (2, 3), pure=False)
    assert found > 1.5 * price(event)


def test_a_twin_that_takes_the_length_for_the_sum_is_caught():
    """Laplace noise hides the absolute sum of what a row moves, not its length."""
    found, event = worst(residual_of, (3, 3), pure=True)
    too_little = math.sqrt(event.moves[1]) / 6.0
    assert found > 1.2 * too_little


@pytest.mark.parametrize("route", ["pure", "zcdp"])
@pytest.mark.parametrize("unit", [1, 3])
def test_the_filter_charges_the_part_that_was_asked_for(route, unit):
    delta = None if route == "pure" else 1e-9
    whole = Budget(epsilon=2.0, delta=delta).whole(route)
    budget_filter = PrivacyFilter(whole, RandomStream(1), rows_per_unit=unit)
    counts = np.array([5, 0, 2, 7, 1, 0], dtype=np.int64)
    about = {"purpose": "pairs", "features": (0, 1), "levels": (2, 3)}
    noisy, deviation = budget_filter.measure_residual(counts, 0.5, **about)
    (event,) = budget_filter.done
    assert price(event, unit) == pytest.approx(0.5 * float(whole.amount), rel=1e-9)
    assert len(noisy) == 6
    assert noisy.dtype == np.int64
    size = Fraction(event.scale_numerator, event.scale_denominator)
    variance = 2 * size**2 if route == "pure" else size
    assert deviation**2 == pytest.approx(float(variance), rel=1e-9)
    with pytest.raises(BudgetError):
        budget_filter.measure_residual(counts, 0.6, **about)
    bound = (UnitBound(rows_per_unit=unit),) if unit > 1 else ()
    ledger = Ledger((*bound, *budget_filter.events), delta=delta or 0.0)
    assert ledger.guarantee.epsilon == pytest.approx(2.0, rel=1e-6)
    assert verify(ledger.to_json()) == []


def test_a_residual_needs_two_levels_of_every_feature():
    with pytest.raises(ParameterError, match="one level"):
        event_of((2, 1), pure=True)
    with pytest.raises(ParameterError, match="one figure for each"):
        NoisyResiduals.laplace(1.0, purpose="pairs", features=("a",), levels=(2, 2))
    with pytest.raises(OverflowError):
        residual_of(np.zeros(1 << 24, dtype=np.int64), (1 << 12, 1 << 12))


def test_gaussian_noise_on_a_residual_has_no_pure_price():
    assert event_of((2, 2), pure=False).price("pure") is None
    ledger = Ledger((event_of((2, 2), pure=False),), delta=0.0)
    assert ledger.guarantee.kind == "none"
