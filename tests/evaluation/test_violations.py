import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import risk_twins as twins
from scipy import stats

from pegsynth.evaluation.risk_tables import risk_tables
from pegsynth.evaluation.tabulation import cross, group_rows
from pegsynth.evaluation.violations import (
    below_size,
    diversity_variances,
    small_groups_variance,
    violation_records,
)
from significance import ALPHA


def run(original, released, schema=None, wanted=None):
    tables = risk_tables(original, released, schema or twins.make_schema())
    return {(r.name, r.subject): r for r in violation_records(tables, wanted or {})}


@pytest.mark.parametrize("sizes", [(1,), (3,), (1, 1, 2), (1, 2, 3, 4), (6, 1)])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_groups_below_a_size_at_every_size(sizes, k):
    keys = [group for group, size in enumerate(sizes) for _ in range(size)]
    for rows in range(1, len(keys) + 1):
        parts = list(combinations(keys, rows))
        expected = sum(sum(part.count(x) < k for x in part) / rows for part in parts) / len(parts)
        found = below_size(np.array([*sizes, 0]), k, rows=rows)
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("least", [1, 2, 2.5, 3])
def test_violations_equal_their_twin(seed, least):
    original, released = twins.population(50, seed), twins.population(80, 10 + seed)
    found = run(original, [released], wanted={3: least})
    for k in (2, 3, 5):
        counts = twins.violations(released.tolist(), (0, 1, 2), 3, k, least)
        record = found["k_anonymity_violations", f"k = {k}"]
        assert record.value == pytest.approx(counts[0] / 80)
        assert f"{counts[0]} of 80 rows" in record.note
        ours = twins.violations(original.tolist(), (0, 1, 2), 3, k, least)
        assert record.baseline == pytest.approx(ours[0] / 50)
    for kind, count, base in zip(("entropy", "distinct"), counts[1:], ours[1:], strict=True):
        record = found["l_diversity_violations", f"f3, {kind} l = {least:g}"]
        assert record.value == pytest.approx(count / 80)
        assert record.low <= record.value <= record.high
        assert record.baseline == pytest.approx(base / 50)


@pytest.mark.parametrize("seed", range(4))
def test_jackknife_variances_equal_their_twin(seed):
    """The twin: every row left out in turn."""
    table = twins.population(40, seed).astype(np.int64)
    groups = group_rows([table.T], (0, 1, 2), twins.make_schema().category_counts)

    def variance(counts):
        return (len(counts) - 1) / len(counts) * np.square(counts - np.mean(counts)).sum()

    for k in (2, 3, 5):
        found = [
            twins.violations(np.delete(table, row, axis=0).tolist(), (0, 1, 2), 3, k, 2)
            for row in range(40)
        ]
        assert small_groups_variance(groups.sizes(0), k) == pytest.approx(
            variance([each[0] for each in found])
        )
    crossing = cross(groups, [table[:, 3]], twins.make_schema().category_counts[3])
    ours = diversity_variances(crossing, crossing.counts(crossing.cells[0]), 2)
    for mine, counts in zip(ours, list(zip(*found, strict=True))[1:], strict=True):
        assert mine >= variance(counts) - 1e-9


def test_intervals_of_fresh_samples_hold_the_reference():
    """95 % of intervals hold the original's share; so few of 100 have a probability below ALPHA."""
    runs, held = 100, Counter()
    for seed in range(runs):
        found = run(twins.population(400, seed), [twins.population(300, 1000 + seed)])
        held.update(key for key, r in found.items() if r.low <= r.baseline <= r.high)
    least = int(stats.binom.ppf(ALPHA, runs, 0.95))
    assert all(held[key] >= least for key in found), held


def test_entropy_by_hand():
    # One group, values 0, 0, 1: entropy 0.6365 < log 2; values 0, 1: exactly log 2.
    table = np.zeros((5, 5), dtype=np.uint8)
    table[:, 0] = (0, 0, 0, 1, 1)
    table[:, 3] = (0, 0, 1, 0, 1)
    assert -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)) < math.log(2)
    found = run(table, [table])
    assert found["l_diversity_violations", "f3, entropy l = 2"].value == 0.6
    assert found["l_diversity_violations", "f3, distinct l = 2"].value == 0
    assert found["k_anonymity_violations", "k = 3"].value == 0.4


def test_a_smaller_table_is_compared_at_its_size():
    original = twins.population(500, 1)
    found = run(original, [original[:50]])
    rows = original.tolist()
    rng = np.random.default_rng(2)
    parts = [
        twins.violations([rows[i] for i in rng.choice(500, 50, replace=False)], (0, 1, 2), 3, 5, 2)
        for _ in range(200)
    ]
    expected = np.mean(parts, axis=0) / 50
    # Seeded means of 200 and of 20 parts, each spread by less than 0.1.
    record = found["k_anonymity_violations", "k = 5"]
    assert record.baseline == pytest.approx(expected[0], abs=0.05)
    assert "thinned" in record.note
    record = found["l_diversity_violations", "f3, entropy l = 2"]
    assert record.baseline == pytest.approx(expected[1], abs=0.1)


def test_several_tables_are_taken_together():
    first, second = twins.population(40, 2), twins.population(60, 3)
    both = run(twins.population(90, 1), [first, second])
    for key, record in both.items():
        values = [run(twins.population(90, 1), [t])[key].value for t in (first, second)]
        assert record.low <= record.value <= record.high
        assert record.value == pytest.approx((values[0] * 40 + values[1] * 60) / 100)
        assert record.n == 100


def test_roles_that_lack_are_said():
    table = twins.population(20, 1)
    found = run(table, [table], twins.make_schema(quasi=()))
    assert [record.value for record in found.values()] == [None, None]
    found = run(table, [table], twins.make_schema(sensitive=()))
    assert found["k_anonymity_violations", "k = 5"].value is not None
    assert "no feature is sensitive" in found["l_diversity_violations", ""].note
