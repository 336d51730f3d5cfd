"""The invented discharge table: its codebook, its facts, what it never contains.

The seed is fixed, so nothing here fails by chance; bounds on shares leave room for the
invented tables to be retuned without losing the fact under test.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest

from pegsynth.datasets import discharge, discharge_batches, discharge_schema
from pegsynth.datasets.discharge import figures
from pegsynth.datasets.invented import CHUNK_ROWS, SeekableDraws, cumulate
from pegsynth.errors import ParameterError
from pegsynth.random import RandomStream

NAMES = (
    *("typ", "age.yrs", "sex", "ethncty", "race", "patzip", "los"),
    *("disp", "pay", "charge", "MDC", "sev", "cat"),
)
COUNTS = (6, 18, 3, 4, 7, 16, 16, 13, 9, 25, 25, 3, 2)
NUMBERS = ("age.yrs", "los", "charge", "sev")
MAY_BE_MISSING = {"age.yrs", "sex", "ethncty", "race", "los", "charge"}

age, los, charge = pl.col("age.yrs"), pl.col("los"), pl.col("charge")


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return discharge(200_000, seed=2011)


def share(frame: pl.DataFrame, event: pl.Expr, given: pl.Expr | None = None) -> float:
    part = frame if given is None else frame.filter(given)
    return float(part.select(event.fill_null(value=False).mean()).item())


def slow_codes(frame: pl.DataFrame) -> np.ndarray:
    """Codes by looking every value up, without the codec."""
    columns = []
    for feature in discharge_schema().features:
        values = frame[feature.name].to_list()
        if feature.kind == "numeric":
            inner = feature.edges[1:-1]
            codes = [
                feature.missing_code if v is None else sum(v >= edge for edge in inner)
                for v in values
            ]
        else:
            listed = list(feature.categories)
            codes = [feature.missing_code if v is None else listed.index(str(v)) for v in values]
        columns.append(codes)
    return np.array(columns, dtype=np.uint8).T


# The codebook.


def test_the_paper_s_variables_and_category_counts():
    schema = discharge_schema()
    assert schema.names == NAMES
    assert schema.category_counts == COUNTS
    assert schema.reviewed
    assert schema.drafted_from_data == ()
    assert schema.unit is None


def test_roles_types_and_labels():
    features = {feature.name: feature for feature in discharge_schema().features}
    by_role: dict[str, set[str]] = {}
    for feature in features.values():
        by_role.setdefault(feature.role, set()).add(feature.name)
        assert "invented" in feature.label
        assert feature.dtype == ("int64" if feature.name in NUMBERS else "string")
        assert bool(feature.missing) == (feature.name in MAY_BE_MISSING)
    assert by_role["sensitive"] == {"MDC", "charge"}
    assert by_role["quasi-identifier"] == {"age.yrs", "sex", "race", "ethncty", "patzip"}
    assert "identifier" not in by_role


def test_bins_are_those_of_the_paper():
    features = {feature.name: feature for feature in discharge_schema().features}
    assert features["age.yrs"].edges[:-1] == tuple(range(0, 81, 5))
    assert features["los"].edges[:-1] == (*range(11), 30, 50, 70, 90)
    assert features["charge"].edges[:6] == (0, 2000, 4000, 6000, 8000, 10_000)
    assert features["charge"].edges[6:-1] == tuple(range(15_000, 100_001, 5000))
    assert features["patzip"].categories[0] == "900xx"
    assert features["patzip"].categories[-1] == "935xx"
    assert features["MDC"].categories == tuple(str(code) for code in range(1, 26))


def test_heads_only_on_request():
    assert all(feature.heads == () for feature in discharge_schema().features)
    expert = discharge_schema(heads=True)
    assert expert["sex"].heads == ("MDC", "age.yrs")
    assert all(2 <= len(feature.heads) <= 3 for feature in expert.features)
    assert expert.rules == discharge_schema().rules


def test_rules_forbid_exactly_what_they_say():
    """Every combination of sex, age bin and diagnosis, against the rule in words."""
    schema = discharge_schema()
    sexes, ages = (*schema["sex"].categories, None), (*range(0, 85, 5), None)
    for sex, age_bin, diagnosis in product(range(3), range(18), range(25)):
        row = np.zeros((1, len(NAMES)), dtype=np.uint8)
        row[0, schema.index("sex")] = sex
        row[0, schema.index("age.yrs")] = age_bin
        row[0, schema.index("MDC")] = diagnosis
        wanted = impossible(sexes[sex], ages[age_bin], str(diagnosis + 1))
        assert schema.breaks_a_rule(row)[0] == wanted


def impossible(sex: str | None, years: int | None, diagnosis: str) -> bool:
    if diagnosis == "14":
        return sex == "Male" or (years is not None and not 10 <= years < 55)
    return diagnosis == "15" and years is not None and years >= 5


# The table against the codebook.


def test_columns_and_types(frame):
    assert tuple(frame.columns) == NAMES
    for name in NAMES:
        assert frame.schema[name] == (pl.Int64 if name in NUMBERS else pl.String)
    assert len(frame) == 200_000


def test_every_category_occurs_and_no_other(frame):
    for feature in discharge_schema().features:
        values = frame[feature.name]
        assert (values.null_count() > 0) == bool(feature.missing), feature.name
        if feature.kind == "numeric":
            bins = np.searchsorted(feature.edges[1:-1], values.drop_nulls(), side="right")
            assert set(bins.tolist()) == set(range(feature.bin_count)), feature.name
        else:
            seen = {str(value) for value in values.drop_nulls().unique()}
            assert seen == set(feature.categories), feature.name


def test_values_lie_above_the_lowest_edges(frame):
    assert frame["age.yrs"].min() == 0
    assert frame["age.yrs"].max() < 110
    assert frame["los"].min() == 0
    assert frame["charge"].min() > 0


def test_no_row_is_impossible(frame):
    rows = frame.select("sex", "age.yrs", "MDC").iter_rows()
    assert not any(impossible(*row) for row in rows)


def test_the_check_for_impossible_rows_has_power(frame):
    shuffled = zip(frame["sex"], frame["age.yrs"], frame["MDC"].reverse(), strict=True)
    assert sum(impossible(*row) for row in shuffled) > 1000


def test_the_schema_agrees_that_no_row_is_impossible(frame):
    codes = slow_codes(frame.head(50_000))
    assert (codes < np.array(COUNTS)).all()
    assert not discharge_schema().breaks_a_rule(codes).any()


def test_the_codec_gives_the_same_codes(frame):
    codec = pytest.importorskip("pegsynth.codec.codec")
    part = frame.head(20_000)
    np.testing.assert_array_equal(codec.encode(part, discharge_schema()), slow_codes(part))


def test_last_bins_decode_to_about_the_right_mean(frame):
    """The middle of a last bin is what a decoded value averages."""
    for feature in discharge_schema().features:
        if feature.kind == "numeric":
            low, high = feature.edges[-2:]
            values = frame[feature.name]
            tail = values.filter(values >= low).mean()
            assert tail == pytest.approx((low + high) / 2, rel=0.1), feature.name


# What an analyst would look for.


def test_newborns(frame):
    newborns = frame.filter(pl.col("MDC") == "15")
    assert 0.08 < len(newborns) / len(frame) < 0.12
    assert newborns["age.yrs"].null_count() == 0
    assert newborns["age.yrs"].max() == 0
    assert share(newborns, los.is_between(1, 4), los.is_not_null()) > 0.95
    assert share(newborns, pl.col("disp") == "Routine") > 0.95
    assert newborns["charge"].median() < frame["charge"].median() / 4


def test_pregnancy_is_of_women_of_child_bearing_age(frame):
    pregnant = frame.filter(pl.col("MDC") == "14")
    assert len(pregnant) / len(frame) > 0.08
    assert set(pregnant["sex"].unique()) <= {"Female", None}
    assert pregnant["age.yrs"].min() >= 10
    assert pregnant["age.yrs"].max() <= 54
    assert share(frame, pl.col("MDC") == "12", pl.col("sex") == "Female") == 0
    assert share(frame, pl.col("MDC") == "13", pl.col("sex") == "Male") == 0


def test_medicare_begins_at_65(frame):
    assert share(frame, pl.col("pay") == "Medicare", age >= 65) > 0.7
    assert share(frame, pl.col("pay") == "Medicare", age < 65) < 0.2


def test_payer_and_race_follow_the_zip_area(frame):
    def medi_cal(area: str) -> float:
        return share(frame, pl.col("pay") == "Medi-Cal", pl.col("patzip") == area)

    def black(area: str) -> float:
        return share(frame, pl.col("race") == "Black", pl.col("patzip") == area)

    assert medi_cal("900xx") > 1.5 * medi_cal("904xx")
    assert medi_cal("935xx") > 1.5 * medi_cal("910xx")
    assert black("903xx") > 5 * black("912xx")
    hispanic = pl.col("ethncty") == "Hispanic"
    assert share(frame, hispanic, pl.col("patzip") == "906xx") > 2 * share(
        frame, hispanic, pl.col("patzip") == "904xx"
    )


def test_charge_rises_with_stay_severity_and_surgery(frame):
    acute = frame.filter((pl.col("typ") == "Acute Care") & charge.is_not_null())
    by_stay = acute.filter(los <= 9).group_by("los").agg(charge.log().mean()).sort("los")
    assert by_stay["charge"].is_sorted()
    by_severity = acute.group_by("sev").agg(charge.log().mean()).sort("sev")
    assert by_severity["charge"].is_sorted()
    same = acute.filter((pl.col("MDC") == "8") & (los == 3) & (pl.col("sev") == 0))
    means = dict(same.group_by("cat").agg(charge.log().mean()).iter_rows())
    assert means["Surgical"] > means["Medical"] + 0.5


def test_charges_are_heavy_tailed_and_about_half_below_20_000(frame):
    charges = frame["charge"].drop_nulls()
    assert 0.45 < (charges < 20_000).mean() < 0.55
    assert charges.mean() > 1.5 * charges.median()
    assert charges.max() > 1_000_000


def test_stays_by_type_of_care(frame):
    stays = dict(frame.group_by("typ").agg(los.median()).iter_rows())
    assert stays["Acute Care"] < stays["Psychiatric"] < stays["Skilled Nursing"]
    assert 0.65 < share(frame, los < 10) < 0.85
    assert share(frame, los < 1) > 0.01


def test_dispositions_by_type_of_care(frame):
    for place, care in (
        ("Residential Care", "Psychiatric"),
        ("Home Health Service", "Skilled Nursing"),
        ("Against Medical Advice", "Chemical Dependency"),
    ):
        there = share(frame, pl.col("disp") == place, pl.col("typ") == care)
        assert there > 2 * share(frame, pl.col("disp") == place, pl.col("typ") == "Acute Care")


def test_psychiatric_care_is_for_mental_diagnoses(frame):
    assert share(frame, pl.col("typ") == "Psychiatric", pl.col("MDC") == "19") > 0.6
    assert share(frame, pl.col("MDC").is_in(["19", "20"]), pl.col("typ") == "Psychiatric") == 1


def test_surgery_by_diagnosis(frame):
    surgical = pl.col("cat") == "Surgical"
    assert share(frame, surgical, pl.col("MDC") == "8") > 0.4
    assert share(frame, surgical, pl.col("MDC") == "19") < 0.05
    assert share(frame, surgical, pl.col("typ") != "Acute Care") < 0.05


def test_death_rises_with_age_and_severity(frame):
    died = pl.col("disp") == "Died"
    by_severity = [share(frame, died, pl.col("sev") == severity) for severity in range(3)]
    assert by_severity == sorted(by_severity)
    by_age = [share(frame, died, age.is_between(*ages)) for ages in ((1, 64), (65, 79), (80, 120))]
    assert by_age == sorted(by_age)
    assert by_age[0] > 0


# What is missing, and for whom.


@pytest.mark.parametrize(
    ("lost", "often", "seldom", "ratio"),
    [
        ("charge", pl.col("pay") == "Private", pl.col("pay") == "Medi-Cal", 4),
        ("los", pl.col("typ") == "Skilled Nursing", pl.col("typ") == "Acute Care", 10),
        ("race", pl.col("patzip") == "935xx", pl.col("patzip") == "910xx", 4),
        ("race", pl.col("pay") == "Self Pay", pl.col("pay") == "Medi-Cal", 2),
        ("ethncty", pl.col("race").is_null(), pl.col("race").is_not_null(), 10),
        ("age.yrs", pl.col("race") == "Native American", pl.col("race") == "White", 5),
        ("sex", pl.col("race") == "Pacific Islander", pl.col("race") == "White", 5),
        ("age.yrs", pl.col("typ") == "Psychiatric", pl.col("typ") == "Acute Care", 3),
    ],
)
def test_missing_values_are_not_missing_at_random(frame, lost, often, seldom, ratio):
    missing = pl.col(lost).is_null()
    assert share(frame, missing, often) > ratio * share(frame, missing, seldom)


# Reproducibility.


def test_a_seed_fixes_the_table():
    assert discharge(3000, seed=5).equals(discharge(3000, seed=5))
    assert not discharge(3000, seed=5).equals(discharge(3000, seed=6))


def test_tables_of_different_seeds_agree_only_by_chance():
    one, other = discharge(20_000, seed=5), discharge(20_000, seed=6)
    spread = np.corrcoef(one["charge"].fill_null(0).log1p(), other["charge"].fill_null(0).log1p())
    assert abs(spread[0, 1]) < 5 / np.sqrt(20_000)
    assert (one["patzip"] == other["patzip"]).mean() < 0.2


def test_without_a_seed_every_table_is_new():
    assert not discharge(500).equals(discharge(500))


@pytest.mark.parametrize("rows", [1, 777, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1])
def test_a_shorter_table_is_the_beginning_of_a_longer_one(rows, frame):
    assert discharge(rows, seed=2011).equals(frame.head(rows))


def test_chunks_are_not_repeated(frame):
    assert not frame[:1000].equals(frame[CHUNK_ROWS : CHUNK_ROWS + 1000])


@pytest.mark.parametrize("batch", [60_000, CHUNK_ROWS, 150_000, 1_000_000])
def test_batches_are_the_table_in_pieces(batch, frame):
    pieces = list(discharge_batches(len(frame), 2011, batch=batch))
    assert all(len(piece) == batch for piece in pieces[:-1])
    assert 1 <= len(pieces[-1]) <= batch
    assert pl.concat(pieces).equals(frame)


@pytest.mark.parametrize("rows", [0, -3, 1.5, True, "10", None])
def test_rows_must_be_a_positive_whole_number(rows):
    with pytest.raises(ParameterError, match="rows"):
        discharge(rows)


def test_batch_and_seed_are_checked_before_any_work():
    with pytest.raises(ParameterError, match="batch"):
        discharge_batches(10, 1, batch=0)
    with pytest.raises(ParameterError, match="seed"):
        discharge(10, seed="one")  # type: ignore[arg-type]


def test_numpy_integers_are_whole_numbers():
    assert discharge(np.int64(5), seed=np.int64(3)).equals(discharge(5, seed=3))


# The draws underneath.


def some_draws(rows: int) -> SeekableDraws:
    return SeekableDraws(RandomStream(7), chunk=0, rows=rows, names=("a", "b"))


def test_categories_are_drawn_by_their_weights_and_never_at_weight_zero():
    weights = np.array([[0, 1, 3, 0], [2, 0, 0, 2], [0, 0, 0, 5]])
    group = np.arange(90_000) % 3
    codes = some_draws(90_000).category("a", cumulate(weights), group)
    for row, wanted in enumerate(weights):
        seen = np.bincount(codes[group == row], minlength=4) / 30_000
        np.testing.assert_allclose(seen, wanted / wanted.sum(), atol=0.015)
        assert (seen[wanted == 0] == 0).all()


@pytest.mark.parametrize("uniform", [0.0, 1 - 2.0**-53])
def test_extreme_uniforms_stay_inside_their_group(uniform, monkeypatch):
    weights = np.tile([0, 1, 1, 0], (500, 1))
    monkeypatch.setattr(SeekableDraws, "uniform", lambda self, name: np.full(500, uniform))
    codes = some_draws(500).category("a", cumulate(weights), np.arange(500))
    assert (codes == (1 if uniform == 0 else 2)).all()


def test_a_draw_depends_on_its_name_and_not_on_the_number_of_rows():
    assert (some_draws(50).uniform("a") == some_draws(80).uniform("a")[:50]).all()
    assert not (some_draws(50).uniform("a") == some_draws(50).uniform("b")).any()


def test_normals_are_standard():
    normals = some_draws(100_000).normal("a")
    assert np.isfinite(normals).all()
    assert abs(normals.mean()) < 0.02
    assert abs(normals.std() - 1) < 0.02


# The invented tables.


def test_figures_have_the_shapes_their_names_promise():
    schema, said = discharge_schema(), figures()
    assert len(said["areas"]) == 16
    assert len(said["diagnoses"]) == 25
    assert all(len(area["race"]) == len(schema["race"].categories) for area in said["areas"])
    assert all(len(d["by_age"]) == len(said["age_groups"]) for d in said["diagnoses"])
    assert len(said["age_men"]) == len(said["age_women"]) == 17
    for factors in (
        *said["disposition_by_stage"],
        *said["disposition_by_severity"],
        *said["disposition_by_gravity"],
        said["disposition_uninsured"],
    ):
        assert set(factors) <= set(schema["disp"].categories)
    diagnoses = {each["name"] for each in said["diagnoses"]}
    named = {each["name"] for each in said["care_by_diagnosis"]}
    assert named | set(said["rehabilitated"]) | set(said["hurt"]) <= diagnoses
    assert set(said["payer_hurt"]) | set(said["uninsured"]) <= set(schema["pay"].categories)
