import numpy as np
import pytest
import regression_twins as twins
from regression_twins import SCHEMA

from pegsynth.errors import ParameterError
from pegsynth.evaluation.utility import trained_models
from pegsynth.evaluation.utility.trained_models import area, mean_area, prediction_records


def columns(codes):
    return np.ascontiguousarray(codes.T)


def records(target, original, *synthetic, holdout=None):
    found = prediction_records(
        target,
        columns(original),
        [columns(codes) for codes in synthetic],
        SCHEMA,
        holdout=None if holdout is None else columns(holdout),
    )
    return {record.name: record for record in found}


def test_an_area_by_hand():
    scores = np.array([0.1, 0.4, 0.4, 0.8])
    hit = np.array([False, True, False, True])
    # Pairs: .4 above .1, .4 ties .4, .8 above both.
    assert area(scores, hit).value == pytest.approx((1 + 0.5 + 1 + 1) / 4)


def test_the_area_and_its_variance_equal_the_twins():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(1)
    hit = rng.random(300) < 0.3
    scores = np.round(hit * 0.5 + rng.random(300), 1)
    found = area(scores, hit)
    assert found.value == pytest.approx(roc_auc_score(hit, scores))
    below = [np.mean((s > scores[~hit]) + 0.5 * (s == scores[~hit])) for s in scores[hit]]
    above = [np.mean((scores[hit] > s) + 0.5 * (scores[hit] == s)) for s in scores[~hit]]
    delong = np.var(below) / hit.sum() + np.var(above) / (~hit).sum()
    assert np.square(found.influence).sum() == pytest.approx(delong)


def test_the_mean_area_is_one_against_the_rest():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, 200)
    chances = rng.dirichlet(np.ones(3), 200) + 0.3 * np.eye(3)[labels]
    chances /= chances.sum(axis=1, keepdims=True)
    expected = roc_auc_score(labels, chances, multi_class="ovr", average="macro")
    assert mean_area(chances, labels).value == pytest.approx(expected)


def test_identical_rows_predict_as_well_as_the_original():
    original, holdout = twins.rows(600, 1), twins.rows(400, 2)
    found = records("I(charge > 30)", original, original, holdout=holdout)
    synthetic, real = found["auc_synthetic"], found["auc_real"]
    assert synthetic.value == real.value == synthetic.baseline
    assert 0.6 < real.low < real.value < real.high < 1
    assert (synthetic.better, synthetic.n, real.baseline) == ("higher", 600, 0.5)
    assert "hold-out" in synthetic.note


def test_independent_columns_predict_nothing():
    original, holdout = twins.rows(900, 1), twins.rows(900, 2)
    rng = np.random.default_rng(1)
    shuffled = np.stack([rng.permutation(column) for column in original.T], axis=1)
    found = records("I(charge > 30)", original, shuffled, holdout=holdout)
    assert found["auc_synthetic"].high < found["auc_real"].low


def test_without_a_holdout_the_test_rows_are_not_trained_on(monkeypatch):
    seen = []
    plain = trained_models._trained

    def spy(part, test):
        seen.append((part, test))
        return plain(part, test)

    monkeypatch.setattr(trained_models, "_trained", spy)
    original = twins.rows(500, 1)
    found = records("cat", original, twins.rows(300, 2))
    (real, test), (synthetic, _) = seen
    np.testing.assert_array_equal(test.rows, np.arange(4, 500, 5))
    np.testing.assert_array_equal(test.labels, original[4::5, 2])
    np.testing.assert_array_equal(test.inputs[:, 0], original[4::5, 0])
    assert len(real.rows) == len(synthetic.rows) == 300
    assert not set(real.rows) & set(test.rows)
    assert "every fifth row" in found["auc_real"].note


def test_several_tables_and_several_categories():
    original = twins.rows(500, 1)
    found = records("ward", original, twins.rows(300, 2), twins.rows(300, 3))
    assert "one against the rest" in found["auc_synthetic"].note
    assert "between tables" in found["auc_synthetic"].note
    assert found["auc_synthetic"].low < 0.5 < found["auc_synthetic"].high


def test_rows_are_kept_to_a_stated_number(monkeypatch):
    monkeypatch.setattr(trained_models, "MOST_TRAINING_ROWS", 50)
    found = records("cat", twins.rows(500, 1), twins.rows(300, 2))["auc_synthetic"]
    assert found.n == 50
    assert "trained on 50 rows, evenly spaced" in found.note


@pytest.mark.parametrize("where", ["synthetic", "original"])
def test_a_single_category_has_a_reason(where):
    original, synthetic = twins.rows(100, 1), twins.rows(100, 2)
    (synthetic if where == "synthetic" else original)[:, 2] = 0
    found = records("cat", original, synthetic)
    assert found["auc_synthetic"].value is None
    assert "single value" in found["auc_synthetic"].note


def test_an_unknown_target_is_refused():
    with pytest.raises(ParameterError, match="no feature 'weight'"):
        records("weight", twins.rows(100, 1), twins.rows(100, 2))
