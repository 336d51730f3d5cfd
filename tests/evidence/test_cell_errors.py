"""What stands for a rounded or suppressed cell, against quadrature and enumeration (R36)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from people_counted import SCHEMA, SIZES, estimated, exact, people
from scipy import integrate, stats

from pegsynth.errors import DataError
from pegsynth.methods.evidence.cell_errors import (
    as_measured,
    check_agreement,
    combined,
    log_likelihood,
    truncated_moments,
)
from pegsynth.tables.published_tables import PublishedTable

CASES = [
    (low, high, mean, variance)
    for low, high in ((-0.5, 4.5), (7.5, 12.5), (99.5, 100.5))
    for mean in (0.01, 3.0, 10.0, 60.0, 140.0)
    for variance in (0.05, 4.0, 400.0)
]


@pytest.mark.parametrize(("low", "high", "mean", "variance"), CASES)
def test_moments_within_bounds_are_those_of_quadrature(low, high, mean, variance):
    found = truncated_moments(*(np.array([each]) for each in (low, high, mean, variance)))
    spread = variance**0.5
    # Where the bounds are more than 30 deviations away the nearest 30 stand for all.
    near = float(np.clip(mean, low - 30 * spread, high + 30 * spread))
    peak = float(np.clip(near, low, high))

    def weigh(x, power):
        return x**power * np.exp(-((x - near) ** 2 - (peak - near) ** 2) / 2 / variance)

    within = min(spread, (high - low) / 4)
    points = sorted({float(np.clip(peak + k * within / 9, low, high)) for k in range(-40, 41)})
    sums = [
        sum(
            integrate.quad(weigh, a, b, args=(power,))[0]
            for a, b in zip([low, *points], [*points, high], strict=True)
            if a < b
        )
        for power in (0, 1, 2)
    ]
    middle = sums[1] / sums[0]
    assert found[0][0] == pytest.approx(middle, abs=1e-4 * spread)
    assert found[1][0] == pytest.approx(sums[2] / sums[0] - middle**2, rel=0.02, abs=1e-7)


def test_the_measurement_gives_the_moments_of_the_bounded_cell():
    table = PublishedTable("t", (0,), np.array([8.0, 0, 3]), np.array([12.0, 4, 7]), np.zeros(3))
    mean, variance = np.array([9.0, 3.0, 6.0]), np.array([20.0, 5.0, 9.0])
    noisy, error = as_measured(table, mean, variance)
    together = 1 / (1 / error + 1 / variance)
    ends = np.maximum(table.low - 0.5, 0), table.high + 0.5
    moments = truncated_moments(*ends, mean, variance)
    assert together * (noisy / error + mean / variance) == pytest.approx(moments[0])
    assert together == pytest.approx(moments[1])


def test_a_vague_expectation_leaves_the_middle_and_the_variance_of_rounding():
    table = PublishedTable("t", (0,), np.array([98.0]), np.array([102.0]), np.zeros(1))
    noisy, error = as_measured(table, np.array([90.0]), np.array([1e6]))
    assert noisy[0] == pytest.approx(100, abs=1e-3)
    assert error[0] == pytest.approx(25 / 12, rel=1e-3)
    assert table.spread[0] == pytest.approx(24 / 12)  # five whole numbers


def test_a_sharp_expectation_within_bounds_is_left_alone():
    table = PublishedTable("t", (0,), np.array([0.0]), np.array([9.0]), np.zeros(1))
    _, error = as_measured(table, np.array([4.0]), np.array([0.01]))
    assert error[0] > 1e3


@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_random_rounding_has_the_variance_that_is_taken(base):
    # R36: x = q b + r goes up with odds r/b, and r is anything.
    total = Fraction(0)
    for rest in range(base):
        up = Fraction(rest, base)
        total += up * (base - rest) ** 2 + (1 - up) * rest**2
    assert total / base == Fraction(base**2 - 1, 6)


def test_the_likelihood_of_bounds_is_the_mass_between_them():
    table = PublishedTable("t", (0,), np.array([8.0, 3]), np.array([12.0, 3]), np.array([0, 4.0]))
    mean, variance = np.array([9.0, 5.0]), np.array([4.0, 1.0])
    inside = stats.norm.cdf(12.5, 9, 2) - stats.norm.cdf(7.5, 9, 2)
    density = -0.5 * (4 / 5 + np.log(5))
    assert log_likelihood(table, mean, variance) == pytest.approx(np.log(inside) + density)


def test_bounds_of_one_table_meet_and_estimates_are_averaged():
    one = PublishedTable(
        "a", (0,), np.array([0.0, 5, 9]), np.array([4.0, 9, 9]), np.array([0, 0, 4.0])
    )
    two = PublishedTable(
        "b", (0,), np.array([3.0, 5, 3]), np.array([7.0, 5, 3]), np.array([0, 0, 2.0])
    )
    (both,) = combined([one, two])
    assert both.low.tolist() == [3, 5, 5]
    assert both.high.tolist() == [4, 5, 5]
    assert both.variance == pytest.approx([0, 0, 4 / 3])


def test_tables_that_contradict_each_other_are_named_with_the_worst_cells():
    codes = people(500, 1)
    pair, one = exact(codes, (0, 1)), exact(codes, (1, 2))
    check_agreement([pair, one], SCHEMA)
    moved = one.low.copy()
    moved[0] += 3
    with pytest.raises(
        DataError, match=r"exact.csv and exact.csv differ in sex = f \(\d+ and \d+\)"
    ):
        check_agreement(
            [pair, PublishedTable("exact.csv", (1, 2), moved, moved, one.variance)], SCHEMA
        )


def test_estimates_contradict_each_other_only_beyond_what_chance_explains():
    cells = np.array([100.0, 200.0, 50.0])
    near, far = estimated(cells + 5, (0,), 4.0), estimated(cells + 50, (0,), 4.0)
    check_agreement([estimated(cells, (0,), 4.0), near], SCHEMA)
    with pytest.raises(DataError, match="contradict"):
        check_agreement([estimated(cells, (0,), 4.0), far], SCHEMA)


def test_a_margin_adds_bounds_and_variances():
    table = exact(people(100, 2), (0, 1))
    margin = table.margin((1,), SIZES)
    assert margin.features == (1,)
    assert margin.low.tolist() == table.low.reshape(3, 2).sum(axis=0).tolist()
