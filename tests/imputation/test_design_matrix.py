"""The compact design matrix against a written-out one."""

import numpy as np
import pytest
from imputation_tables import SCORED, dense, dependent_codes, mixed_schema, nominal

from pegsynth.errors import DataError, ModelError, ParameterError
from pegsynth.kernels.logistic import cell_table, gathered_softmax
from pegsynth.methods.baselines.glm import SCORED_ABOVE, Design, make_design, row_columns
from pegsynth.methods.baselines.target_fits import RowsToFit, check_rows, spaced_rows
from pegsynth.schema import Feature, Schema

SCHEMA = mixed_schema()
CODES = dependent_codes(SCHEMA, 60)
ONES = np.ones(60)


def test_indicators_have_one_column_per_category():
    design = make_design(CODES, SCHEMA, weights=ONES, scored_above=SCORED["never"])
    assert design.columns == sum(SCHEMA.category_counts) + 1
    matrix = dense(design, CODES, target=0)
    assert set(np.unique(matrix)) == {0.0, 1.0}
    np.testing.assert_array_equal(matrix.sum(axis=1), 3)
    assert not matrix[:, design.own_columns(0)].any()


def test_scores_are_standardised_and_special_codes_are_indicators():
    design = make_design(CODES, SCHEMA, weights=ONES, scored_above=SCORED["always"])
    # group 3, size score + missing, grade score + not applicable, colour 4 + unknown, intercept
    assert design.columns == 3 + 2 + 2 + 5 + 1
    matrix = dense(design, CODES, target=0)
    score, missing = matrix[:, 3], matrix[:, 4]
    special = CODES[:, 1] == 4
    np.testing.assert_array_equal(missing, special.astype(float))
    assert (score[special] == 0).all()
    assert abs(score[~special].mean()) < 1e-12
    assert score[~special].std() == pytest.approx(1.0)
    middles = np.array([0.5, 1.5, 3.5, 12.5])[CODES[~special, 1]]
    assert np.corrcoef(middles, score[~special])[0, 1] == pytest.approx(1.0)


def test_scores_are_standardised_with_the_weights():
    weights = np.arange(1.0, 61.0)
    once = make_design(CODES, SCHEMA, weights=weights, scored_above=SCORED["always"])
    often = np.repeat(CODES, weights.astype(int), axis=0)
    repeated = make_design(
        often, SCHEMA, weights=np.ones(len(often)), scored_above=SCORED["always"]
    )
    np.testing.assert_allclose(once.values, repeated.values, rtol=1e-12)


def test_auto_scores_only_features_with_many_categories():
    many = tuple(str(k) for k in range(SCORED_ABOVE + 1))
    schema = Schema((nominal("a", 80), Feature("b", "ordinal", many), *mixed_schema().features))
    codes = np.zeros((2, 6), dtype=np.uint8)
    design = make_design(codes, schema, weights=np.ones(2))
    widths = np.diff(design.first_column)
    assert widths.tolist() == [80, 1, *SCHEMA.category_counts, 1]


def test_a_score_that_does_not_vary_is_zero():
    codes = CODES.copy()
    codes[:, 1] = 2
    design = make_design(codes, SCHEMA, weights=ONES, scored_above=SCORED["always"])
    assert not dense(design, codes, target=0)[:, 3].any()
    codes[:, 1] = 4
    design = make_design(codes, SCHEMA, weights=ONES, scored_above=SCORED["always"])
    assert np.isfinite(design.values).all()


@pytest.mark.parametrize("scores", ["never", "always"])
def test_gathered_sums_equal_the_matrix_product(scores):
    design = make_design(CODES, SCHEMA, weights=ONES, scored_above=SCORED[scores])
    coefficients = np.random.default_rng(3).normal(size=(design.columns, 4))
    coefficients[design.own_columns(2)] = 0.0
    layout = design.layout(2)
    table = np.empty((design.cell_start[-1], 4))
    cell_table(layout, coefficients, table)
    out = np.empty((len(CODES), 4))
    gathered_softmax(row_columns(CODES), layout.cell_start, layout.order, table, out)
    linear = dense(design, CODES, 2) @ coefficients[:-1] + coefficients[-1]
    wanted = np.exp(linear) / np.exp(linear).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(out, wanted, rtol=1e-12)


def test_arrays_round_trip():
    design = make_design(CODES, SCHEMA, weights=ONES, scored_above=SCORED["always"])
    again = Design.from_arrays(design.arrays(), SCHEMA)
    for name in ("cell_start", "values", "first_cell", "first_column"):
        np.testing.assert_array_equal(getattr(again, name), getattr(design, name))


@pytest.mark.parametrize("name", ["design_values", "design_first_cell", "design_first_column"])
def test_damaged_arrays_are_refused(name):
    arrays = make_design(CODES, SCHEMA, weights=ONES).arrays()
    for change in (lambda a: a[:-1], lambda a: np.append(a, a), lambda a: a.astype(str)):
        with pytest.raises(ModelError, match="damaged"):
            Design.from_arrays({**arrays, name: change(arrays[name])}, SCHEMA)
    values = np.full_like(arrays["design_values"], np.nan)
    with pytest.raises(ModelError, match="damaged"):
        Design.from_arrays({**arrays, "design_values": values}, SCHEMA)
    starts = arrays["design_first_column"][::-1].copy()
    with pytest.raises(ModelError, match="damaged"):
        Design.from_arrays({**arrays, "design_first_column": starts}, SCHEMA)
    del arrays[name]
    with pytest.raises(ModelError, match="damaged"):
        Design.from_arrays(arrays, SCHEMA)


def test_too_many_categories_are_refused_by_name():
    schema = Schema((nominal("few", 2), nominal("many", 1_001)))
    codes = np.zeros((3, 2), dtype=np.uint16)
    with pytest.raises(ParameterError, match="'many' has 1,001 categories"):
        make_design(codes, schema, weights=np.ones(3))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros((3, 2), dtype=np.uint8), "one column for each of 4"),
        (np.zeros((3, 4)), "whole numbers"),
        (np.full((3, 4), 9, dtype=np.uint8), "feature 'group'"),
        (np.zeros((0, 4), dtype=np.uint8), "at least one row"),
    ],
)
def test_tables_that_do_not_fit_are_refused(codes, message):
    with pytest.raises(DataError, match=message):
        RowsToFit.of(codes, SCHEMA)


def test_the_target_column_is_not_checked():
    codes = CODES.copy()
    codes[:, 0] = 200
    check_rows(codes, SCHEMA, ignore=0)
    with pytest.raises(DataError):
        check_rows(codes, SCHEMA, ignore=1)


def test_rows_are_evenly_spaced():
    assert spaced_rows(10, 20).tolist() == list(range(10))
    assert spaced_rows(10, None).tolist() == list(range(10))
    assert spaced_rows(10, 5).tolist() == [0, 2, 4, 6, 8]
    assert spaced_rows(7, 3).tolist() == [0, 2, 4]


def test_rows_of_weight_zero_are_left_out():
    weights = np.arange(60) % 2.0
    rows = RowsToFit.of(CODES, SCHEMA, sample_weight=weights, max_rows=10)
    np.testing.assert_array_equal(rows.codes, CODES[1::2][::3])
    np.testing.assert_array_equal(rows.weights, np.ones(10))
