"""Quick measures of small tables against the evaluation's own, and against obvious loops."""

from __future__ import annotations

import numpy as np
import pytest

from pegsynth.datasets import discharge, discharge_schema
from pegsynth.evaluation import evaluate_codes
from pegsynth.evaluation.design import columns_of, sample_of
from pegsynth.evaluation.distances import conditional_floor, marginal_floor
from pegsynth.evaluation.formula import read_formula
from pegsynth.evaluation.intruder import attack
from pegsynth.evaluation.numeric import numeric_values
from pegsynth.evaluation.regression import fit
from pegsynth.evaluation.uniqueness import expected_uniqueness
from pegsynth.schema import Feature, Schema
from pegsynth.schema.codec import encode
from pegsynth.study import targets
from pegsynth.study.measures import Yardstick, figure
from pegsynth.study.regressions import Regression
from pegsynth.study.setting import LINEAR, LOGISTIC, Guess, setting_of
from pegsynth.study.targets import Targets, row_keys

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
    for guess in SETTING.guesses:
        known = [SCHEMA.index(name) for name in guess.known]
        infer = SCHEMA.index(guess.infer)
        values = numeric_values(SCHEMA.features[infer]) if guess.amounts else None
        found = attack(original, synthetic, known, infer, values)
        assert measured[figure("intruder_error", guess.subject)] == pytest.approx(found.error)
        assert measured[figure("intruder_matched", guess.subject)] == found.matched_share


def test_attacks_with_too_many_cells_to_keep(original, synthetic, measured, monkeypatch) -> None:
    monkeypatch.setattr(targets, "MOST_CELLS", 10)
    again = Yardstick.of(SETTING, original).measure(synthetic)
    assert again == pytest.approx(measured)


def test_a_hand_worked_attack() -> None:
    """Two known groups and one that only the release has; its rows count for the fallback."""
    schema = Schema(
        (
            Feature("k", categories=("a", "b", "c"), role="quasi-identifier"),
            Feature("s", categories=("x", "y"), role="sensitive"),
        )
    )
    original = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 0]], dtype=np.uint8)
    released = np.array([[0, 0], [2, 1], [2, 1]], dtype=np.uint8)
    found = Targets.of(Guess("s", ("k",), False), original.T, schema)
    # Group a: guess x, one of three wrong. Group b has no match: the mode is y, one of two wrong.
    assert found is not None
    assert found.attacked(released.T) == (pytest.approx(2 / 5), pytest.approx(3 / 5))


@pytest.mark.parametrize("text", [LINEAR, LOGISTIC])
def test_regressions_are_those_of_statsmodels(original, synthetic, text: str) -> None:
    formula = read_formula(text, SCHEMA)
    quick = Regression.of(text, original.T, SCHEMA)
    for codes, found in ((original, quick.original), (synthetic, quick.fit(synthetic.T))):
        sample = sample_of(formula, codes.T, SCHEMA)
        slow = fit(sample, columns_of(formula, [sample], SCHEMA), formula.kind)
        assert found == pytest.approx({n: e.value for n, e in slow.estimates.items()}, rel=1e-6)
    synth = quick.fit(synthetic.T)
    by_hand = sum(abs((synth[t] - b) / b) for t, b in quick.original.items())
    assert quick.distance(synth) == pytest.approx(by_hand)


@pytest.mark.parametrize("text", [LINEAR, LOGISTIC])
def test_regressions_that_do_not_exist_have_no_figures(original, text: str) -> None:
    quick = Regression.of(text, original.T, SCHEMA)
    constant = np.repeat(original[:1], 50, axis=0)
    few = original[:3]
    for table in (constant, few):
        assert np.isnan(quick.distance(quick.fit(table.T)))


def test_separated_responses_have_no_fit(original) -> None:
    quick = Regression.of(LOGISTIC, original.T, SCHEMA)
    charge, category = SCHEMA.index("charge"), SCHEMA.index("cat")
    table = original[:400].copy()
    table[:, category] = table[:, charge] > 10
    assert np.isnan(quick.distance(quick.fit(table.T)))


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
    one = Regression.of("charge ~ los", original.T, SCHEMA).original["los"]
    assert alone["alone[linear :: los]"] == one
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
    assert found.guesses == (Guess("pay", ("town", "year"), True),)
    assert found.unique == ("town", "year")
    assert found.formulas == ()
    assert set(found.trio) <= set(plain.names)
    assert any("regressions" in reason for reason in found.left_out)
    assert any("most frequent" in reason for reason in found.left_out)
    bare = setting_of(Schema((Feature("a", categories=("x", "y")),)))
    assert bare.guesses == bare.unique == bare.trio == ()
    assert len(bare.left_out) == 5
