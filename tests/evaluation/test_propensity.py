import numpy as np
import pytest
from scipy import stats

from pegsynth.evaluation.utility import trained_models as module
from pegsynth.evaluation.utility.trained_models import groups_of, propensity, propensity_records
from significance import ALPHA

SIZES = (3, 5, 2, 7)


def table(rows, seed, *, tilt=1.0):
    """Rows of dependent categories, one feature a line."""
    rng = np.random.default_rng(seed)
    start = rng.random(rows) ** tilt
    lines = [(start + rng.random(rows)) / 2 * size for size in SIZES]
    return np.stack(lines).astype(np.uint8)


def bootstrap(columns, rows, seed):
    rng = np.random.default_rng(seed)
    return columns[:, rng.integers(0, columns.shape[1], rows)]


def twin(original, synthetic):
    """The same by scikit-learn, on a matrix of 0 and 1."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    rows = np.concatenate([original, synthetic], axis=1).T
    label = np.repeat([0, 1], [original.shape[1], synthetic.shape[1]])
    matrix = OneHotEncoder(drop="first").fit_transform(rows)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000, solver="newton-cholesky")
    chances = model.fit(matrix.toarray(), label).predict_proba(matrix.toarray())[:, 1]
    c = label.mean()
    expected = matrix.shape[1] * (1 - c) ** 2 * c / len(label)
    return np.mean((chances - c) ** 2), expected


def test_one_feature_by_hand():
    original = np.repeat([0, 1], [30, 10]).astype(np.uint8)[np.newaxis]
    synthetic = np.repeat([0, 1], [10, 30]).astype(np.uint8)[np.newaxis]
    found = propensity(original, synthetic, (2,))
    # Of each category's rows 1/4 and 3/4 are synthetic; c is 1/2.
    assert found.value == pytest.approx(0.0625, rel=1e-6)
    assert found.coefficients == 2
    assert found.expected == pytest.approx(1 * 0.5**2 * 0.5 / 80)
    assert found.ratio == pytest.approx(40, rel=1e-6)


def test_it_equals_scikit_learn():
    original, synthetic = table(800, 1), table(300, 2, tilt=1.5)
    found = propensity(original, synthetic, SIZES, threads=2)
    value, expected = twin(original, synthetic)
    assert found.value == pytest.approx(value, rel=1e-5)
    assert found.expected == pytest.approx(expected)
    assert found.rows == 1100


def test_identical_tables_are_not_told_apart():
    codes = table(500, 1)
    found = propensity(codes, codes, SIZES)
    assert found.value == pytest.approx(0, abs=1e-12)
    assert found.ratio == pytest.approx(0, abs=1e-9)


def bootstraps_are_expected(draw, repeats=40):
    """Test whether (k-1) times the ratio is chi-squared over `repeats` draws together."""
    original = table(3000, 1)
    ratios = []
    for seed in range(repeats):
        found = propensity(original, draw(original, seed), SIZES)
        ratios.append(found.ratio)
    freedom = (found.coefficients - 1) * repeats
    total = (found.coefficients - 1) * np.sum(ratios)
    chance = stats.chi2.cdf(total, freedom)
    return min(chance, 1 - chance) >= ALPHA / 2


def test_a_bootstrap_has_its_expectation():
    assert bootstraps_are_expected(lambda original, seed: bootstrap(original, 2000, seed))


def test_a_fresh_sample_is_told_from_a_bootstrap():
    # Both tables vary, so the expectation is larger by the factor 1/(1 - c).
    assert not bootstraps_are_expected(lambda original, seed: table(2000, 100 + seed))


def test_a_shifted_marginal_is_noticed():
    original = table(3000, 1)
    shifted = bootstrap(original, 3000, 2)
    shifted[2, :300] = 1
    (_, ratio) = propensity_records(original, [shifted], SIZES)
    assert ratio.low > 1
    assert ratio.value > stats.chi2.ppf(1 - ALPHA, 13) / 13


def test_a_category_of_one_table_only_tells_its_rows():
    original, synthetic = table(400, 1), table(300, 2)
    original, synthetic = (t[:, t[1] != 4] for t in (original, synthetic))
    synthetic[1, :30] = 4
    found = propensity(original, synthetic, SIZES)
    rest = propensity(original, synthetic[:, 30:], SIZES)
    rows, n = original.shape[1] + synthetic.shape[1], synthetic.shape[1]
    assert found.coefficients == rest.coefficients + 1
    # The other rows are fitted without these, whose chance is 1.
    assert found.value > 30 * (1 - n / rows) ** 2 / rows
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    kept = np.concatenate([original, synthetic[:, 30:]], axis=1).T
    label = np.repeat([0, 1], [original.shape[1], n - 30])
    matrix = OneHotEncoder(drop="first").fit_transform(kept).toarray()
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000, solver="newton-cholesky")
    chances = model.fit(matrix, label).predict_proba(matrix)[:, 1]
    squares = np.sum((chances - n / rows) ** 2) + 30 * (1 - n / rows) ** 2
    assert found.value == pytest.approx(squares / rows, rel=1e-5)


def test_tables_with_nothing_in_common_are_told_apart_wholly():
    original, synthetic = np.zeros((1, 30), np.uint8), np.ones((1, 10), np.uint8)
    found = propensity(original, synthetic, (2,))
    assert found.value == pytest.approx((30 * 0.25**2 + 10 * 0.75**2) / 40)
    assert found.coefficients == 2


def test_features_that_say_the_same_count_once():
    original, synthetic = table(400, 1), table(300, 2)
    twice = [np.concatenate([t, t[:1]]) for t in (original, synthetic)]
    once = propensity(original, synthetic, SIZES)
    found = propensity(*twice, (*SIZES, SIZES[0]))
    assert found.coefficients == once.coefficients
    assert found.value == pytest.approx(once.value, rel=1e-6)


def test_many_categories_are_merged_and_said():
    assert groups_of((3, 5), most=100) == (3, 5)
    assert groups_of((3, 500, 9), most=21) == (3, 11, 9)
    assert groups_of((5, 5, 5, 5), most=4) == (2, 2, 2, 1)
    sizes = (3000, 2)
    rng = np.random.default_rng(1)
    tables = [np.stack([rng.integers(0, s, 2000) for s in sizes]).astype(np.uint16) for _ in "ab"]
    pmse, ratio = propensity_records(tables[0], tables[1:], sizes)
    assert "merged" in pmse.note
    assert ratio.value < 3


def test_thinned_rows_are_said(monkeypatch):
    monkeypatch.setattr(module, "MOST_ADDITIONS", 20 * 100)
    pmse, _ = propensity_records(table(1000, 1), [table(1000, 2)], SIZES)
    assert pmse.n == 200
    assert "more than 100 rows that many, evenly spaced, are used" in pmse.note


def test_records_carry_interval_baseline_and_rows():
    original = table(1000, 1)
    tables = [bootstrap(original, 500, seed) for seed in (1, 2, 3)]
    pmse, ratio = propensity_records(original, tables, SIZES)
    singles = [propensity(original, each, SIZES) for each in tables]
    assert pmse.value == pytest.approx(np.mean([each.value for each in singles]))
    assert (ratio.low, ratio.high) == (
        min(each.ratio for each in singles),
        max(each.ratio for each in singles),
    )
    assert pmse.baseline == pytest.approx(singles[0].expected)
    assert (ratio.baseline, ratio.better, ratio.n) == (1, "lower", 1500)


def test_a_single_value_everywhere_has_a_reason():
    codes = np.zeros((2, 20), np.uint8)
    for record in propensity_records(codes, [codes], (2, 3)):
        assert record.value is None
        assert "single value" in record.note
