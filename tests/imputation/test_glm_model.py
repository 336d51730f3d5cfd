"""Elastic-net regressions: against scikit-learn, a slow objective, and the edges."""

import numpy as np
import pytest
from imputation_tables import (
    SCORED,
    dense,
    dependent_codes,
    discharge,
    fit_glm,
    log_loss,
    marginal,
    mixed_schema,
    nominal,
    words,
)

from pegsynth.errors import DataError, ModelError, ParameterError
from pegsynth.kernels.logistic import best_coefficient
from pegsynth.methods.baselines.glm import GlmModel, make_design
from pegsynth.methods.baselines.target_fits import bayesian_bootstrap
from pegsynth.schema import Schema

SCHEMA = mixed_schema()
CODES = dependent_codes(SCHEMA, 300)


def objective(matrix, outcome, weights, coefficients, intercepts, penalty, mixing):
    """Write glmnet's objective out."""
    linear = matrix @ coefficients + intercepts
    linear -= linear.max(axis=1, keepdims=True)
    log_shares = linear - np.log(np.exp(linear).sum(axis=1, keepdims=True))
    likelihood = weights @ log_shares[np.arange(len(outcome)), outcome] / weights.sum()
    norms = mixing * np.abs(coefficients).sum() + (1 - mixing) / 2 * (coefficients**2).sum()
    return -likelihood + penalty * norms


def by_scikit_learn(matrix, outcome, weights, penalty, mixing):
    import sklearn
    from sklearn.linear_model import LogisticRegression

    old = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 8)
    model = LogisticRegression(
        C=1 / (penalty * weights.sum()),
        l1_ratio=mixing,
        solver="saga",
        tol=1e-6,
        max_iter=20_000,
        random_state=0,
        **({"penalty": "elasticnet"} if old else {}),
    )
    model.fit(matrix, outcome, sample_weight=weights)
    return model.coef_.T, model.intercept_


@pytest.mark.parametrize("scores", ["never", "always"])
@pytest.mark.parametrize("penalty", [0.05, 0.005])
@pytest.mark.parametrize("mixing", [0.5, 1.0])
def test_objective_is_that_of_scikit_learn(scores, penalty, mixing):
    target = 3
    codes = CODES[CODES[:, target] < 4]
    weights = 0.5 + np.arange(len(codes)) % 3
    model = fit_glm(
        codes,
        SCHEMA,
        targets=[target],
        sample_weight=weights,
        penalty=penalty,
        mixing=mixing,
        scores=scores,
    )
    design = make_design(codes, SCHEMA, weights=weights, scored_above=SCORED[scores])
    matrix, outcome = dense(design, codes, target), codes[:, target].astype(int)
    fitted = model.regressions[target].coefficients[:, :4]
    ours = objective(matrix, outcome, weights, fitted[:-1], fitted[-1], penalty, mixing)
    held, intercepts = by_scikit_learn(matrix, outcome, weights, penalty, mixing)
    theirs = objective(matrix, outcome, weights, held, intercepts, penalty, mixing)
    assert ours == pytest.approx(theirs, rel=1e-4)
    # Coefficients may differ by a shift common to all classes, probabilities may not.
    linear = matrix @ held + intercepts
    shares = np.exp(linear) / np.exp(linear).sum(axis=1, keepdims=True)
    out = model.probabilities(target, codes)[:, :4]
    np.testing.assert_allclose(out / out.sum(axis=1, keepdims=True), shares, atol=2e-3)


def test_a_large_penalty_leaves_the_marginal():
    model = fit_glm(CODES, SCHEMA, targets=[0], penalty=10.0)
    shares = np.bincount(CODES[:, 0], minlength=3) / len(CODES)
    assert not model.regressions[0].coefficients[:-1].any()
    np.testing.assert_allclose(model.probabilities(0, CODES[:5]), np.tile(shares, (5, 1)))


def test_no_penalty_reproduces_the_table():
    # Two features: without penalty the fit is the table of shares itself.
    schema = Schema((nominal("a", 3), nominal("b", 3)))
    codes = dependent_codes(schema, 400)
    table = np.zeros((3, 3))
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    model = fit_glm(codes, schema, targets=[1], penalty=0.0)
    rows = np.array([[0, 0], [1, 0], [2, 0]], dtype=np.uint8)
    wanted = table / table.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.probabilities(1, rows), wanted, atol=1e-3)


@pytest.mark.parametrize("scores", ["never", "always"])
def test_probabilities_sum_to_one(scores):
    model = fit_glm(CODES, SCHEMA, scores=scores, rows=150)
    rows = np.stack(
        np.meshgrid(*[np.arange(c) for c in SCHEMA.category_counts], indexing="ij"), axis=-1
    ).reshape(-1, 4)
    for target, count in enumerate(SCHEMA.category_counts):
        out = model.probabilities(target, rows.astype(np.uint8))
        assert out.shape == (len(rows), count)
        assert out.dtype == np.float64
        assert (out > 0).all()
        np.testing.assert_allclose(out.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert model.probabilities(target, rows[:0].astype(np.uint8)).shape == (0, count)


def test_the_targets_own_code_is_not_read():
    model = fit_glm(CODES, SCHEMA, targets=[1], penalty=0.01)
    other = CODES.copy()
    other[:, 1] = 250
    np.testing.assert_array_equal(model.probabilities(1, CODES), model.probabilities(1, other))


def test_a_row_twice_is_a_weight_of_two():
    weights = 1.0 + (np.arange(len(CODES)) % 2)
    weighted = fit_glm(CODES, SCHEMA, sample_weight=weights, penalty=0.01, scores="always")
    repeated = np.repeat(CODES, weights.astype(int), axis=0)
    plain = fit_glm(repeated, SCHEMA, penalty=0.01, scores="always")
    for target in range(4):
        np.testing.assert_allclose(
            weighted.probabilities(target, CODES), plain.probabilities(target, CODES), atol=1e-6
        )


def test_weights_change_the_fit_and_zero_removes_a_row():
    weights = np.where(CODES[:, 0] == 1, 0.0, 1.0)
    model = fit_glm(CODES, SCHEMA, targets=[0], sample_weight=weights, penalty=0.01)
    unseen = model.probabilities(0, CODES)[:, 1]
    np.testing.assert_allclose(unseen, 0.5 / (weights.sum() + 1.5))


def test_bayesian_bootstrap_refits_to_another_model():
    weights = bayesian_bootstrap(len(CODES), words(3))
    assert weights.mean() == pytest.approx(1.0)
    assert (weights > 0).all()
    # The variance of n times a Dirichlet(1, .., 1) share is (n - 1) / (n + 1).
    assert 0.6 < weights.var() < 1.6
    np.testing.assert_array_equal(weights, bayesian_bootstrap(len(CODES), words(3)))
    redrawn = fit_glm(CODES, SCHEMA, targets=[0], sample_weight=weights, penalty=0.01)
    plain = fit_glm(CODES, SCHEMA, targets=[0], penalty=0.01)
    difference = redrawn.probabilities(0, CODES) - plain.probabilities(0, CODES)
    assert 1e-3 < np.abs(difference).max() < 0.5
    with pytest.raises(ParameterError):
        bayesian_bootstrap(0, words())


def test_a_category_that_never_occurs_is_possible_but_rare():
    codes = CODES.copy()
    codes[codes[:, 3] == 4, 3] = 0
    model = fit_glm(codes, SCHEMA, targets=[0, 3], penalty=0.01)
    np.testing.assert_allclose(model.probabilities(3, codes)[:, 4], 0.5 / (300 + 2.5))
    # As a predictor it says nothing: its coefficients are zero.
    rows = codes[:1].copy()
    rows[0, 3] = 4
    assert np.isfinite(model.probabilities(0, rows)).all()
    design = model.design
    column = int(design.first_column[3]) + 4
    assert not model.regressions[0].coefficients[column].any()


def test_a_constant_feature_has_one_likely_category():
    codes = CODES.copy()
    codes[:, 2] = 1
    model = fit_glm(codes, SCHEMA, rows=100)
    out = model.probabilities(2, codes)
    assert (out[:, 1] > 0.99).all()
    assert log_loss(model.probabilities(0, codes), codes[:, 0]) < 1.0


def test_a_feature_with_one_category():
    schema = Schema((nominal("only", 1), nominal("b", 3)))
    codes = dependent_codes(schema, 30)
    model = fit_glm(codes, schema)
    np.testing.assert_array_equal(model.probabilities(0, codes), np.ones((30, 1)))
    np.testing.assert_allclose(model.probabilities(1, codes).sum(axis=1), 1.0)


def test_a_single_feature_and_a_single_row():
    schema = Schema((nominal("alone", 3),))
    codes = np.array([[0], [0], [1]], dtype=np.uint8)
    shares = fit_glm(codes, schema).probabilities(0, codes)[0]
    unseen = 0.5 / 4.5
    np.testing.assert_allclose(shares, [2 / 3 * (1 - unseen), 1 / 3 * (1 - unseen), unseen])
    model = fit_glm(CODES[:1], SCHEMA)
    out = model.probabilities(0, CODES[:1])[0]
    assert out.argmax() == CODES[0, 0]
    assert out.sum() == pytest.approx(1.0)


def test_separable_rows_stay_finite():
    schema = Schema((nominal("a", 3), nominal("b", 3)))
    codes = np.repeat(np.arange(3), 20)[:, None].repeat(2, axis=1).astype(np.uint8)
    for options in ({}, {"penalty": 0.0}):
        model = fit_glm(codes, schema, **options)
        out = model.probabilities(0, codes)
        assert np.isfinite(out).all()
        assert (out[np.arange(60), codes[:, 0]] > 0.9).all()


@pytest.mark.parametrize("scores", ["never", "always"])
def test_arrays_round_trip_exactly(scores):
    codes = CODES.copy()
    codes[codes[:, 0] == 2, 0] = 1
    model = fit_glm(codes, SCHEMA, targets=[3, 0], penalty=0.02, scores=scores)
    arrays = model.arrays()
    assert all(array.dtype.kind in "iuf" and array.ndim == 1 for array in arrays.values())
    again = GlmModel.from_arrays(arrays, SCHEMA)
    assert again.note == model.note
    assert sorted(again.regressions) == [0, 3]
    for target in (0, 3):
        np.testing.assert_array_equal(
            again.probabilities(target, CODES), model.probabilities(target, CODES)
        )
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, arrays[name])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("targets", lambda a: a + 4),
        ("targets", lambda a: a * 0),
        ("0: coefficients", lambda a: a[:-1]),
        ("0: coefficients", lambda a: a * np.nan),
        ("3: coefficients", lambda a: a * 0 - np.inf),
        ("3: figures", lambda a: a - 1),
        ("3: figures", lambda a: a[:-1]),
        ("note", lambda a: a * 0 + 255),
    ],
)
def test_damaged_arrays_are_refused(name, change):
    arrays = fit_glm(CODES, SCHEMA, targets=[0, 3], penalty=0.1).arrays()
    with pytest.raises(ModelError, match="damaged"):
        GlmModel.from_arrays({**arrays, name: change(arrays[name])}, SCHEMA)
    with pytest.raises(ModelError, match="damaged"):
        GlmModel.from_arrays({k: v for k, v in arrays.items() if k != name}, SCHEMA)


def test_arrays_of_another_schema_are_refused():
    arrays = fit_glm(CODES, SCHEMA, targets=[0], penalty=0.1).arrays()
    with pytest.raises(ModelError, match="another schema"):
        GlmModel.from_arrays(arrays, Schema((nominal("a", 3), nominal("b", 3))))


def test_progress_counts_targets_and_threads_change_nothing():
    seen = []
    one = fit_glm(CODES, SCHEMA, rows=90, progress=lambda stage, k, n: seen.append((stage, k, n)))
    assert seen == [("models", k, 4) for k in range(5)]
    two = fit_glm(CODES, SCHEMA, rows=90, threads=3)
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, two.arrays()[name])


def test_note_tells_parameters_only():
    few = fit_glm(CODES[:100], SCHEMA, targets=[0], rows=40, max_rows=80)
    many = fit_glm(CODES, SCHEMA, targets=[0], rows=40, max_rows=80)
    assert few.note == many.note
    assert "3-fold cross-validation on at most 40 evenly spaced rows" in few.note
    assert "at most 80 rows" in few.note
    assert "penalty 0.1 given" in fit_glm(CODES, SCHEMA, targets=[0], penalty=0.1).note


def test_max_rows_fits_to_evenly_spaced_rows():
    thinned = fit_glm(CODES, SCHEMA, targets=[1], penalty=0.01, max_rows=100)
    chosen = fit_glm(CODES[::3], SCHEMA, targets=[1], penalty=0.01)
    np.testing.assert_array_equal(thinned.probabilities(1, CODES), chosen.probabilities(1, CODES))


def test_cross_validation_empties_a_model_of_noise_and_keeps_a_signal():
    random = np.random.default_rng(8)
    schema = Schema((nominal("a", 4), nominal("b", 4)))
    noise = random.integers(0, 4, (600, 2)).astype(np.uint8)
    rows = np.array([[0, k] for k in range(4)], dtype=np.uint8)
    flat = fit_glm(noise, schema, targets=[0], rows=600).probabilities(0, rows)
    assert np.ptp(flat, axis=0).max() < 0.1
    signal = noise.copy()
    follows = random.random(600) < 0.8
    signal[follows, 0] = signal[follows, 1]
    steep = fit_glm(signal, schema, targets=[0], rows=600).probabilities(0, rows)
    assert (np.diag(steep) > 0.75).all()


def test_beats_the_marginals_on_held_out_discharges():
    schema, fitted, rest = discharge()
    model = fit_glm(fitted, schema, rows=600, threads=2)
    for target, count in enumerate(schema.category_counts):
        outcome = rest[:, target].astype(int)
        base = np.tile(marginal(fitted[:, target], count), (len(rest), 1))
        assert log_loss(model.probabilities(target, rest), outcome) < log_loss(base, outcome)


def test_a_target_with_too_many_categories_is_refused_by_name():
    schema = Schema((nominal("few", 2), nominal("diagnosis", 50_000)))
    codes = np.zeros((10, 2), dtype=np.uint16)
    with pytest.raises(ParameterError, match="'diagnosis' has 50,000 categories"):
        fit_glm(codes, schema)
    with pytest.raises(ParameterError, match="'diagnosis' has 50,000 categories"):
        fit_glm(codes, schema, targets=[0])


def test_questions_that_cannot_be_answered_are_refused():
    model = fit_glm(CODES, SCHEMA, targets=[0], penalty=0.1)
    with pytest.raises(ParameterError, match="not among the targets"):
        model.probabilities(1, CODES)
    with pytest.raises(DataError, match="schema lacks"):
        model.probabilities(0, CODES + np.uint8(9))


@pytest.mark.parametrize("start", [-1.5, 0.0, 0.3])
@pytest.mark.parametrize("lasso", [0.0, 0.7, 30.0])
@pytest.mark.parametrize("values", [[1.0], [-1.2, 0.1, 2.5], [0.0, 0.0]])
def test_one_coefficient_against_a_grid(values, lasso, start):
    v = np.array(values)
    sums, counts = np.array([3.0, 5.0, 2.0])[: len(v)], np.array([6.0, 1.0, 4.0])[: len(v)]

    def bound(b):
        step = np.asarray(b)[..., None] - start
        smooth = (sums * np.exp(v * step) - counts * v * step).sum(axis=-1)
        return smooth + lasso * np.abs(b) + 0.2 * np.asarray(b) ** 2

    best = best_coefficient(v, sums, counts, start, lasso, 0.4)
    if not v.any():
        assert best == 0.0
        return
    # The search stays on one side of zero and within its reach; there it finds the minimum.
    reach = 3.0 / np.abs(v).max()
    side = np.sign(best) or np.sign(start)
    grid = np.linspace(start - reach, start + reach, 60_001)
    grid = grid[grid * side >= 0]
    assert bound(best) <= bound(start) + 1e-12
    assert bound(best) <= bound(np.append(grid, 0.0)[:-1]).min() + 1e-6
