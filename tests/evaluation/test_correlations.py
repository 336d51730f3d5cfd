"""Correlations of numbers, against SciPy, and their variance against repeated samples."""

import numpy as np
import pytest
from scipy import stats

from pegsynth.evaluation.utility.empirical import correlation, pair_sides, sides_of
from pegsynth.evaluation.utility.number_records import correlation_records
from pegsynth.inference.combining_rules import PART
from pegsynth.inference.value_columns import TableValues

RNG = np.random.default_rng(4)


def columns(rows, rng=RNG):
    x = rng.normal(size=rows)
    y = np.exp(0.6 * x + rng.normal(size=rows))
    return {"x": x.round(1), "y": y, "k": np.ones(rows)}


def paired(names, original, *synthetic):
    sides = [sides_of(name, original, synthetic) for name in names]
    return pair_sides(sides, original, synthetic)


def found(original, *synthetic):
    pairs = paired(["x", "y"], original, *synthetic)
    return {(r.name, r.subject): r for r in correlation_records(pairs)}


def test_values_are_those_of_scipy():
    first, second = columns(500), columns(300)
    records = found(TableValues(first), TableValues(second))
    for name, oracle in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        record = records[f"{name}_correlation", "x, y"]
        assert record.value == pytest.approx(oracle(second["x"], second["y"]).statistic)
        assert record.baseline == pytest.approx(oracle(first["x"], first["y"]).statistic)
        head = records[f"{name}_distance", ""]
        assert head.value == pytest.approx(abs(record.value - record.baseline))
        assert 0 < head.baseline < 0.2


def test_a_column_that_does_not_vary_has_no_correlation():
    table = TableValues(columns(50))
    assert paired(["x", "k"], table, table) == []
    assert correlation_records([])[0].note.startswith("not computed")
    assert correlation(np.array([1.0, 2.0]), np.array([1.0, 3.0]), None) is None


def test_rows_that_lack_a_number_are_left_out():
    x, y = columns(200)["x"], columns(200)["y"]
    gaps = y.copy()
    gaps[::3] = np.nan
    kept = ~np.isnan(gaps)
    assert correlation(x, gaps, None).value == pytest.approx(np.corrcoef(x[kept], y[kept])[0, 1])


def test_weights_are_rows_that_are_repeated():
    drawn = columns(60)
    counts = RNG.integers(1, 5, 60)
    weighted = found(TableValues(drawn), TableValues(drawn, weights=counts.astype(float)))
    repeated = {name: np.repeat(values, counts) for name, values in drawn.items()}
    plain = found(TableValues(drawn), TableValues(repeated))
    for key in (("pearson_correlation", "x, y"), ("spearman_correlation", "x, y")):
        assert weighted[key].value == pytest.approx(plain[key].value)


def test_the_variance_is_that_of_repeated_samples():
    """1,000 samples of 400 rows: the mean stated variance is within a quarter of the true one.

    The seed is fixed; over seeds the ratio has a standard deviation of about 5 %.
    """
    rng = np.random.default_rng(12)
    drawn = (columns(400, rng) for _ in range(1000))
    each = [correlation(one["x"], np.sqrt(one["y"]), None) for one in drawn]
    stated = np.mean([one.variance for one in each])
    true = np.var([one.value for one in each])
    assert 0.75 < stated / true < 1.25


def test_replicates_make_the_interval():
    drawn = columns(100)
    replicates = 1 + PART * (RNG.gamma(2, 0.5, (6, 100)) - 1)
    table = TableValues(drawn, weights=np.ones(100), replicates=replicates)
    record = found(TableValues(drawn), table)["pearson_correlation", "x, y"]
    again = [correlation(drawn["x"], drawn["y"], line).value for line in replicates]
    half = stats.t.ppf(0.975, 6) * np.sqrt(np.mean((np.array(again) - record.value) ** 2)) / PART
    assert record.high - record.value == pytest.approx(half)
