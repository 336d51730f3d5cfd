import math

import numpy as np
import pytest
import regression_twins as twins
from regression_twins import SCHEMA

from pegsynth.inference import regression_fit
from pegsynth.inference.formula import read_formula
from pegsynth.inference.model_matrix import (
    INTERCEPT,
    Column,
    Sample,
    columns_of,
    distinct_rows,
    sample_of,
)
from pegsynth.inference.regression_fit import fit
from pegsynth.schema import Feature, Schema

LOGIT = "I(charge > 30) ~ age + sev + cat + los"
LINEAR = "charge ~ age + C(sev) + ward + los"


TWO = Schema(
    (
        Feature("x", kind="ordinal", categories=("0", "1", "2", "3")),
        Feature("z", kind="ordinal", categories=("0", "2", "4", "6")),
        Feature("g", categories=("a", "b", "c")),
        Feature("y", categories=("no", "yes")),
    )
)


def fitted(text, codes, schema=SCHEMA, **options):
    formula = read_formula(text, schema)
    sample = sample_of(formula, np.ascontiguousarray(codes.T), schema)
    return fit(sample, columns_of(formula, [sample], schema), formula.kind, **options)


def agree(ours, theirs, names):
    for name, other in names.items():
        assert ours.estimates[name].value == pytest.approx(theirs.params[other], rel=1e-6), name
        error = math.sqrt(ours.estimates[name].variance)
        assert error == pytest.approx(theirs.bse[other], rel=1e-5), name


def test_linear_regression_equals_statsmodels_on_every_row():
    codes = twins.rows(700, 1)
    ours = fitted(LINEAR, codes)
    theirs = twins.linear(codes, "charge ~ age + C(sev) + C(ward, Treatment('a')) + los")
    ward = "C(ward, Treatment('a'))[T.{}]"
    names = {
        INTERCEPT: "Intercept",
        "age": "age",
        "C(sev)[1]": "C(sev)[T.1.0]",
        "C(sev)[2]": "C(sev)[T.2.0]",
        "ward[b]": ward.format("b"),
        "ward[c]": ward.format("c"),
        "ward[(missing)]": ward.format("(missing)"),
        "los": "los",
    }
    assert set(ours.estimates) == set(names)
    agree(ours, theirs, names)
    assert ours.rows == theirs.nobs
    assert ours.dropped == 700 - theirs.nobs > 0
    assert ours.degrees_of_freedom == theirs.df_resid


def test_logistic_regression_equals_statsmodels_on_every_row():
    codes = twins.rows(900, 2)
    codes = codes[codes[:, 0] < 4]
    ours = fitted(LOGIT, codes)
    theirs = twins.logistic(codes, "y ~ age + sev + cat + los")
    names = {name: name for name in ("age", "sev", "los")}
    agree(ours, theirs, {INTERCEPT: "Intercept", "cat[surgical]": "cat[T.surgical]", **names})
    assert ours.degrees_of_freedom == math.inf


@pytest.mark.parametrize("entries", [200, regression_fit.MOST_ENTRIES])
def test_interactions_and_transformed_numbers_equal_statsmodels(monkeypatch, entries):
    monkeypatch.setattr(regression_fit, "MOST_ENTRIES", entries)
    codes = twins.rows(900, 7)
    codes = codes[codes[:, 0] < 4]
    names = {
        INTERCEPT: "Intercept",
        "cat[surgical]": "cat[T.surgical]",
        "log1p(los)": "np.log1p(los)",
        "I(age^2)": "I(age ** 2)",
        "log1p(los):cat[surgical]": "np.log1p(los):cat[T.surgical]",
    }
    ours = fitted("charge ~ log1p(los)*cat + I(age^2)", codes)
    agree(ours, twins.linear(codes, "charge ~ np.log1p(los)*cat + I(age ** 2)"), names)
    ours = fitted("I(charge > 30) ~ log1p(los)*cat + I(age^2)", codes)
    agree(ours, twins.logistic(codes, "y ~ np.log1p(los)*cat + I(age ** 2)"), names)


def test_a_cell_of_one_response_is_left_out_of_a_logistic_regression():
    codes = twins.rows(900, 7)
    # Everybody of severity 2 who had surgery has the response.
    codes[(codes[:, 1] == 2) & (codes[:, 2] == 1), 5] = 4
    found = fitted("I(charge > 30) ~ C(sev)*cat", codes)
    assert "separated" in found.absent["C(sev)[2]:cat[surgical]"]
    rest = codes[(codes[:, 1] != 2) | (codes[:, 2] != 1)]
    again = fitted("I(charge > 30) ~ C(sev)*cat", rest)
    for name, estimate in found.estimates.items():
        assert again.estimates[name].value == pytest.approx(estimate.value, rel=1e-6)


def test_the_fit_without_a_matrix_is_the_same(monkeypatch):
    codes = twins.rows(900, 3)
    text = "I(charge > 30) ~ age + C(sev) + cat + los + ward + I(los > 1)"
    plain = fitted(text, codes)
    monkeypatch.setattr(regression_fit, "MOST_ENTRIES", 1)
    other = fitted(text, codes, threads=2)
    assert plain.estimates.keys() == other.estimates.keys()
    for name, estimate in plain.estimates.items():
        assert other.estimates[name].value == pytest.approx(estimate.value, rel=1e-5, abs=1e-6)
        assert other.estimates[name].variance == pytest.approx(estimate.variance, rel=1e-5)


@pytest.mark.parametrize("scores", [0, regression_fit.MOST_SCORES])
def test_least_squares_in_parts_and_from_tables_is_the_same(monkeypatch, scores):
    codes = twins.rows(900, 4)
    plain = fitted(LINEAR, codes)
    monkeypatch.setattr(regression_fit, "MOST_ENTRIES", 200)
    monkeypatch.setattr(regression_fit, "MOST_SCORES", scores)
    parts = fitted(LINEAR, codes, threads=2)
    for name, estimate in plain.estimates.items():
        assert parts.estimates[name].value == pytest.approx(estimate.value, rel=1e-9)
        assert parts.estimates[name].variance == pytest.approx(estimate.variance, rel=1e-9)


def test_a_line_by_hand():
    schema = Schema(
        (
            Feature("x", kind="ordinal", categories=("0", "1", "2")),
            Feature("y", kind="ordinal", categories=("0", "1", "2", "3", "4", "5")),
        )
    )
    # x 0 1 2 with y 1, 2 and 3, 5: slope ((-1)(1) + ...): by hand 3.5 - 1 over two steps.
    codes = np.array([[0, 1], [1, 2], [1, 3], [2, 5]], dtype=np.uint8)
    found = fitted("y ~ x", codes, schema)
    assert found.estimates["x"].value == pytest.approx(2.0)
    assert found.estimates[INTERCEPT].value == pytest.approx(0.75)
    # Residuals .25, -.75, .25, .25: sum of squares .75 over 2 degrees of freedom; Sxx = 2.
    assert found.estimates["x"].variance == pytest.approx(0.375 / 2)


@pytest.mark.parametrize("entries", [1, regression_fit.MOST_ENTRIES])
def test_a_line_without_any_spread(monkeypatch, entries):
    monkeypatch.setattr(regression_fit, "MOST_ENTRIES", entries)
    codes = np.array([[i % 4, i % 4, 0, 0] for i in range(40)], dtype=np.uint8)
    found = fitted("z ~ x", codes, TWO)
    assert found.estimates["x"].value == pytest.approx(2.0)
    assert found.estimates["x"].variance == pytest.approx(0, abs=1e-10)


def test_one_category_by_hand():
    schema = Schema((Feature("g", categories=("a", "b")), Feature("y", categories=("no", "yes"))))
    table = {(0, 0): 30, (0, 1): 10, (1, 0): 20, (1, 1): 40}
    codes = np.array([cell for cell, n in table.items() for _ in range(n)], dtype=np.uint8)
    found = fitted("y ~ g", codes, schema)
    assert found.estimates[INTERCEPT].value == pytest.approx(math.log(10 / 30))
    assert found.estimates["g[b]"].value == pytest.approx(math.log((40 / 20) / (10 / 30)))
    assert found.estimates["g[b]"].variance == pytest.approx(1 / 30 + 1 / 10 + 1 / 20 + 1 / 40)


def small(*lines):
    return np.array(lines, dtype=np.uint8)


def test_perfect_separation_has_a_reason():
    codes = np.repeat(small([0, 0, 0, 0], [1, 0, 0, 0], [2, 0, 0, 1], [3, 0, 0, 1]), 20, axis=0)
    assert "separate" in fitted("y ~ x", codes, TWO).reason


def test_quasi_separation_has_a_reason():
    codes = np.repeat(
        small([0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 1], [2, 0, 0, 1], [3, 0, 0, 1]), 20, axis=0
    )
    assert "separate" in fitted("y ~ x", codes, TWO).reason


def test_separation_is_found_without_a_matrix(monkeypatch):
    monkeypatch.setattr(regression_fit, "MOST_ENTRIES", 1)
    codes = np.repeat(small([0, 0, 0, 0], [1, 0, 0, 0], [2, 0, 0, 1], [3, 0, 0, 1]), 20, axis=0)
    assert "separate" in fitted("y ~ x", codes, TWO).reason


def test_rare_rows_are_no_separation():
    codes = np.concatenate(
        [np.repeat(small([0, 0, 0, 0], [3, 0, 0, 1]), 4000, axis=0), small([0, 0, 0, 1])]
    )
    codes = np.concatenate([codes, small([3, 0, 0, 0])])
    assert fitted("y ~ x", codes, TWO).reason == ""


def test_a_category_with_one_response_is_left_out_and_said():
    codes = np.concatenate(
        [
            np.repeat(small([0, 0, 0, 0], [1, 0, 0, 1], [1, 0, 1, 0], [0, 0, 1, 1]), 9, axis=0),
            np.repeat(small([0, 0, 0, 1], [1, 0, 0, 0], [1, 0, 2, 1], [0, 0, 2, 1]), 7, axis=0),
            small([0, 0, 1, 0]),
        ]
    )
    found = fitted("y ~ x + g", codes, TWO)
    assert "separated" in found.absent["g[c]"]
    rest = fitted("y ~ x + g", codes[codes[:, 2] != 2], TWO)
    assert found.estimates == rest.estimates
    assert found.rows == len(codes)


@pytest.mark.parametrize(
    ("text", "codes", "reason"),
    [
        ("y ~ x + z", [[i % 4, i % 4, 0, i % 2 ^ (i % 3 == 0)] for i in range(40)], "collinear"),
        ("x ~ z + I(z > 1)", [[i % 3, i % 2, 0, 0] for i in range(40)], "collinear"),
        ("x ~ z", [[0, 1, 0, 0], [1, 2, 0, 0]], "too few rows: 2 for 2"),
        ("y ~ x", [[i % 4, 0, 0, 1] for i in range(40)], "single value"),
    ],
)
@pytest.mark.parametrize("entries", [1, regression_fit.MOST_ENTRIES])
def test_what_cannot_be_fitted_has_a_reason(monkeypatch, text, codes, reason, entries):
    monkeypatch.setattr(regression_fit, "MOST_ENTRIES", entries)
    found = fitted(text, np.array(codes, dtype=np.uint8), TWO)
    assert reason in found.reason
    assert not found.estimates


@pytest.mark.parametrize("kind", ["linear", "logistic"])
@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("largest", [1e154, -1e200, -float(np.finfo(float).max)])
def test_numbers_too_large_to_be_squared_raise_nothing(kind, rows, largest):
    words = np.random.default_rng(1)
    numbers = {"x": np.append(words.random(40), [largest] * rows), "z": words.random(40 + rows)}
    response = words.integers(0, 2, 40 + rows).astype(float)
    sample = Sample(np.zeros((1, 40 + rows), np.uint8), np.ones(40 + rows), response, 0, numbers)
    columns = [Column(name, 0, np.zeros(1)) for name in numbers]
    found = fit(sample, columns, kind)
    assert found.reason or np.isfinite([each.value for each in found.estimates.values()]).all()


def test_a_term_with_a_single_value_is_left_out_and_said():
    codes = np.array([[i % 4, 1, 0, (i // 4) % 2] for i in range(40)], dtype=np.uint8)
    found = fitted("y ~ x + z", codes, TWO)
    assert found.absent == {"z": "it has a single value"}
    assert set(found.estimates) == {INTERCEPT, "x"}


def test_rows_without_numbers_leave_nothing():
    codes = twins.rows(20, 5)
    codes[:, 0] = 4
    found = fitted("charge ~ age", codes)
    assert found.reason == "there is no row without a missing value"
    assert found.dropped == 20


def test_distinct_rows_count_every_row():
    rng = np.random.default_rng(3)
    columns = rng.integers(0, 4, (3, 500)).astype(np.uint8)
    for sizes in ((4, 4, 4), (1 << 20, 1 << 20, 1 << 30)):
        codes, counts = distinct_rows(columns, sizes)
        found = {tuple(row): int(n) for row, n in zip(codes.T.tolist(), counts, strict=True)}
        lines = [tuple(line) for line in columns.T.tolist()]
        assert found == {line: lines.count(line) for line in set(lines)}
