"""Every rule against numbers worked by hand (R16)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth import ParameterError, combine
from pegsynth.inference.combining_rules import RULES, Moments

# K = 3 estimates: q = (10 + 12 + 14)/3 = 12, b = (4 + 0 + 4)/2 = 4, v = (3 + 4 + 5)/3 = 4.
ESTIMATES, VARIANCES = [10, 12, 14], [3, 4, 5]
QUARTER = {"rows": 250, "rows_in": 1000}
SINGLE = tuple(rule for rule in RULES if rule != "nested")
"""Rules for one estimate of every dataset."""


def check(result, rule, variance, degrees):
    assert result.rule == rule
    assert result.estimate == pytest.approx(12)
    assert result.variance == pytest.approx(variance, rel=1e-12)
    assert result.degrees_of_freedom == pytest.approx(degrees, rel=1e-12)
    assert result.std_error == pytest.approx(math.sqrt(variance))


def test_plug_in():
    # (n/N) v = 1, b/K = 4/3: T = 7/3, dof = 2 (1 + 1/(4/3))^2 = 2 * 1.75^2 = 6.125.
    check(combine(ESTIMATES, VARIANCES, **QUARTER), "plug-in", 7 / 3, 6.125)


def test_shared_urn():
    # 2 (n/N) v = 2, b/K = 4/3: T = 10/3, dof = 2 (1 + 2/(4/3))^2 = 2 * 2.5^2 = 12.5.
    result = combine(ESTIMATES, VARIANCES, rule="shared-urn", **QUARTER)
    check(result, "shared-urn", 10 / 3, 12.5)


def test_partial():
    # v = 4, b/K = 4/3: T_p = 16/3, dof = 2 (1 + 3 * 4/4)^2 = 32. No row counts are needed.
    check(combine(ESTIMATES, VARIANCES, rule="partial"), "partial", 16 / 3, 32)


def test_the_papers_variance():
    # 8, 12, 16: b = 16; T_s = 4/3 * 16 - 4 = 52/3,
    # dof = 2 (1 - 4/(64/3))^2 = 2 * 0.8125^2 = 1.3203125. Positive: no row counts are needed.
    result = combine([8, 12, 16], VARIANCES, rule="fully")
    check(result, "fully", 52 / 3, 1.3203125)
    assert not any("positive" in note for note in result.notes)


def test_the_papers_variance_when_it_is_not_positive():
    # 11, 12, 13: b = 1; T_s = 4/3 - 4 < 0; instead (n/N) v = 1 with K - 1 = 2.
    result = combine([11, 12, 13], VARIANCES, rule="fully", **QUARTER)
    check(result, "fully", 1, 2)
    assert any("was not positive; (n/N) v with K - 1" in note for note in result.notes)
    # The t distribution with 2 degrees of freedom: 4.3027 at .975, 2.9200 at .95.
    assert result.interval() == pytest.approx((12 - 4.302653, 12 + 4.302653), abs=1e-5)
    assert result.interval(0.9) == pytest.approx((12 - 2.919986, 12 + 2.919986), abs=1e-5)


@pytest.mark.parametrize("known", [{}, {"rows": 250}, {"rows_in": 1000}])
def test_no_replacement_without_row_counts(known):
    with pytest.raises(ParameterError, match=r"not positive.*rows.*rows_in"):
        combine([11, 12, 13], VARIANCES, rule="fully", **known)


def test_a_variance_of_exactly_zero_is_replaced():
    # K = 2; 10, 14: b = 8, v = 12: T_s = 3/2 * 8 - 12 = 0; instead (n/N) v = 3 with K - 1 = 1.
    check(combine([10, 14], [12, 12], rule="fully", **QUARTER), "fully", 3, 1)


@pytest.mark.parametrize(
    ("rule", "variance"), [("plug-in", 1.0), ("shared-urn", 2.0), ("partial", 4.0)]
)
def test_no_variance_between_datasets(rule, variance):
    # b = 0: T is the known part, degrees of freedom are infinite, quantile 1.959964.
    result = combine([12, 12, 12], VARIANCES, rule=rule, **QUARTER)
    check(result, rule, variance, math.inf)
    half = 1.959964 * math.sqrt(variance)
    assert result.interval() == pytest.approx((12 - half, 12 + half), abs=1e-5)


def test_no_variance_between_datasets_for_the_papers_rule():
    # b = 0: T_s = -v, replaced by (n/N) v = 1 with 2 degrees of freedom.
    check(combine([12, 12, 12], VARIANCES, rule="fully", **QUARTER), "fully", 1, 2)


@pytest.mark.parametrize("rule", SINGLE)
def test_nothing_varies(rule):
    main = {"main": 12} if rule == "replicate-weights" else {}
    result = combine([12, 12], [0, 0], rule=rule, **QUARTER, **main)
    assert result.variance == 0
    assert result.interval() == (12, 12)


@pytest.mark.parametrize("rule", ["plug-in", "shared-urn", "partial"])
def test_no_variance_within_datasets(rule):
    # v = 0: T = b/K = 4/3 with K - 1 degrees of freedom.
    check(combine(ESTIMATES, [0, 0, 0], rule=rule, **QUARTER), rule, 4 / 3, 2)


def test_few_degrees_of_freedom_are_said():
    # b = 4, v = 4: dof = 2 (1 - 4/(16/3))^2 = 0.125.
    result = combine(ESTIMATES, VARIANCES, rule="fully")
    check(result, "fully", 4 / 3, 0.125)
    assert any("fewer than 1 degree of freedom" in note for note in result.notes)


NUMBERS = st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0, 1e3)), min_size=2, max_size=8)


@given(NUMBERS, st.sampled_from(SINGLE), st.integers(1, 5000))
def test_moments_and_order(pairs, rule, rows):
    """Order of the datasets is nothing; intervals widen with the level; variances are sane."""
    estimates, variances = zip(*pairs, strict=True)
    options = {"rule": rule, "rows": rows, "rows_in": 1000}
    if rule == "replicate-weights":
        options["main"] = estimates[0]
    result = combine(estimates, variances, **options)
    turned = combine(estimates[::-1], variances[::-1], **options)
    assert turned.estimate == pytest.approx(result.estimate, rel=1e-9, abs=1e-9)
    if rule != "fully":  # which jumps where its variance crosses 0
        assert turned.variance == pytest.approx(result.variance, rel=1e-6, abs=1e-6)
    assert result.variance >= 0
    assert result.degrees_of_freedom >= 0
    if result.degrees_of_freedom >= 0.5:
        (low, high), (lower, higher) = result.interval(0.5), result.interval(0.99)
        assert lower <= low <= result.estimate <= high <= higher


def test_the_shared_rule_is_the_widest_and_rows_scale_the_sampling_part():
    moments = Moments.of(np.array([[1.0], [2.0]]), np.array([[0.5], [0.7]]))
    assert moments.between == pytest.approx([0.5])
    assert moments.within == pytest.approx([0.6])
    plain = combine([1, 2], [0.5, 0.7], rows=10, rows_in=10)
    shared = combine([1, 2], [0.5, 0.7], rows=10, rows_in=20, rule="shared-urn")
    assert shared.variance == pytest.approx(plain.variance)
