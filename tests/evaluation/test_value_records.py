"""Records of numbers: estimates, intervals, distances."""

import numpy as np
import pytest

from pegsynth.evaluation.utility.empirical import Sides, sides_of
from pegsynth.evaluation.utility.number_records import cumulative_of, value_records
from pegsynth.inference.combining_rules import PART
from pegsynth.inference.value_columns import TableValues

RNG = np.random.default_rng(8)
ORIGINAL = np.concatenate([np.zeros(100), RNG.gamma(2, 10, 895), np.full(5, np.nan)])


def table(values, **more):
    return TableValues({"x": np.asarray(values, dtype=float)}, **more)


def records(*synthetic, rule=None, original=ORIGINAL):
    side = sides_of("x", table(original), list(synthetic), rule)
    assert isinstance(side, Sides), side
    return {(r.name, r.subject): r for r in value_records([side])}


def test_figures_of_one_table():
    released = RNG.choice(ORIGINAL, 800)
    known, real = released[~np.isnan(released)], ORIGINAL[~np.isnan(ORIGINAL)]
    found = records(table(released))
    mean = found["value_mean", "x"]
    assert mean.value == pytest.approx(known.mean())
    assert mean.baseline == pytest.approx(real.mean())
    half = 1.959964 * known.std() / np.sqrt(len(known))
    assert (mean.low, mean.high) == pytest.approx((known.mean() - half, known.mean() + half))
    assert mean.n == len(known)
    assert "rows without a number are left out: 5 original" in mean.note
    assert found["value_sd", "x"].baseline == pytest.approx(real.std())
    assert found["value_quantile", "x :: 0.5"].value == np.quantile(
        known, 0.5, method="inverted_cdf"
    )
    assert found["value_zeros", "x"].baseline == pytest.approx(100 / 995)
    assert found["value_zeros", "x"].value == pytest.approx((known == 0).mean())
    tail = found["value_tail", "x :: above the 0.99 quantile"]
    bound = np.quantile(real, 0.99, method="inverted_cdf")
    assert tail.value == pytest.approx((known > bound).mean())


def test_the_interval_of_a_quantile_covers_that_of_fresh_samples():
    """Woodruff's interval holds the median of the law in at least 90 % of 300 samples.

    At a coverage of 0.94 fewer than 270 of 300 have a probability below 1e-6... of 0.2 %; the
    seed is fixed, so the test is deterministic.
    """
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(300):
        found = records(table(rng.exponential(1, 200)))["value_quantile", "x :: 0.5"]
        held += found.low <= np.log(2) <= found.high
    assert held >= 270


def test_several_tables_are_pooled_by_the_rule_of_their_making():
    tables = [table(RNG.choice(ORIGINAL, 900) + shift) for shift in (0, 1, 2)]
    plug_in = records(*tables)["value_mean", "x"]
    own = records(*tables, rule="own-noise")["value_mean", "x"]
    means = [np.nanmean(each.columns["x"]) for each in tables]
    assert plug_in.value == own.value == pytest.approx(np.mean(means))
    from scipy.stats import t

    half = t.ppf(0.975, 2) * np.sqrt((1 + 1 / 3) * np.var(means, ddof=1))
    assert own.high - own.value == pytest.approx(half)
    assert own.high - own.low > plug_in.high - plug_in.low
    assert "noise of their own" in own.note


def test_replicate_weights_make_the_interval():
    released = RNG.choice(ORIGINAL[:995], 300)
    replicates = RNG.gamma(2, 0.5, (8, 300))
    weights = np.ones(300)
    found = records(table(released, weights=weights, replicates=replicates))["value_mean", "x"]
    again = np.array([np.average(released, weights=line) for line in replicates])
    from scipy.stats import t

    half = t.ppf(0.975, 8) * np.sqrt(np.mean((again - released.mean()) ** 2)) / PART
    assert found.high - found.value == pytest.approx(half)
    assert "8 replicate weights" in found.note


def test_equal_tables_have_no_distance():
    found = records(table(ORIGINAL))
    for name in ("kolmogorov_distance", "wasserstein_distance"):
        assert found[name, ""].value == found[name, "x"].value == 0
    assert found["value_mean", "x"].value == found["value_mean", "x"].baseline


def test_what_cannot_be_compared_says_why():
    labelled = table(ORIGINAL, labelled=frozenset({"x"}))
    assert sides_of("x", table(ORIGINAL), [table([1.0]), labelled]) == (
        "synthetic table 2 holds labels of bins, no numbers"
    )
    assert "the original holds labels" in sides_of("x", labelled, [table([1.0])])
    empty = table([np.nan, np.nan])
    assert "no row of the original" in sides_of("x", empty, [table([1.0])])
    assert "no row with a number" in sides_of("x", table([1.0]), [empty])


def test_numbers_at_the_end_of_their_range():
    huge = np.array([1e308, -1e308, 1e307, 0.0] * 10)
    with np.errstate(all="ignore"):
        found = records(table(huge), original=huge)
    for record in found.values():
        assert record.value is None or np.isfinite(record.value)
    assert found["kolmogorov_distance", "x"].value == 0


def test_distribution_functions_for_the_page():
    side = sides_of("x", table(ORIGINAL), [table(ORIGINAL[:500])])
    found = cumulative_of(side, "label")
    assert list(found.values) == sorted(set(found.values))
    assert found.original[0] == pytest.approx(100 / 995)
    assert found.original[-1] > 0.98
    assert found.to_frame().columns == ["value", "original", "synthetic"]
    assert len(found.values) <= 120
