"""Covariances, contrasts and joint tests of replicates: numbers by hand, levels by simulation."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from weighted_tables import PART, REPLICATES, weighted

import pegsynth
from pegsynth import ParameterError, combine
from pegsynth.inference import Floor, Pooled, procedures
from significance import bonferroni

FRAME = weighted()


def pooled(rest, main, **more):
    """Combine replicates that have the whole error, in the units of those that have a part."""
    near = [{name: main[name] + PART * (each[name] - main[name]) for name in main} for each in rest]
    return Pooled(combine(near, rule="replicate-weights", main=main, **more))


def test_numbers_by_hand():
    # Deviations (1, 1) and (-1, 3): variances 1 and 5, covariance (1 - 3)/2 = -1.
    rest = [{"a": 3.0, "b": 1.0}, {"a": 1.0, "b": 3.0}]
    found = pooled(rest, {"a": 2.0, "b": 0.0})
    np.testing.assert_allclose(found.cov_params(), [[1, -1], [-1, 5]])
    assert found.params == {"a": 2.0, "b": 0.0}
    assert found.bse == pytest.approx({"a": 1.0, "b": 5**0.5})
    assert found.df == {"a": 2.0, "b": 2.0}
    assert found.tvalues["a"] == pytest.approx(2)
    # t with 2 degrees of freedom: p = 1 - t/sqrt(2 + t^2).
    assert found.pvalues["a"] == pytest.approx(1 - 2 / 6**0.5)
    difference = found.t_test({"a": 1, "b": -1})
    assert difference.params == {"+1 a -1 b": 2.0}
    # 1 + 5 + 2 = 8.
    assert difference.bse["+1 a -1 b"] == pytest.approx(8**0.5)
    # (2, 0) V^-1 (2, 0)' = 4 * 5/4 = 5; F = 5 (2 - 2 + 1)/(2 * 2) with 2 and 1.
    test = found.wald_test(["a", "b"])
    assert (test.statistic, test.df_num, test.df_denom) == pytest.approx((1.25, 2, 1))
    assert found.wald_test(np.eye(2)) == test
    assert found.wald_test("a", value=2.0).pvalue == 1.0
    # One contrast is the t test.
    assert found.wald_test("a").pvalue == pytest.approx(found.pvalues["a"])
    assert "F(2, 1) = 1.25" in str(test)


def test_a_floor_widens_covariances_with_variances():
    rest = [{"a": 0.004, "b": 0.3}, {"a": 0.006, "b": 0.5}]
    main = {"a": 0.005, "b": 0.4}
    plain = pooled(rest, main).cov_params()
    found = pooled(rest, main, floor=Floor({"a": 0.01, "b": 0.0}, 1000)).cov_params()
    assert found[0, 0] > 50 * plain[0, 0]
    assert found[1, 1] == pytest.approx(plain[1, 1])
    # The correlation stays what it is.
    assert found[0, 1] / np.sqrt(found[0, 0] * found[1, 1]) == pytest.approx(1.0)


def test_what_does_not_vary_has_no_covariance():
    found = pooled([{"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 3.0}], {"a": 1.0, "b": 2.5})
    np.testing.assert_allclose(found.cov_params(), [[0, 0], [0, 0.25]])
    with pytest.raises(ParameterError, match="a does not vary"):
        found.wald_test(["a", "b"])


def simulated(runs, count, size):
    """Return deviations of estimates and of their replicates, all of one law."""
    random = np.random.default_rng(3)
    mixed = np.tril(np.ones((size, size)))
    return random.normal(size=(runs, size)) @ mixed, random.normal(size=(runs, count, size)) @ mixed


def test_joint_tests_have_the_level_that_they_say():
    runs, count, size, chance = 4000, 8, 3, 0.1
    main, rest = simulated(runs, count, size)
    hits = loose = 0
    for q, replicates in zip(main, rest, strict=True):
        names = ["a", "b", "c"]
        found = pooled(
            [dict(zip(names, line, strict=True)) for line in q + replicates],
            dict(zip(names, q, strict=True)),
        )
        test = found.wald_test(names)
        hits += test.pvalue < chance
        # Broken: W compared with chi-square, as if the covariance matrix were known.
        wald = test.statistic * count * size / (count - size + 1)
        loose += stats.chi2.sf(wald, size) < chance
    assert stats.binomtest(hits, runs, chance).pvalue > bonferroni(2)
    assert stats.binomtest(loose, runs, chance).pvalue < 1e-6


def test_own_noise_has_covariances_too_and_other_rules_have_none():
    rest = [{"a": 1.0, "b": 5.0}, {"a": 3.0, "b": 6.0}]
    found = Pooled(combine(rest, rule="own-noise"))
    # (1 + 1/2) times the covariance with divisor 1: 1.5 * 1.
    assert found.cov_params()[0, 1] == pytest.approx(1.5)
    other = Pooled(combine(rest, rest, rule="partial"))
    assert other.bse["a"] > 0
    with pytest.raises(ParameterError, match="gives no covariances"):
        other.cov_params()


def test_anova_of_terms_and_of_nested_models():
    small = pegsynth.replicated("y ~ x", FRAME)
    large = pegsynth.replicated("y ~ x*g + rcs(t, 1, 4, 7)", FRAME)
    terms = procedures.anova(large)
    assert terms["term"].to_list() == ["x", "g", "rcs(t, 1, 4, 7)", "x:g"]
    assert terms["df_num"].to_list() == [1, 2, 2, 2]
    wanted = large.wald_test(["x:g[b]", "x:g[c]"])
    assert terms.row(3)[1:] == pytest.approx((wanted.statistic, 2, REPLICATES - 1, wanted.pvalue))
    nested = procedures.anova(small, large)
    added = [name for name in large.names if name not in small.names]
    assert nested["F"][0] == large.wald_test(added).statistic
    assert nested["term"].to_list() == ["g + rcs(t, 1, 4, 7) + x:g"]
    for wrong in ((large, small), (small, small), (pegsynth.replicated("d ~ x", FRAME), large)):
        with pytest.raises(ParameterError, match="nested models of one response"):
            procedures.anova(*wrong)
    with pytest.raises(ParameterError, match="one regression by formula"):
        procedures.anova(pegsynth.replicated(procedures.means("y"), FRAME))


def test_a_test_of_more_contrasts_than_replicates_is_refused():
    found = pegsynth.replicated("y ~ C(t)*g", weighted(replicates=5))
    with pytest.raises(ParameterError, match="needs at least 21 replicates; there are 5"):
        found.wald_test(list(found.names))
    with pytest.raises(ParameterError, match="depend on each other"):
        found.wald_test([{"g[b]": 1}, {"g[b]": 2}])
    with pytest.raises(ParameterError, match="no coefficient 'z'"):
        found.t_test("z")
    with pytest.raises(ParameterError, match="a column for each of the 21"):
        found.t_test([[1.0, 2.0]])


def test_a_summary_has_t_and_p():
    shown = pegsynth.replicated("y ~ x", FRAME).summary()
    head, *lines = shown.splitlines()
    wanted = "term estimate std_error dof low high t p status rule"
    assert head.split() == wanted.split()
    assert lines[1].startswith("x ")


@pytest.mark.parametrize("rows", [200, 2000])
def test_rao_scott_of_independent_columns_has_its_level(rows):
    """Replicates that are bootstraps of simple random samples: the level is about right."""
    random, hits, runs = np.random.default_rng(rows), 0, 300
    for _ in range(runs):
        frame = {"a": random.integers(0, 3, rows), "b": random.integers(0, 2, rows)}
        frame["pegs_weight"] = np.ones(rows)
        for k in range(1, 21):
            times = random.multinomial(rows, np.full(rows, 1 / rows))
            frame[f"pegs_weight_{k}"] = 1 + PART * (times - 1) + 1e-9
        hits += procedures.rao_scott("a", "b", pl.DataFrame(frame)).pvalue < 0.1
    assert stats.binomtest(hits, runs, 0.1).pvalue > bonferroni(4)
