import numpy as np
import pytest
import regression_twins as twins
from regression_twins import SCHEMA
from scipy import stats

from pegsynth import combine
from pegsynth.evaluation.utility.regression_records import compare, not_fitted, regression_records
from pegsynth.inference.formula import read_formula
from pegsynth.inference.statistics import Estimate, overlap
from pegsynth.schema import Feature, Schema

TEXT = "charge ~ age + sev + cat"
NAMES = ("Intercept", "age", "sev", "cat[surgical]")


def records(text, original, *synthetic, schema=SCHEMA):
    tables = [np.ascontiguousarray(codes.T) for codes in (original, *synthetic)]
    found = compare(read_formula(text, schema), tables, schema)
    return {(r.name, r.subject): r for r in regression_records([found])}


def interval(low, high):
    return Estimate((low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0, 4), (0, 4), 1.0),
        ((0, 4), (2, 4), (2 / 4 + 2 / 2) / 2),
        ((0, 4), (3, 13), (1 / 4 + 1 / 10) / 2),
        ((0, 4), (5, 6), 0.0),
        ((0, 4), (2, 2), 0.0),
    ],
)
def test_overlap_by_hand(first, second, expected):
    assert overlap(interval(*first), interval(*second)) == pytest.approx(expected)
    assert overlap(interval(*second), interval(*first)) == pytest.approx(expected)


def test_identical_tables_are_at_distance_zero_and_overlap_wholly():
    codes = twins.rows(300, 1)
    found = records(TEXT, codes, codes)
    for subject in ("", TEXT):
        assert found["regression_distance", subject].value == 0
    assert found["interval_overlap", ""].value == 1
    for name in NAMES:
        subject = f"{TEXT} :: {name}"
        coefficient, original = (
            found["coefficient", subject],
            found["coefficient_original", subject],
        )
        assert found["interval_overlap", subject].value == 1
        assert (coefficient.value, coefficient.low, coefficient.high) == (
            original.value,
            original.low,
            original.high,
        )
        assert coefficient.baseline == original.value


def test_one_table_has_the_naive_interval_of_statsmodels():
    original, synthetic = twins.rows(500, 1), twins.rows(200, 2)
    found = records(TEXT, original, synthetic)
    for which, codes in (("coefficient_original", original), ("coefficient", synthetic)):
        theirs = twins.linear(codes, TEXT)
        low, high = theirs.conf_int()[0], theirs.conf_int()[1]
        for name, other in zip(NAMES, theirs.params.index[[0, 2, 3, 1]], strict=True):
            record = found[which, f"{TEXT} :: {name}"]
            assert record.value == pytest.approx(theirs.params[other], rel=1e-8)
            assert record.low == pytest.approx(low[other], rel=1e-6)
            assert record.high == pytest.approx(high[other], rel=1e-6)
            assert record.n == theirs.nobs
    assert "naive" in found["regression_distance", TEXT].note


def test_the_distance_is_the_papers():
    original, synthetic = twins.rows(500, 1), twins.rows(200, 2)
    found = records(TEXT, original, synthetic)
    first, second = (twins.linear(codes, TEXT).params for codes in (original, synthetic))
    record = found["regression_distance", TEXT]
    assert record.value == pytest.approx(np.sum(np.abs((second - first) / first)), rel=1e-6)
    assert record.low < record.value < record.high
    assert record.n == 200 - np.count_nonzero(synthetic[:, 0] == 4)
    assert found["regression_distance", ""].value == record.value


def test_the_baseline_is_what_bootstraps_have():
    original = twins.rows(1000, 1)
    rng = np.random.default_rng(5)
    values = []
    for _ in range(60):
        drawn = original[rng.integers(0, len(original), 400)]
        found = records(TEXT, original, drawn)["regression_distance", TEXT]
        values.append(found.value)
    # Within a fifth of the mean of seeded draws, whose own standard error is a twentieth.
    assert np.mean(values) == pytest.approx(found.baseline, rel=0.2)


def test_several_tables_are_pooled_by_the_plug_in_rule():
    original = twins.rows(600, 1)
    tables = [twins.rows(150, seed) for seed in (2, 3, 4)]
    tables = [codes[codes[:, 0] < 4][:130] for codes in tables]
    found = records(TEXT, original, *tables)
    fits = [twins.linear(codes, TEXT) for codes in tables]
    used = int(np.count_nonzero(original[:, 0] < 4))
    pooled = combine(
        [fit.params for fit in fits],
        [fit.bse**2 for fit in fits],
        rule="plug-in",
        rows=130,
        rows_in=used,
    )
    low, high = pooled.interval(0.95)
    for name, place in zip(NAMES, (0, 2, 3, 1), strict=True):
        record = found["coefficient", f"{TEXT} :: {name}"]
        assert record.value == pytest.approx(pooled.estimate[place], rel=1e-8)
        assert (record.low, record.high) == pytest.approx((low[place], high[place]), rel=1e-6)
    assert "plug-in" in found["regression_distance", TEXT].note


def test_normal_intervals_of_a_logistic_regression():
    codes = twins.rows(900, 2)
    text = "I(charge > 30) ~ sev + cat"
    record = records(text, codes, codes)["coefficient_original", f"{text} :: sev"]
    theirs = twins.logistic(codes, "y ~ sev + cat")
    half = stats.norm.ppf(0.975) * theirs.bse["sev"]
    assert record.low == pytest.approx(theirs.params["sev"] - half, rel=1e-6)


def test_a_category_that_one_table_lacks_is_said():
    original, synthetic = twins.rows(400, 1), twins.rows(300, 2)
    synthetic = synthetic[synthetic[:, 3] != 2]
    text = "charge ~ ward + sev"
    found = records(text, original, synthetic)
    lost = found["coefficient", f"{text} :: ward[c]"]
    assert lost.value is None
    assert "synthetic table 1: the category does not occur" in lost.note
    assert lost.baseline is not None
    assert found["coefficient_original", f"{text} :: ward[c]"].value is not None
    assert found["interval_overlap", f"{text} :: ward[c]"].value is None
    distance = found["regression_distance", text]
    assert distance.value is not None
    assert "without ward[c]" in distance.note
    assert "1 of 5 could not be computed" in found["interval_overlap", ""].note


def test_a_fit_that_fails_is_said_everywhere():
    original, synthetic = twins.rows(400, 1), twins.rows(300, 2)
    synthetic[:, 5] = 4
    text = "I(charge > 30) ~ age"
    found = records(text, original, synthetic)
    for subject in (text, f"{text} :: age"):
        name = "coefficient" if "::" in subject else "regression_distance"
        assert found[name, subject].value is None
        assert "the response has a single value" in found[name, subject].note
    assert found["coefficient_original", f"{text} :: age"].value is not None
    assert found["regression_distance", ""].value is None
    assert found["regression_distance", ""].note.startswith("not computed")


def test_a_coefficient_of_zero_has_no_relative_distance():
    schema = Schema(
        (
            Feature("x", kind="ordinal", categories=("0", "1")),
            Feature("y", kind="ordinal", categories=("1", "2", "3")),
        )
    )
    original = np.array([[0, 0], [0, 2], [1, 0], [1, 2]], dtype=np.uint8)
    other = np.array([[0, 0], [0, 1], [1, 1], [1, 2]], dtype=np.uint8)
    found = records("y ~ x", original, other, schema=schema)["regression_distance", "y ~ x"]
    assert found.value is None
    assert "a coefficient of the original is 0" in found.note


def test_no_formula_and_no_column():
    found = {(r.name, r.subject): r for r in regression_records([])}
    assert found["regression_distance", ""].note == "not computed: no regression formula was given"
    lost = not_fitted("a ~ b", "a synthetic table lacks the column 'b'")
    assert {r.name for r in lost} == {"regression_distance", "interval_overlap"}
    assert all(r.value is None and "'b'" in r.note for r in lost)


def test_independent_columns_are_told_from_the_original():
    original = twins.rows(4000, 1)
    rng = np.random.default_rng(1)
    shuffled = np.stack([rng.permutation(column) for column in original.T], axis=1)
    drawn = original[rng.integers(0, 4000, 4000)]
    bad, good = records(TEXT, original, shuffled), records(TEXT, original, drawn)
    assert good["interval_overlap", ""].value > 0.4 > bad["interval_overlap", ""].value
    bad_distance, good_distance = (f["regression_distance", TEXT] for f in (bad, good))
    assert bad_distance.low > 10 * bad_distance.baseline
    assert good_distance.low <= good_distance.baseline
