import math

import numpy as np
import pytest
import risk_twins as twins
from scipy import stats

from pegsynth.errors import ParameterError
from pegsynth.inference import statistics
from significance import ALPHA, bonferroni
from studies.paper.repeats import difference, mean, ratio


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (0, 10), (3, 10), (10, 10), (500, 1000)])
def test_shares_have_wilsons_interval(hits, n):
    found = statistics.share(hits / n, n, level=0.9)
    expected = stats.binomtest(hits, n).proportion_ci(0.9, method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert (found.value, found.n) == (hits / n, n)
    assert found.low <= found.value <= found.high


def test_means_have_the_normal_interval():
    found = statistics.weighted_mean(np.array([1.0, 4.0]), np.array([3, 1]), level=0.95)
    values = [1.0, 1.0, 1.0, 4.0]
    half = 1.959964 * np.std(values, ddof=1) / 2
    assert found.value == 1.75
    assert (found.low, found.high) == pytest.approx((1.75 - half, 1.75 + half))


def test_nothing_is_not_a_number():
    for found in (
        statistics.share(0.0, 0, level=0.9),
        statistics.weighted_mean(np.zeros(0), np.zeros(0, int), level=0.9),
        statistics.hull([]),
        statistics.roc_area(np.zeros(0), np.ones(3), level=0.9),
        statistics.advantage(np.ones(3), np.zeros(0), level=0.9),
    ):
        assert math.isnan(found.value)
        assert found.n == 0
    single = statistics.weighted_mean(np.array([2.0]), np.array([1]), level=0.9)
    assert single.value == 2
    assert math.isnan(single.low)


def test_a_level_that_is_none():
    with pytest.raises(ParameterError, match="level"):
        statistics.quantile(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_area_and_advantage_equal_their_twins(seed):
    rng = np.random.default_rng(seed)
    members, others = rng.integers(0, 5, 30) / 2, rng.integers(1, 6, 17) / 2
    area = statistics.roc_area(members, others, level=0.95)
    gain = statistics.advantage(members, others, level=0.95)
    assert area.value == pytest.approx(twins.area(members, others))
    assert gain.value == pytest.approx(twins.advantage(members.tolist(), others.tolist()))
    assert area.low <= area.value <= area.high
    assert gain.low <= gain.value <= gain.high


def test_delongs_variance_by_hand():
    # Placements of members 1, 3 among 0, 2: 1/2, 1; of 0, 2 among 1, 3: 0, 1/2.
    found = statistics.roc_area(np.array([1.0, 3.0]), np.array([0.0, 2.0]), level=0.95)
    deviation = math.sqrt(0.125 / 2 + 0.125 / 2)
    assert found.value == 0.75
    assert found.low == pytest.approx(0.75 - 1.959964 * deviation)
    assert found.high == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_complete_separation_still_has_an_interval(sign):
    members, others = np.full(20, 1.0), np.zeros(30)
    found = statistics.roc_area(sign * members, sign * others, level=0.95)
    assert found.value == (1 if sign > 0 else 0)
    assert 0.8 < (found.low if sign > 0 else 1 - found.high) < 1
    assert found.low < found.high


def test_scores_that_say_nothing():
    found = statistics.roc_area(np.zeros(40), np.zeros(40), level=0.95)
    assert found.value == 0.5
    assert found.low < 0.5 < found.high
    assert statistics.advantage(np.zeros(40), np.zeros(40), level=0.95).value == 0


def test_the_intervals_of_the_area_cover_and_have_power():
    # 400 comparisons of equal scores at level 0.95: the number of misses is binomial.
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(400):
        found = statistics.roc_area(
            rng.integers(0, 4, 150).astype(float), rng.integers(0, 4, 90).astype(float), level=0.95
        )
        misses += not found.low <= 0.5 <= found.high
    assert stats.binomtest(misses, 400, 0.05).pvalue > ALPHA
    shifted = rng.normal(0.5, 1, 500), rng.normal(0, 1, 500)
    assert statistics.roc_area(*shifted, level=1 - ALPHA).low > 0.5


def test_the_interval_of_the_advantage_holds_the_truth():
    # Uniform on 0..9 against 2..11: the true advantage is 0.2; one alarm in ALPHA of all runs.
    rng, level = np.random.default_rng(2), 1 - bonferroni(20)
    for _ in range(20):
        members, others = rng.integers(2, 12, 300), rng.integers(0, 10, 500)
        found = statistics.advantage(members.astype(float), others.astype(float), level=level)
        assert found.low <= 0.2 <= found.high


@pytest.fixture
def samples() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(5)
    return generator.normal(3, 1, 12), generator.normal(2, 0.3, 7)


def test_mean_has_the_t_interval(samples) -> None:
    first, _ = samples
    found = mean(first)
    low, high = stats.t.interval(0.95, 11, first.mean(), stats.sem(first))
    assert (found.value, found.n) == (pytest.approx(first.mean()), 12)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_difference_has_welchs_interval(samples) -> None:
    first, second = samples
    found = difference(first, second)
    low, high = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert found.n == 7


def test_ratio_is_the_delta_method_on_the_logarithm(samples) -> None:
    first, second = samples
    found = ratio(first, second)
    variances = [stats.sem(s) ** 2 / s.mean() ** 2 for s in samples]
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 11 + variances[1] ** 2 / 6)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(variances))
    assert found.value == pytest.approx(first.mean() / second.mean())
    assert math.log(found.high / found.value) == pytest.approx(half)
    assert math.log(found.value / found.low) == pytest.approx(half)


def test_ratio_covers_the_true_ratio() -> None:
    """Of 400 intervals of level 95 % about 20 miss; 45 or more would be one in a million."""
    generator = np.random.default_rng(8)
    missed = 0
    for _ in range(400):
        found = ratio(generator.gamma(20, 1.0, 15), generator.gamma(20, 0.5, 15))
        missed += not found.low < 2.0 < found.high
    assert missed < 45


def test_missing_values_are_left_out() -> None:
    found = mean([1.0, math.nan, 3.0])
    assert (found.value, found.n) == (2.0, 2)
    assert not mean([math.nan]).known
    assert not mean([]).known


def test_one_repeat_has_a_value_and_no_interval() -> None:
    for found in (mean([2.0]), difference([2.0], [1.0]), ratio([2.0], [1.0])):
        assert found.known
        assert math.isnan(found.low)
        assert not found.above(-100)
        assert not found.below(100)


def test_equal_values_have_an_interval_of_no_width() -> None:
    found = difference([2.0, 2.0, 2.0], [1.0, 1.0])
    assert (found.low, found.high) == (1.0, 1.0)


def test_there_is_no_ratio_to_nothing() -> None:
    assert not ratio([1.0, 2.0], [0.0, 0.0]).known
