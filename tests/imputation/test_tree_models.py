"""Trees and forests kept as arrays: against scikit-learn, and the edges."""

import sys

import numpy as np
import pytest
from imputation_tables import (
    brier,
    dependent_codes,
    discharge,
    fit_cart,
    fit_forest,
    marginal,
    mixed_schema,
    nominal,
    words,
)

from pegsynth.errors import DataError, ModelError, ParameterError
from pegsynth.methods.baselines.trees import (
    FEW_CATEGORIES,
    Splits,
    TreeModel,
    category_ranks,
)
from pegsynth.schema import Schema

SCHEMA = mixed_schema()
CODES = dependent_codes(SCHEMA, 400)
FITS = [fit_cart, fit_forest]


def splits_of(codes, schema, target, *, one_by_one):
    outcome = np.unique(codes[:, target], return_inverse=True)[1].astype(np.int64)
    ones = np.ones(len(codes))
    return Splits(codes, schema, target, ones, outcome, one_by_one=one_by_one), outcome


@pytest.mark.parametrize("target", range(4))
def test_a_tree_predicts_as_scikit_learn(target):
    from sklearn.tree import DecisionTreeClassifier

    model = fit_cart(CODES, SCHEMA, words=words(4), targets=[target])
    split, outcome = splits_of(CODES, SCHEMA, target, one_by_one=True)
    matrix = split.matrix(CODES)
    seed = words(4).below(1 << 32)
    tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=seed).fit(matrix, outcome)
    rows = dependent_codes(SCHEMA, 500, seed=9)
    np.testing.assert_allclose(
        model.probabilities(target, rows), tree.predict_proba(split.matrix(rows)), atol=1e-12
    )


@pytest.mark.parametrize("target", range(4))
def test_a_forest_predicts_as_scikit_learn(target):
    from sklearn.ensemble import RandomForestClassifier

    model = fit_forest(CODES, SCHEMA, words=words(4), trees=7, targets=[target])
    split, outcome = splits_of(CODES, SCHEMA, target, one_by_one=False)
    seed = words(4).below(1 << 32)
    forest = RandomForestClassifier(
        7, min_weight_fraction_leaf=5 * (1 - 1e-9) / 400, max_features="sqrt", random_state=seed
    ).fit(split.matrix(CODES), outcome, sample_weight=np.ones(400))
    rows = dependent_codes(SCHEMA, 500, seed=9)
    np.testing.assert_allclose(
        model.probabilities(target, rows), forest.predict_proba(split.matrix(rows)), atol=1e-12
    )


def test_leaves_hold_the_shares_of_their_rows():
    schema = Schema((nominal("a", 3), nominal("b", 4)))
    codes = dependent_codes(schema, 300)
    table = np.zeros((3, 4))
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    model = fit_cart(codes, schema, words=words(), min_leaf=1)
    rows = np.array([[0, 0], [1, 0], [2, 0]], dtype=np.uint8)
    np.testing.assert_allclose(
        model.probabilities(1, rows), table / table.sum(axis=1, keepdims=True), atol=1e-12
    )


@pytest.mark.parametrize("fit", FITS)
def test_probabilities_sum_to_one(fit):
    model = fit(CODES, SCHEMA, words=words())
    rows = np.stack(
        np.meshgrid(*[np.arange(c) for c in SCHEMA.category_counts], indexing="ij"), axis=-1
    ).reshape(-1, 4)
    for target, count in enumerate(SCHEMA.category_counts):
        out = model.probabilities(target, rows.astype(np.uint16))
        assert out.shape == (len(rows), count)
        assert out.dtype == np.float64
        assert (out >= 0).all()
        np.testing.assert_allclose(out.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert model.probabilities(target, rows[:0].astype(np.uint8)).shape == (0, count)


def test_the_targets_own_code_is_not_read():
    model = fit_cart(CODES, SCHEMA, words=words(), targets=[1])
    other = CODES.copy()
    other[:, 1] = 250
    np.testing.assert_array_equal(model.probabilities(1, CODES), model.probabilities(1, other))


def test_a_row_twice_is_a_weight_of_two():
    weights = 1.0 + (np.arange(len(CODES)) % 2)
    weighted = fit_cart(CODES, SCHEMA, words=words(), sample_weight=weights)
    repeated = fit_cart(np.repeat(CODES, weights.astype(int), axis=0), SCHEMA, words=words())
    for target in range(4):
        np.testing.assert_allclose(
            weighted.probabilities(target, CODES), repeated.probabilities(target, CODES), atol=1e-9
        )


@pytest.mark.parametrize("fit", FITS)
def test_a_weight_of_zero_removes_a_row(fit):
    weights = np.where(CODES[:, 0] == 1, 0.0, 1.0)
    model = fit(CODES, SCHEMA, words=words(), sample_weight=weights)
    kept = fit(CODES[CODES[:, 0] != 1], SCHEMA, words=words())
    assert not model.probabilities(0, CODES)[:, 1].any()
    for name, array in kept.arrays().items():
        np.testing.assert_array_equal(array, model.arrays()[name])


@pytest.mark.parametrize("fit", FITS)
def test_a_category_that_never_occurs_is_impossible(fit):
    codes = CODES.copy()
    codes[codes[:, 3] == 4, 3] = 0
    model = fit(codes, SCHEMA, words=words(), targets=[0, 3])
    assert not model.probabilities(3, CODES)[:, 4].any()
    rows = codes[:1].copy()
    rows[0, 3] = 4
    assert model.probabilities(0, rows).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("fit", FITS)
def test_no_leaf_is_smaller_than_asked(fit):
    model = fit(CODES[:9], SCHEMA, words=words(), min_leaf=5)
    for target, count in enumerate(SCHEMA.category_counts):
        shares = np.bincount(CODES[:9, target], minlength=count) / 9
        np.testing.assert_allclose(model.probabilities(target, CODES[:1])[0], shares)
    grown = fit_cart(CODES, SCHEMA, words=words(), min_leaf=40, targets=[0])
    assert np.count_nonzero(grown.trees[0].nodes.feature < 0) <= 10


@pytest.mark.parametrize("fit", FITS)
def test_constant_single_category_single_feature_and_single_row(fit):
    codes = CODES.copy()
    codes[:, 2] = 1
    model = fit(codes, SCHEMA, words=words())
    np.testing.assert_array_equal(model.probabilities(2, codes)[:, 1], 1.0)
    only = Schema((nominal("only", 1), nominal("b", 3)))
    few = dependent_codes(only, 30)
    np.testing.assert_array_equal(
        fit(few, only, words=words()).probabilities(0, few), np.ones((30, 1))
    )
    alone = Schema((nominal("alone", 3),))
    three = np.array([[0], [0], [1]], dtype=np.uint8)
    np.testing.assert_allclose(
        fit(three, alone, words=words()).probabilities(0, three)[0], [2 / 3, 1 / 3, 0]
    )
    single = fit(CODES[:1], SCHEMA, words=words())
    assert single.probabilities(1, CODES[:1])[0, CODES[0, 1]] == 1.0


def test_many_categories_are_split_by_rank():
    schema = Schema((nominal("a", 2), nominal("b", FEW_CATEGORIES + 8)))
    random = np.random.default_rng(2)
    b = random.integers(0, FEW_CATEGORIES + 8, 4_000)
    codes = np.stack([(b * 7) % 5 < 2, b], axis=1).astype(np.uint8)
    model = fit_cart(codes, schema, words=words(), targets=[0])
    assert len(model.trees[0].nodes.feature) == 3, "one split by rank tells them apart"
    assert (model.probabilities(0, codes)[np.arange(4_000), codes[:, 0]] == 1.0).all()


def test_ranks_follow_the_outcome():
    codes = np.repeat(np.arange(4), 50).astype(np.uint8)
    likely = np.array([0.9, 0.1, 0.6, 0.3])
    outcome = (np.tile(np.arange(50), 4) < 50 * likely[codes]).astype(np.int64)
    ranks = category_ranks(codes, outcome, np.ones(200), 5)
    order = np.argsort(ranks).tolist()
    assert sorted(ranks.tolist()) == list(range(5))
    order.remove(4)
    assert order in ([0, 2, 3, 1], [1, 3, 2, 0])


@pytest.mark.parametrize("fit", FITS)
def test_a_seed_reproduces_and_threads_change_nothing(fit):
    more = {"threads": 3} if fit is fit_cart else {}
    one, two = fit(CODES, SCHEMA, words=words(1)), fit(CODES, SCHEMA, words=words(1), **more)
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, two.arrays()[name])


def test_another_seed_grows_another_forest():
    one, two = (fit_forest(CODES, SCHEMA, words=words(seed), targets=[1]) for seed in (1, 2))
    assert not np.array_equal(one.probabilities(1, CODES), two.probabilities(1, CODES))


@pytest.mark.parametrize("fit", FITS)
def test_progress_counts_targets(fit):
    seen = []
    fit(CODES, SCHEMA, words=words(), progress=lambda stage, k, n: seen.append((stage, k, n)))
    assert seen == [("models", k, 4) for k in range(5)]


@pytest.mark.parametrize("fit", FITS)
def test_arrays_round_trip_exactly(fit):
    model = fit(CODES, SCHEMA, words=words(), targets=[3, 1])
    arrays = model.arrays()
    assert all(array.dtype.kind in "iuf" and array.ndim == 1 for array in arrays.values())
    again = TreeModel.from_arrays(arrays, SCHEMA)
    assert again.note == model.note
    assert sorted(again.trees) == [1, 3]
    for target in (1, 3):
        np.testing.assert_array_equal(
            again.probabilities(target, CODES), model.probabilities(target, CODES)
        )
    for name, array in again.arrays().items():
        assert array.dtype == arrays[name].dtype
        np.testing.assert_array_equal(array, arrays[name])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("targets", lambda a: a + 9),
        ("targets", lambda a: a * 0),
        ("1: ranks", lambda a: a[:-1]),
        ("1: roots", lambda a: a - 1),
        ("1: roots", lambda a: a[:0]),
        ("3: node_feature", lambda a: a + 5),
        ("3: node_split", lambda a: a[:-1]),
        ("3: node_left", lambda a: a * 0),
        ("3: node_right", lambda a: a + len(a)),
        ("3: node_start", lambda a: a * 0),
        ("3: node_start", lambda a: a[:0]),
        ("3: node_start", lambda a: a[::-1].copy()),
        ("3: node_codes", lambda a: a + 9),
        ("3: node_codes", lambda a: a[:-1]),
        ("3: node_shares", lambda a: a * np.nan),
        ("3: node_shares", lambda a: -a),
        ("note", lambda a: a * 0 + 255),
    ],
)
def test_damaged_arrays_are_refused(name, change):
    arrays = fit_cart(CODES, SCHEMA, words=words(), targets=[1, 3]).arrays()
    with pytest.raises(ModelError, match="damaged"):
        TreeModel.from_arrays({**arrays, name: change(arrays[name])}, SCHEMA)
    with pytest.raises(ModelError, match="damaged"):
        TreeModel.from_arrays({k: v for k, v in arrays.items() if k != name}, SCHEMA)


def test_note_tells_parameters_only():
    assert fit_cart(CODES, SCHEMA, words=words(), targets=[0], max_rows=50).note == (
        "one classification tree per feature, leaves of at least 5 rows, no pruning; "
        "grown from at most 50 rows"
    )
    assert "forest of 3 trees" in fit_forest(CODES, SCHEMA, words=words(), trees=3).note


def test_beats_the_marginals_on_held_out_discharges():
    # A leaf says 0 of what its rows never had, so the score is Brier's, not the log-loss.
    schema, fitted, rest = discharge()
    forest = fit_forest(fitted, schema, words=words())
    tree = fit_cart(fitted, schema, words=words(), min_leaf=40, threads=2)
    for model in (forest, tree):
        gained = []
        for target, count in enumerate(schema.category_counts):
            outcome = rest[:, target].astype(int)
            base = np.tile(marginal(fitted[:, target], count), (len(rest), 1))
            gained.append(brier(base, outcome) - brier(model.probabilities(target, rest), outcome))
        assert sum(gained) > 0.5
        assert sum(gain > 0 for gain in gained) >= 11


def test_targets_that_are_too_large_are_refused_by_name():
    schema = Schema((nominal("few", 2), nominal("diagnosis", 50_000)))
    codes = np.zeros((10, 2), dtype=np.uint16)
    codes[:5] = [1, 40_000]
    with pytest.raises(ParameterError, match="'diagnosis' has 50,000 categories"):
        fit_cart(codes, schema, words=words())
    # As a predictor it does no harm.
    model = fit_cart(codes, schema, words=words(), targets=[0])
    np.testing.assert_array_equal(model.probabilities(0, codes).argmax(axis=1), codes[:, 0])
    wide = Schema((nominal("wide", 1_000), nominal("b", 2)))
    with pytest.raises(ParameterError, match="'wide': trees over 1,000 categories"):
        fit_forest(np.zeros((4_000, 2), dtype=np.uint16), wide, words=words(), min_leaf=1, trees=20)


def test_questions_that_cannot_be_answered_are_refused():
    model = fit_cart(CODES, SCHEMA, words=words(), targets=[0])
    with pytest.raises(ParameterError, match="not among the targets"):
        model.probabilities(1, CODES)
    with pytest.raises(DataError, match="schema lacks"):
        model.probabilities(0, CODES + np.uint8(9))
    with pytest.raises(DataError, match="at least one row"):
        fit_cart(CODES[:0], SCHEMA, words=words())


def test_scikit_learn_is_imported_only_to_grow():
    import subprocess

    script = "import sys, pegsynth.methods.baselines; print('sklearn' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
