"""Regressions by formula on weighted tables, against statsmodels with the same weights."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.interpolate import CubicSpline
from weighted_tables import by_hand, lines, weighted

import pegsynth
from pegsynth import ParameterError

FRAME = weighted()
PANDAS = FRAME.to_pandas()


def linear(formula):
    return lambda weights: smf.wls(formula, PANDAS, weights=weights).fit().params


def of_family(formula, family, **more):
    def estimate(weights):
        return smf.glm(formula, PANDAS, family=family, freq_weights=weights, **more).fit().params

    return estimate


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("y ~ x + g", "y ~ g + x"),
        ("y ~ x*g", "y ~ g*x"),
        ("y ~ g + x + g:x", "y ~ g*x"),
        ("y ~ g*C(e)*x", "y ~ g*C(e)*x"),
        ("y ~ x + I(x^2) + I(x**3)", "y ~ x + I(x**2) + I(x**3)"),
        ("y ~ log(x) + sqrt(x) + log1p(x)", "y ~ np.log(x) + np.sqrt(x) + np.log1p(x)"),
        ("log1p(x) ~ g + C(t)", "np.log1p(x) ~ g + C(t)"),
        ("y ~ I(x > 3)*g", "y ~ I(1.0*(x > 3))*g"),
        ("y ~ x*g + x*e", "y ~ x*g + x*e"),
    ],
)
def test_linear_regressions_are_those_of_statsmodels(ours, theirs):
    found = pegsynth.replicated(ours, FRAME)
    main, covariance = by_hand(linear(theirs), FRAME)
    order = matched(found, linear(theirs)(lines(FRAME)[0]))
    np.testing.assert_allclose(np.array(list(found.params.values())), main[order], rtol=1e-7)
    np.testing.assert_allclose(
        found.cov_params(), covariance[np.ix_(order, order)], rtol=1e-6, atol=1e-12
    )


def matched(found, theirs):
    """Return the place of every coefficient in a fit of statsmodels, by its estimate."""
    values = np.asarray(theirs)
    order = [int(np.argmin(np.abs(values - each))) for each in found.params.values()]
    assert sorted(order) == list(range(len(values)))
    return order


def test_logistic_and_poisson_regressions_are_those_of_statsmodels():
    binomial, poisson = sm.families.Binomial(), sm.families.Poisson()
    cases = [
        ("d ~ x*g", {}, of_family("d ~ g*x", binomial)),
        ("I(y > 2) ~ x*g", {}, of_family("I(1.0*(y > 2)) ~ g*x", binomial)),
        ("n ~ g + x", {"family": "poisson"}, of_family("n ~ g + x", poisson)),
        (
            "n ~ g",
            {"family": "poisson", "exposure": "x"},
            of_family("n ~ g", poisson, exposure=PANDAS["x"]),
        ),
        ("d ~ x", {"family": "gaussian"}, linear("d ~ x")),
    ]
    for formula, more, estimate in cases:
        found = pegsynth.replicated(formula, FRAME, **more)
        main, covariance = by_hand(estimate, FRAME)
        order = matched(found, estimate(lines(FRAME)[0]))
        np.testing.assert_allclose(list(found.params.values()), main[order], rtol=1e-5)
        np.testing.assert_allclose(
            found.cov_params(), covariance[np.ix_(order, order)], rtol=1e-3, atol=1e-9
        )


def test_a_spline_is_the_restricted_cubic_one_with_these_knots():
    x = FRAME["x"].to_numpy()
    found = pegsynth.replicated("y ~ rcs(x, 1, 3, 6)", FRAME).params
    assert list(found) == ["Intercept", "rcs(x, 1, 3, 6)[1]", "rcs(x, 1, 3, 6)[2]"]
    # Harrell's formula, written out.
    first, second, last = 1.0, 3.0, 6.0

    def cubed(values):
        return np.maximum(values, 0) ** 3

    column = (
        cubed(x - first)
        - cubed(x - second) * (last - first) / (last - second)
        + cubed(x - last) * (second - first) / (last - second)
    ) / (last - first) ** 2
    design = np.column_stack([np.ones_like(x), x, column])
    expected = sm.WLS(FRAME["y"].to_numpy(), design, weights=lines(FRAME)[0]).fit().params
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-7)
    # Natural splines with these knots are one space: another basis of it fits as well.
    basis = CubicSpline([first, second, last], np.eye(3), bc_type="natural")
    slopes = basis(last, 1)
    inside = np.clip(x, first, last)
    others = basis(inside) + np.outer(np.maximum(x - last, 0), slopes)
    others += np.outer(np.minimum(x - first, 0), basis(first, 1))
    fitted = sm.WLS(FRAME["y"].to_numpy(), others, weights=lines(FRAME)[0]).fit().fittedvalues
    np.testing.assert_allclose(fitted, design @ list(found.values()), rtol=1e-6)


def test_series_for_pandas_and_dictionaries_for_others():
    formula = "y ~ x + g"
    theirs, ours = pegsynth.replicated(formula, PANDAS), pegsynth.replicated(formula, FRAME)
    assert theirs.params["x"] == ours.params["x"]
    assert list(theirs.conf_int().columns) == [0, 1]
    assert list(theirs.cov_params().columns) == list(ours.params)
    assert theirs.conf_int().loc["x", 0] == ours.conf_int().row(1)[1]
    arrow = pegsynth.replicated(formula, FRAME.to_arrow())
    assert arrow.params == ours.params


def test_rows_without_a_value_are_left_out_and_categories_have_the_order_of_the_codebook():
    holes = FRAME.with_columns(
        pl.when(pl.col("x") > 8).then(None).otherwise(pl.col("x")).alias("x")
    )
    found = pegsynth.replicated("y ~ x", holes)
    kept = holes.drop_nulls()
    assert found.params == pytest.approx(pegsynth.replicated("y ~ x", kept).params)
    book = pegsynth.Schema((pegsynth.Feature("g", categories=("c", "a", "b")),))
    assert list(pegsynth.replicated("y ~ g", FRAME, schema=book).params)[1:] == ["g[a]", "g[b]"]


@pytest.mark.parametrize(
    ("formula", "more", "said"),
    [
        ("y ~ z", {}, "no feature 'z'"),
        ("a ~ b", {}, "names no column"),
        ("y ~ x", {"family": "gamma"}, "family is one of"),
        ("y ~ x", {"exposure": "x"}, 'state family="poisson"'),
        ("y ~ x", {"family": "binomial"}, "a comparison or two categories"),
        ("y ~ x", {"family": "poisson"}, "at least 0"),
        ("g ~ x", {}, "more than two categories"),
        ("y ~ C(x)", {}, "more than 256 values"),
        ("y ~ x + I(x > 3) + I(x <= 3)", {}, "collinear"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_the_reason(formula, more, said):
    with pytest.raises(ParameterError, match=said):
        pegsynth.replicated(formula, FRAME, **more)


def test_family_is_for_formulas():
    with pytest.raises(ParameterError, match="for a formula"):
        pegsynth.replicated(lambda rows, weights: 1.0, FRAME, family="gaussian")
