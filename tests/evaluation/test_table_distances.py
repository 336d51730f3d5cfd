import math
from itertools import product

import numpy as np
import pytest
from distance_twins import binomial

from pegsynth.errors import ParameterError
from pegsynth.evaluation import total_variation
from pegsynth.evaluation.risk.reappearance import expected_uniqueness
from pegsynth.evaluation.utility import distances as d


def test_a_hand_worked_table():
    p, q = np.array([2, 1, 1, 0]), np.array([1, 1, 0, 2])  # shares .5 .25 .25 0, .25 .25 0 .5
    assert total_variation(p, q) == 0.5
    assert d.marginal_distance(p, q) == 0.0625 + 0 + 0.0625 + 0.25
    assert d.marginal_floor(p, 10) == pytest.approx((1 - 0.375) / 10)


def test_identical_shares_give_zero_whatever_the_totals():
    p = np.array([[3, 1], [0, 4]])
    assert total_variation(p, 10 * p) == 0
    assert d.marginal_distance(p, 7 * p) == pytest.approx(0, abs=1e-30)
    given = np.array([0, 0, 1, 1])
    assert d.conditional_distance(given, p.ravel(), 5 * p.ravel()) == 0


def test_disjoint_tables_are_one_apart():
    assert total_variation(np.array([3, 0]), np.array([0, 9])) == 1


def test_conditional_with_a_value_in_one_table_only():
    # x_j = 0: (.5, .5) against (1, 0); x_j = 1: only synthetic, (.25, .75); x_j = 2: neither.
    given = np.array([0, 0, 1, 1, 2, 2])
    original, synthetic = np.array([2, 2, 0, 0, 0, 0]), np.array([3, 0, 1, 3, 0, 0])
    expected = 0.25 + 0.25 + 0.0625 + 0.5625
    assert d.conditional_distance(given, original, synthetic) == pytest.approx(expected)
    assert d.conditional_distance(given, synthetic, original) == pytest.approx(expected)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("counts", [(1, 1), (1, 9), (5, 3, 2, 0), (1, 1, 1, 97), (4,)])
def test_floor_of_total_variation_is_exact(rows, counts):
    shares = [c / sum(counts) for c in counts]
    twin = sum(
        chance * abs(k / rows - p) for p in shares for k, chance in enumerate(binomial(rows, p))
    )
    assert d.total_variation_floor(np.array(counts), rows) == pytest.approx(twin / 2, abs=1e-12)


def test_floor_of_total_variation_at_a_million_rows_is_the_normal_one():
    p, n = np.array([0.2, 0.3, 0.5]), 1_000_000
    normal = np.sqrt(2 * p * (1 - p) / (math.pi * n)).sum() / 2
    assert d.total_variation_floor(p * 10, n) == pytest.approx(normal, rel=1e-5)


def test_floor_of_the_marginal_distance_by_enumeration():
    p, rows = [0.5, 0.3, 0.2], 4
    twin = 0.0
    for sample in product(range(3), repeat=rows):
        chance = math.prod(p[x] for x in sample)
        twin += chance * sum((sample.count(x) / rows - p[x]) ** 2 for x in range(3))
    assert d.marginal_floor(np.array([5, 3, 2]), rows) == pytest.approx(twin)


@pytest.mark.parametrize("mean", [1e-6, 0.01, 0.5, 3.0, 40.0, 499.0, 501.0, 2000.0])
def test_mean_of_the_reciprocal(mean):
    twin = math.fsum(
        math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) / k for k in range(1, 4000)
    )
    assert d._mean_of_reciprocal(np.array([mean]))[0] == pytest.approx(twin, rel=1e-8)


def test_floor_of_the_conditional_is_near_its_simulation():
    # 2,000 seeded bootstraps; the standard error of their mean is below 2 %.
    rng = np.random.default_rng(3)
    given, counts, rows = np.repeat(np.arange(4), 3), rng.integers(1, 40, 12), 50
    draws = rng.multinomial(rows, counts / counts.sum(), size=2000)
    simulated = np.mean([d.conditional_distance(given, counts, draw) for draw in draws])
    assert d.conditional_floor(given, counts, rows) == pytest.approx(simulated, rel=0.08)


def test_bad_tables_are_refused():
    with pytest.raises(ParameterError, match="empty"):
        total_variation(np.zeros(2), np.ones(2))
    with pytest.raises(ParameterError, match="different cells"):
        total_variation(np.ones(3), np.ones(2))


def _uniqueness_twin(sizes, rows):
    """Every part of that many rows."""
    from itertools import combinations

    keys = [group for group, size in enumerate(sizes) for _ in range(size)]
    parts = list(combinations(keys, rows))
    return sum(sum(part.count(k) == 1 for k in part) / rows for part in parts) / len(parts)


@pytest.mark.parametrize("sizes", [(1,), (3,), (1, 1, 2), (1, 2, 3, 4), (5, 1, 1)])
def test_uniqueness_at_every_size(sizes):
    for rows in range(1, sum(sizes) + 1):
        expected = _uniqueness_twin(sizes, rows)
        assert expected_uniqueness(np.array(sizes), rows=rows) == pytest.approx(expected)


def test_uniqueness_of_a_larger_part_than_the_table():
    with pytest.raises(ParameterError):
        expected_uniqueness(np.array([1, 2]), rows=4)


def test_tables_without_a_common_cell_are_at_distance_one_and_never_more():
    """Sums of shares are rounded, and may come to more than 1."""
    generator = np.random.default_rng(1)
    for cells in range(1, 500):
        counts = np.concatenate([generator.integers(1, 50, cells), np.zeros(cells, dtype=int)])
        assert total_variation(counts, counts[::-1]) == pytest.approx(1)
        assert total_variation(counts, counts[::-1]) <= 1
