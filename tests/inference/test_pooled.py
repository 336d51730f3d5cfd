"""`pooled`: one model, K datasets, one table."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

from pegsynth import Ledger, ParameterError, combine, pooled
from pegsynth.privacy import NotPrivate
from pegsynth.privacy.assumptions import stated
from pegsynth.privacy.draw_events import UrnDraws

ROWS_IN = {"rows_in": 100}


def frame(seed, rows=50):
    words = np.random.default_rng(seed)
    x = words.normal(size=rows)
    return pd.DataFrame({"x": x, "y": 2 * x + words.normal(size=rows), "z": x > 0})


FRAMES = [frame(seed) for seed in range(3)]


def by_formula(table):
    return smf.ols("y ~ x", table).fit()


def by_array(table):
    return sm.OLS(np.asarray(table["y"]), sm.add_constant(np.asarray(table["x"]))).fit()


def test_statsmodels_results_are_named_and_combined():
    fits = [by_formula(table) for table in FRAMES]
    wanted = combine(
        [fit.params for fit in fits], [fit.bse**2 for fit in fits], rows=50, rows_in=100
    )
    found = pooled(by_formula, FRAMES, **ROWS_IN)
    assert found.combined.names == ("Intercept", "x")
    np.testing.assert_allclose(found.combined.variance, wanted.variance)
    low, high = wanted.interval(0.9)
    table = found.to_frame(0.9)
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == ["term", "estimate", "std_error", "dof", "low", "high", "rule"]
    np.testing.assert_allclose(table["low"], low)
    np.testing.assert_allclose(table["high"], high)
    assert set(table["rule"]) == {"plug-in"}


def test_logistic_regression():
    words = np.random.default_rng(1)

    def noisy(table):
        outcome = (table["x"] + words.logistic(size=len(table)) > 0).astype(float)
        return sm.Logit(outcome, sm.add_constant(table[["x"]])).fit(disp=0)

    assert pooled(noisy, FRAMES, **ROWS_IN).combined.names == ("const", "x")


def test_a_table_for_the_eye():
    shown = repr(pooled(by_formula, FRAMES, **ROWS_IN))
    lines = shown.splitlines()
    assert lines[0].split() == ["term", "estimate", "std_error", "dof", "low", "high", "rule"]
    assert [line.split()[0] for line in lines[1:3]] == ["Intercept", "x"]
    assert "0.95 interval" in shown
    assert "no rule covers" in shown


def test_names_select_or_label():
    assert pooled(by_formula, FRAMES, names=["x"], **ROWS_IN).combined.names == ("x",)
    # An array has no names of its own: statsmodels makes some up, and the caller may.
    assert pooled(by_array, FRAMES, **ROWS_IN).combined.names == ("const", "x1")
    own = pooled(by_array, FRAMES, names=["a", "b"], **ROWS_IN)
    assert own.combined.names == ("a", "b")
    assert pooled(by_array, FRAMES, names=["x1"], **ROWS_IN).combined.names == ("x1",)
    with pytest.raises(ParameterError, match="dataset 1 gives no coefficient 'age'"):
        pooled(by_formula, FRAMES, names=["x", "age"], **ROWS_IN)
    for names in (["a"], ["a", "b", "c"], ["a", "a"]):
        with pytest.raises(ParameterError, match="gives 2 coefficients; state as many names"):
            pooled(by_array, FRAMES, names=names, **ROWS_IN)


def test_pairs():
    def mean(table):
        return table["y"].mean(), table["y"].var() / len(table)

    def mean_and_error(table):
        return [table["y"].mean()], [(table["y"].var() / len(table)) ** 0.5]

    def by_name(table):
        # The order of names in the second member does not matter.
        return {"x": table["x"].mean(), "y": 0.0}, {"y": 1.0, "x": table["x"].var() / len(table)}

    first = pooled(mean, FRAMES, **ROWS_IN)
    second = pooled(mean_and_error, FRAMES, uncertainty="std_error", names=["mean"], **ROWS_IN)
    assert first.combined.names == ("quantity 1",)
    assert second.combined.names == ("mean",)
    np.testing.assert_allclose(first.combined.variance, second.combined.variance)
    third = pooled(by_name, FRAMES, **ROWS_IN).combined
    assert third.names == ("x", "y")
    assert third["y"].variance == pytest.approx(0.5)


def test_the_datasets_give_the_kind_and_the_row_count():
    tables = [pl.from_pandas(table) for table in FRAMES]

    def mean(table):
        return table["y"].mean(), table["y"].var() / len(table)

    found = pooled(mean, tables, **ROWS_IN)
    assert isinstance(found.to_frame(), pl.DataFrame)
    assert found.combined.variance == pooled(mean, tables, rows=50, rows_in=100).combined.variance
    assert found.combined.variance != pooled(mean, tables, rows=99, rows_in=100).combined.variance
    with pytest.raises(ParameterError, match="needs rows"):
        pooled(mean, [*tables, tables[0].head(9)], **ROWS_IN)


def test_the_ledger_chooses():
    event = UrnDraws(
        alpha_numerator=1, alpha_denominator=1, features=2, visits=3, rows=50, datasets=3
    )
    with pytest.raises(ParameterError, match="no interval for these datasets"):
        pooled(by_formula, FRAMES, ledger=Ledger((event,), (stated("rows-in", {"rows_in": 100}),)))
    kept = Ledger((NotPrivate.because("kept-columns"),), (stated("rows-in", {"rows_in": 100}),))
    assert pooled(by_formula, FRAMES, ledger=kept).combined.rule == "partial"


def test_other_coefficients_in_another_dataset():
    def uneven(table):
        return smf.ols("y ~ x" if table is FRAMES[0] else "y ~ x + z", table).fit()

    with pytest.raises(ParameterError, match="dataset 2 has the quantity"):
        pooled(uneven, FRAMES, **ROWS_IN)


@pytest.mark.parametrize(
    "result",
    [
        3.0,
        (1, 2, 3),
        SimpleNamespace(coef_=[1.0]),
        ([1.0, 2.0], [1.0]),
        (np.ones((2, 2)), np.ones((2, 2))),
        ("a", "b"),
        ({"a": 1.0}, {"b": 1.0}),
        ([1.0], [-1.0]),
    ],
    ids=str,
)
def test_refused_fits(result):
    with pytest.raises(ParameterError):
        pooled(lambda table: result, FRAMES, **ROWS_IN)


def test_refused_options():
    with pytest.raises(ParameterError, match="uncertainty"):
        pooled(by_formula, FRAMES, uncertainty="error", **ROWS_IN)
    with pytest.raises(ParameterError, match="at least 2 datasets"):
        pooled(by_formula, FRAMES[:1], **ROWS_IN)
    with pytest.raises(ParameterError, match="at least 2 datasets"):
        pooled(by_formula, [], **ROWS_IN)
    negative = lambda table: ([1.0], [-2.0])  # noqa: E731
    with pytest.raises(ParameterError, match="negative"):
        pooled(negative, FRAMES, uncertainty="std_error", **ROWS_IN)
