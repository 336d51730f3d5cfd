"""Quick measures of small tables against the evaluation's own, and against obvious loops."""

from __future__ import annotations

import numpy as np
import pytest

from pegsynth.codec.codec import encode
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.evaluation import evaluate_codes
from pegsynth.evaluation.measuring import risk_records
from pegsynth.evaluation.risk.intruder import Attack, attacks_of
from pegsynth.evaluation.risk.reappearance import expected_uniqueness
from pegsynth.evaluation.risk.risk_tables import risk_tables
from pegsynth.evaluation.utility.distances import conditional_floor, marginal_floor
from pegsynth.inference.model_matrix import sample_of
from pegsynth.schema import Feature, Schema
from studies.paper.intruder_targets import row_keys
from studies.paper.setting import LINEAR, LOGISTIC, setting_of
from studies.paper.yardstick import Regression, Yardstick, figure, regression_distance

SCHEMA = discharge_schema()
SETTING = setting_of(SCHEMA)


@pytest.fixture(scope="module")
def original() -> np.ndarray:
    return encode(discharge(3000, 1), SCHEMA)


@pytest.fixture(scope="module")
def synthetic() -> np.ndarray:
    return encode(discharge(300, 2), SCHEMA)


@pytest.fixture(scope="module")
def measured(original, synthetic) -> dict[str, float]:
    return Yardstick.of(SETTING, original).measure(synthetic)


def test_distances_are_the_evaluations(original, synthetic, measured) -> None:
    metrics = evaluate_codes(original, [synthetic], SCHEMA)
    for record in metrics.records:
        name = figure(record.name, record.subject)
        if record.name == "marginal_distance":
            assert measured[name] == pytest.approx(record.value, rel=1e-12)
        if record.name == "conditional_distance" and record.subject.endswith("| age.yrs"):
            assert measured[name] == pytest.approx(record.value, rel=1e-12)
    given = [v for n, v in measured.items() if n.startswith("conditional") and "| patzip" in n]
    assert given[0] == pytest.approx(np.mean(given[1:]))
    assert measured["tvd1"] == pytest.approx(metrics.summary["tvd1"])


def test_attacks_are_the_evaluations(original, synthetic, measured) -> None:
    tables = risk_tables(original, [synthetic], SCHEMA)
    found = risk_records(tables, attacks_of(SCHEMA)).records
    for record in found:
        if record.name in ("intruder_error", "intruder_matched") and record.subject:
            assert measured[figure(record.name, record.subject)] == pytest.approx(record.value)
    assert {r.subject for r in found if r.name == "intruder_error"} > {
        attack.subject for attack in SETTING.attacks
    }


@pytest.mark.parametrize("text", [LINEAR, LOGISTIC])
def test_regressions_are_those_of_statsmodels(original, synthetic, text: str) -> None:
    import statsmodels.api as sm

    quick = Regression.of(text, original.T, SCHEMA)
    for codes in (original, synthetic):
        sample = sample_of(quick.formula, codes.T, SCHEMA)
        matrix, counts = sample.matrix(quick.columns), sample.counts
        family = sm.families.Gaussian() if text == LINEAR else sm.families.Binomial()
        slow = sm.GLM(sample.response, matrix, family=family, freq_weights=counts).fit(tol=1e-12)
        found = quick.coefficients(codes.T)
        assert list(found.values()) == pytest.approx(slow.params.tolist(), rel=1e-6)
    ours = quick.coefficients(original.T)
    by_hand = sum(abs((found[t] - b) / b) for t, b in ours.items())
    assert regression_distance(ours, found) == pytest.approx(by_hand)


@pytest.mark.parametrize("text", [LINEAR, LOGISTIC])
def test_regressions_that_do_not_exist_have_no_figures(original, text: str) -> None:
    quick = Regression.of(text, original.T, SCHEMA)
    constant = np.repeat(original[:1], 50, axis=0)
    few = original[:3]
    for table in (constant, few):
        assert np.isnan(list(quick.coefficients(table.T).values())).all()


def test_separated_responses_have_no_fit(original) -> None:
    quick = Regression.of(LOGISTIC, original.T, SCHEMA)
    charge, category = SCHEMA.index("charge"), SCHEMA.index("cat")
    table = original[:400].copy()
    table[:, category] = table[:, charge] > 10
    assert np.isnan(list(quick.coefficients(table.T).values())).all()


def test_uniqueness_and_floors(original, synthetic, measured) -> None:
    places = [SCHEMA.index(name) for name in SETTING.unique]
    _, counts = np.unique(synthetic[:, places], axis=0, return_counts=True)
    name = figure("uniqueness", ", ".join(SETTING.unique))
    assert measured[name] == pytest.approx((counts == 1).sum() / len(synthetic))
    floors = Yardstick.of(SETTING, original).floors(300)
    _, groups = np.unique(original[:, places], axis=0, return_counts=True)
    assert floors[name] == pytest.approx(expected_uniqueness(groups, rows=300))
    counts = np.bincount(original[:, 0], minlength=6)
    assert floors["marginal_distance[typ]"] == pytest.approx(marginal_floor(counts, 300))
    age, typ = original[:, 1].astype(int), original[:, 0]
    cells = np.bincount(age * 6 + typ, minlength=18 * 6)
    floor = conditional_floor(np.arange(18 * 6) // 6, cells, 300)
    assert floors["conditional_distance[typ | age.yrs]"] == pytest.approx(floor)


def test_the_original_has_no_distance_from_itself(original) -> None:
    measured = Yardstick.of(SETTING, original).measure(original)
    for name, value in measured.items():
        if "distance" in name:
            assert value == pytest.approx(0, abs=1e-9)
    assert measured["copied_rows"] == 1.0


def test_copied_rows(original, synthetic, measured) -> None:
    held = {tuple(row) for row in original.tolist()}
    by_hand = np.mean([tuple(row) in held for row in synthetic.tolist()])
    assert measured["copied_rows"] == by_hand


def test_wide_rows_are_told_apart_by_a_hash() -> None:
    generator = np.random.default_rng(1)
    columns = generator.integers(0, 1000, (40, 500)).astype(np.uint16)
    keys = row_keys(columns, [1000] * 40)
    assert len(np.unique(keys)) == 500
    assert (row_keys(columns[:, :7].copy(), [1000] * 40) == keys[:7]).all()


def test_slopes_alone(original) -> None:
    alone = Yardstick.of(SETTING, original).slopes_alone()
    one = Regression.of("charge ~ los", original.T, SCHEMA).coefficients(original.T)
    assert alone["alone[linear :: los]"] == one["los"]
    assert "alone[logistic :: cat[Surgical]]" in alone


def test_setting_of_another_schema() -> None:
    plain = Schema(
        (
            Feature("town", categories=("a", "b", "c"), role="quasi-identifier"),
            Feature("year", kind="numeric", edges=(0, 1, 2), role="quasi-identifier"),
            Feature("pay", kind="numeric", edges=(0, 10, 20), role="sensitive"),
            Feature("note", categories=("x", "y")),
        )
    )
    found = setting_of(plain)
    assert found.given == ("town", "year")
    assert found.attacks == (Attack("pay", ("town", "year")),)
    assert found.attacks[0].amounts
    assert found.unique == ("town", "year")
    assert found.formulas == ()
    assert set(found.trio) <= set(plain.names)
    assert any("regressions" in reason for reason in found.left_out)
    assert any("most frequent" in reason for reason in found.left_out)
    bare = setting_of(Schema((Feature("a", categories=("x", "y")),)))
    assert bare.attacks == bare.unique == bare.trio == ()
    assert len(bare.left_out) == 5
