"""Regressions on numbers, against statsmodels; the original's coefficient is the original's."""

import numpy as np
import polars as pl
import pytest

import pegsynth
from pegsynth.evaluation.evaluated_tables import read_tables
from pegsynth.evaluation.figure_problems import coefficient_sides
from pegsynth.evaluation.utility.regression_records import compare, has_values
from pegsynth.inference.combining_rules import PART
from pegsynth.inference.formula import read_formula
from pegsynth.schema import Feature, Schema

SCHEMA = Schema(
    (
        Feature("y", kind="numeric", edges=(-100, 0, 10, 500), missing=("",)),
        Feature("x", kind="numeric", edges=(0, 3, 20), missing=("",)),
        Feature("sex", categories=("f", "m")),
    )
)
FORMULAS = ("y ~ x + sex", "I(y > 4) ~ x + sex", "sex ~ x", "y ~ I(x > 2.5)")


def table(rows, seed):
    rng = np.random.default_rng(seed)
    x, sex = rng.gamma(2, 1.5, rows).clip(0, 20), rng.integers(0, 2, rows)
    y = 1 + 2 * x - 1.5 * sex + rng.normal(size=rows) * (1 + x)
    y[::50] = np.nan
    return pl.DataFrame(
        {"y": pl.Series(y).fill_nan(None), "x": x, "sex": np.array(["f", "m"])[sex]}
    )


def oracle(text, frame, weights=None):
    import statsmodels.api as sm

    frame = frame.with_columns(w=pl.Series(np.ones(frame.height) if weights is None else weights))
    frame = frame.drop_nulls()
    x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
    m = (frame["sex"] == "m").to_numpy().astype(float)
    design = {
        FORMULAS[0]: [x, m],
        FORMULAS[1]: [x, m],
        FORMULAS[2]: [x],
        FORMULAS[3]: [(x > 2.5).astype(float)],
    }[text]
    response = {FORMULAS[1]: (y > 4).astype(float), FORMULAS[2]: m}.get(text, y)
    matrix = sm.add_constant(np.column_stack(design))
    w = frame["w"].to_numpy()
    w = w * len(w) / w.sum()
    if text in FORMULAS[1:3]:
        return sm.GLM(response, matrix, family=sm.families.Binomial(), freq_weights=w).fit()
    return sm.WLS(response, matrix, weights=w).fit()


def compared(text, original, synthetic, **more):
    formula = read_formula(text, SCHEMA)
    tables = read_tables(original, synthetic, SCHEMA, threads=1)
    assert has_values(formula, SCHEMA, tables.values)
    codes = [each.T for each in (tables.original, *tables.synthetic)]
    return compare(formula, codes, SCHEMA, tables.values, **more)


@pytest.mark.parametrize("text", FORMULAS)
def test_coefficients_are_those_of_statsmodels_on_the_numbers(text):
    original, synthetic = table(900, 1), table(700, 2)
    # Rows without y do not matter to a formula that has none.
    if text == FORMULAS[2]:
        original, synthetic = original.drop_nulls(), synthetic.drop_nulls()
    found = compared(text, original, [synthetic])
    sides = coefficient_sides(found)
    for estimates, frame in ((found.original, original), (found.synthetic, synthetic)):
        expected = oracle(text, frame)
        assert [e.value for e in estimates.values()] == pytest.approx(expected.params, rel=1e-6)
        variances = [e.variance for e in estimates.values()]
        assert variances == pytest.approx(expected.bse**2, rel=1e-5)
    robust = (
        oracle(text, original).get_robustcov_results
        if hasattr(oracle(text, original), "get_robustcov_results")
        else None
    )
    if robust is not None:
        expected = robust("HC0").bse[1:] ** 2
        stated = [each.variance for each in sides]
        classical = [found.original[name].variance for name in found.names[1:]]
        assert stated == pytest.approx(np.maximum(expected, classical), rel=1e-6)


@pytest.mark.parametrize("text", FORMULAS[:2])
def test_weights_and_their_replicates(text):
    original, synthetic = table(600, 1), table(400, 3)
    rng = np.random.default_rng(1)
    lines = rng.gamma(3, 1, (5, 400))
    weighted = synthetic.with_columns(
        pl.Series("pegs_weight", lines[0]),
        *(pl.Series(f"pegs_weight_{k}", line) for k, line in enumerate(lines[1:], start=1)),
    )
    found = compared(text, original, [weighted])
    main, *again = [oracle(text, synthetic, line).params for line in lines]
    values = np.array([each.value for each in found.synthetic.values()])
    assert values == pytest.approx(main, rel=1e-6)
    variance = np.mean([(each - main) ** 2 for each in again], axis=0) / PART**2
    stated = [each.variance for each in found.synthetic.values()]
    assert stated == pytest.approx(variance, rel=1e-5)
    assert "4 replicate weights" in found.remarks[-1]


def test_the_record_of_the_original_is_not_that_of_its_bins():
    original, synthetic = table(900, 1), table(900, 2)
    found = pegsynth.evaluate(original, synthetic, SCHEMA, formulas=FORMULAS[0])
    expected = oracle(FORMULAS[0], original).params[1]
    subject = f"{FORMULAS[0]} :: x"
    assert found.record("coefficient_original", subject).value == pytest.approx(expected)
    # Bins of 0-3 and 3-20 make another coefficient, which stands beside it.
    on_codes = found.record("coefficient_original_codes", subject).value
    assert abs(on_codes / expected - 1) > 0.2


def test_labels_are_compared_by_their_bins():
    original = table(300, 1)
    labels = original.with_columns(x=pl.lit(SCHEMA.features[1].labels[0]))
    found = pegsynth.evaluate(original, labels, SCHEMA, formulas="y ~ sex + x")
    assert found.record("coefficient_original_codes", "y ~ sex + x :: sex[m]") is None
    assert "midpoints" in found.record("regression_distance", "y ~ sex + x").note
