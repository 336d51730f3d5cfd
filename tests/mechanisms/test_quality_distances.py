"""Distances to what was published (R34): enumerated on tiny tables, priced, and covered."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy import stats

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.mechanisms.quality_distances import (
    buy,
    cell_counts,
    distance,
    expected_counts,
    settle_quality,
)
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from significance import ALPHA

CELLS = 4


def schema(unit=None, k=1):
    columns = (
        *((Feature(unit, role="identifier"),) if unit else ()),
        Feature("a", categories=("0", "1")),
        Feature("b", categories=("0", "1", "2")),
        Feature("c", categories=tuple(map(str, range(5)))),
    )
    return Schema(columns, unit=unit, rows_per_unit=k)


def tables(most):
    """Every table of up to `most` rows on four cells, as counts."""
    for rows in range(most + 1):
        for cells in combinations_with_replacement(range(CELLS), rows):
            yield np.bincount(np.array(cells, dtype=np.int64), minlength=CELLS)


def neighbours(most):
    for counts in tables(most):
        for cell in range(CELLS):
            more = counts.copy()
            more[cell] += 1
            yield counts, more


def moved(figure):
    """The most that one row moves a figure, over tiny tables and expectations."""
    expectations = [np.array(e) for e in product((0, 1, 3), repeat=CELLS)]
    return max(abs(figure(a, e) - figure(b, e)) for a, b in neighbours(3) for e in expectations)


def test_one_row_moves_a_distance_by_at_most_one():
    assert moved(distance) == 1


def test_twins_are_moved_by_more():
    """Squares have no bound, nor has an expectation that is scaled to the true total."""
    assert moved(lambda counts, e: int(np.square(counts - e).sum())) > 1

    def looking(counts, e):
        return distance(counts, expected_counts(e, int(counts.sum())))

    assert moved(looking) > 1


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_the_law_of_two_distances_stays_within_its_price(scale):
    """Discrete Laplace noise, enumerated: log ratios of all outputs up to 8 steps away."""
    decay = math.exp(-1 / scale)
    expectations = (np.array([1, 0, 2, 0]), np.array([0, 3, 0, 1]))
    worst = {"true": 0.0, "twin": 0.0}
    outputs = list(product(range(-3, 9), repeat=2))
    for a, b in neighbours(2):
        for name, figure in (
            ("true", distance),
            ("twin", lambda n, e: int(np.square(n - e).sum())),
        ):
            first, second = ([figure(n, e) for e in expectations] for n in (a, b))
            for out in outputs:
                ratio = sum(
                    abs(o - s) - abs(o - f) for o, f, s in zip(out, first, second, strict=True)
                ) * math.log(decay)
                worst[name] = max(worst[name], abs(ratio))
    price = 2 / scale
    assert worst["true"] <= price + 1e-12
    assert worst["true"] == pytest.approx(price)
    assert worst["twin"] > price


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize(("unit", "k"), [(None, 1), ("p", 3)])
def test_what_is_set_aside_pays_for_the_events_and_the_rest_is_left(delta, unit, k):
    budget = Budget(epsilon=2.0, delta=delta)
    plan, rest = settle_quality(schema(unit, k), budget, 0.25, [("a", "b", "c")])
    route = "pure" if delta is None else "zcdp"
    whole = budget.whole(route).amount
    assert plan.allowance.amount == whole / 4
    assert rest.whole(route).amount == whole * 3 / 4
    assert rest.routes == (route,)
    spent = sum(Fraction(e.price(route, rows_per_unit=k)) for e in plan.events)
    assert plan.allowance.amount * Fraction(999, 1000) < spent <= plan.allowance.amount
    # Three features, three pairs, a triple, and with a unit the units that are cut.
    assert plan.figures == 7 + (unit is not None)
    assert plan.events[1].cells == plan.figures


def test_expected_counts_are_whole_and_add_up():
    draw = np.random.default_rng(1)
    for total in (1, 7, 1000, 10**12):
        released = draw.integers(0, 10**7, 50)
        found = expected_counts(released, total)
        assert found.sum() == total
        exact = [Fraction(int(c)) * total / int(released.sum()) for c in released]
        assert all(abs(f - e) < 1 for f, e in zip(found.tolist(), exact, strict=True))


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_intervals_hold_as_often_as_they_say(delta):
    """95 of 100; so few of all figures of 60 purchases have a probability below ALPHA."""
    book = schema("p", 2)
    plan, _ = settle_quality(book, Budget(epsilon=1.0, delta=delta), 0.2)
    draw = np.random.default_rng(1)
    ours, theirs = (
        np.stack([draw.integers(0, size, 3000) for size in (2, 3, 5)], axis=1) for _ in range(2)
    )
    theirs[:, 2] = theirs[:, 2] // 2
    counts, released = (cell_counts(iter((t,)), book, plan) for t in (ours, theirs))
    held, figures, runs = 0, 0, 60
    for seed in range(runs):
        found = buy(plan, counts, released, RandomStream(seed), units_cut=40)
        truth = [
            distance(n, expected_counts(s, found.total))
            for n, s in zip(counts, released, strict=True)
        ]
        pairs = [*zip(found.distances, truth, strict=True), (found.units_cut, 40)]
        held += sum(abs(value - true) <= found.half_width for value, true in pairs)
        held += abs(found.total - 3000) <= found.total_half_width
        figures += len(pairs) + 1
    assert held >= stats.binom.ppf(ALPHA, figures, 0.95)
    assert held < figures


def test_what_cannot_be_bought_is_refused():
    budget = Budget(epsilon=1.0)
    for share in (0, 1, 1.5, -0.1):
        with pytest.raises(BudgetError, match="--quality"):
            settle_quality(schema(), budget, share)
    with pytest.raises(BudgetError, match="--epsilon"):
        settle_quality(schema(), Budget(alpha=1.0), 0.1)
    with pytest.raises(ParameterError, match="no feature 'z'"):
        settle_quality(schema(), budget, 0.1, [("a", "z")])


def test_a_coefficient_is_no_figure_that_could_be_bought():
    """Why an analysis is bought as the table of its features: one row moves a slope at will."""

    def slope(counts):
        values = np.repeat([(0, 0), (0, 1), (1, 0), (1, 1)], counts, axis=0).astype(float)
        if len(values) < 2 or np.ptp(values[:, 0]) == 0:
            return 0.0
        return float(np.polyfit(values[:, 0], values[:, 1], 1)[0])

    # In slopes of tables of many rows, where one row is a small part of the whole.
    rows = np.array([10**6, 0, 0, 0])
    more = rows + np.array([0, 0, 0, 1])
    assert abs(slope(more) - slope(rows)) == pytest.approx(1.0)
    # The table of both features is moved by 1 in a million.
    assert distance(more, rows) == 1
