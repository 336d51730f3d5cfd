import json

import numpy as np
import polars as pl
import pytest
import regression_twins as twins
from regression_twins import SCHEMA

import pegsynth
from pegsynth.codec.codec import decode
from pegsynth.errors import DataError, ParameterError, SchemaError
from pegsynth.evaluation import Metrics
from pegsynth.evaluation.evaluate import PAPER_FORMULAS, options_of
from pegsynth.evaluation.measuring import HEADLINES, RISK_KEYS

FORMULA = "I(charge > 30) ~ age + sev + cat"


def frame(codes, how="labels"):
    words = np.random.default_rng(1).integers(0, 2**63, codes.size, dtype=np.uint64)
    return decode(codes, SCHEMA, words, how=how)


ORIGINAL = frame(twins.rows(400, 1))
SYNTHETIC = frame(twins.rows(300, 2))


@pytest.fixture(scope="module")
def evaluated():
    return pegsynth.evaluate(
        frame(twins.rows(400, 1), "values"),
        [frame(twins.rows(300, 2), "values"), frame(twins.rows(300, 3), "values")],
        SCHEMA,
        holdout=frame(twins.rows(200, 4)),
        target="cat",
        formulas=[FORMULA, "charge ~ sev"],
        per_record=True,
        threads=2,
    )


def test_every_headline_has_a_value(evaluated):
    assert tuple(evaluated.summary) == HEADLINES
    assert all(value is not None for value in evaluated.summary.values()), evaluated.summary


def test_every_record_is_complete(evaluated):
    for record in evaluated.records:
        assert record.better in ("lower", "higher")
        assert record.value is not None or record.note.startswith("not computed"), record
        if record.value is not None and record.low is not None:
            assert record.low <= record.value <= record.high, record
        if record.value is not None:
            assert record.n > 0, record
    keys = [(record.name, record.subject) for record in evaluated.records]
    assert len(set(keys)) == len(keys)


def test_the_file_holds_the_same_and_no_row(evaluated):
    text = evaluated.to_json()
    parts = {"format", "summary", "verdict", "records", "marginals", "distributions"}
    assert set(json.loads(text)) == parts
    assert Metrics.from_json(text).summary == evaluated.summary
    assert Metrics.from_json(text).records == evaluated.records


def test_rows_are_kept_on_request_only(evaluated):
    assert evaluated.per_record.height == 400
    assert evaluated.per_record["row"].to_list() == list(range(1, 401))
    assert evaluated.per_record.width > 1
    assert pegsynth.evaluate(ORIGINAL, SYNTHETIC, SCHEMA).per_record is None


def test_files_frames_values_and_labels_are_the_same(tmp_path):
    SCHEMA.save(tmp_path / "schema.toml")
    ORIGINAL.write_csv(tmp_path / "o.csv")
    frame(twins.rows(300, 2), "values").write_parquet(tmp_path / "s.parquet")
    frames = pegsynth.evaluate(ORIGINAL.to_pandas(), SYNTHETIC.to_arrow(), SCHEMA)
    files = pegsynth.evaluate(
        str(tmp_path / "o.csv"), tmp_path / "s.parquet", tmp_path / "schema.toml", threads=1
    )
    assert frames.to_json() == files.to_json()


def test_identical_tables():
    found = pegsynth.evaluate(ORIGINAL, ORIGINAL, SCHEMA, formulas=FORMULA)
    for name in ("tvd1", "tvd2", "tvd3", "marginal_distance", "conditional_distance"):
        assert found.summary[name] == 0
    assert found.summary["regression_distance"] == 0
    assert found.summary["interval_overlap"] == 1
    assert found.summary["pmse"] == pytest.approx(0, abs=1e-12)
    assert found.summary["reappearing_uniques"] == 1


def test_independent_columns_are_of_low_utility():
    rng = np.random.default_rng(1)
    codes = twins.rows(3000, 1)
    shuffled = np.stack([rng.permutation(column) for column in codes.T], axis=1)
    drawn = codes[rng.integers(0, 3000, 3000)]
    bad, good = (
        pegsynth.evaluate(frame(codes), frame(other), SCHEMA, formulas=FORMULA, target="cat")
        for other in (shuffled, drawn)
    )
    floor = good.record("tvd2").baseline
    assert bad.summary["tvd2"] > 1.5 * floor > good.summary["tvd2"]
    assert bad.summary["interval_overlap"] < 0.5 < good.summary["interval_overlap"]
    assert bad.record("auc_synthetic", "cat").high < good.record("auc_synthetic", "cat").baseline
    # Shuffled columns have the same marginals: the propensity score alone would not notice.
    assert bad.summary["pmse_ratio"] == pytest.approx(0, abs=1e-6)


def test_a_missing_column_is_said_and_the_rest_is_measured():
    found = pegsynth.evaluate(
        ORIGINAL,
        SYNTHETIC.drop("sev"),
        SCHEMA,
        formulas=[FORMULA, "charge ~ age"],
        target="I(sev > 0)",
    )
    assert "column 'sev' could not be compared" in found.record("regression_distance", FORMULA).note
    assert found.record("regression_distance", "charge ~ age").value is not None
    assert found.record("auc_synthetic", "I(sev > 0)").value is None
    assert found.record("missing_column", "sev").value is None
    assert found.record("tvd1", "age").value is not None
    assert found.record("tvd1", "sev") is None
    assert "without sev, which could not be compared" in found.record("tvd1").note
    assert found.summary["intruder_error"] is not None


def test_risks_need_the_columns_that_identify():
    found = pegsynth.evaluate(ORIGINAL, SYNTHETIC.drop("ward"), SCHEMA)
    for name in ("uniqueness", *RISK_KEYS):
        assert found.summary[name] is None
        assert "column 'ward' could not be compared" in found.record(name).note
    assert found.summary["tvd1"] is not None


def test_nothing_to_compare_is_said_for_every_headline():
    empty = SYNTHETIC.clear()
    found = pegsynth.evaluate(ORIGINAL, empty, SCHEMA, formulas=FORMULA, target="cat")
    assert tuple(found.summary) == HEADLINES
    assert set(found.summary.values()) == {None}
    for name in HEADLINES:
        assert found.record(name).note.startswith("not computed")


def test_tables_without_a_common_column_are_refused():
    with pytest.raises(DataError, match="no column in common with the original"):
        pegsynth.evaluate(ORIGINAL, pl.DataFrame({"z": [1]}), SCHEMA)
    first, *others = SYNTHETIC.columns
    parts = [SYNTHETIC.select(first), SYNTHETIC.select(others)]
    with pytest.raises(DataError, match="no column of the original is in all of these tables"):
        pegsynth.evaluate(ORIGINAL, parts, SCHEMA)


def test_a_table_of_one_row():
    found = pegsynth.evaluate(ORIGINAL, SYNTHETIC.head(1), SCHEMA, formulas=FORMULA, target="cat")
    assert found.summary["tvd1"] is not None
    assert found.summary["regression_distance"] is None
    assert "single value" in found.record("regression_distance", FORMULA).note
    assert found.summary["auc_synthetic"] is None


def test_unknown_values_count_in_the_distances():
    rows = SYNTHETIC.height
    wards = pl.Series("ward", [SYNTHETIC["ward"][0], *["elsewhere"] * (rows - 1)])
    found = pegsynth.evaluate(ORIGINAL, SYNTHETIC.with_columns(wards), SCHEMA)
    strange = (rows - 1) / rows
    assert found.record("unknown_values", "ward").value == pytest.approx(strange)
    assert found.record("tvd1", "ward").value >= strange
    marginal = next(m for m in found.marginals if m.feature == "ward")
    shares = dict(zip(marginal.categories, marginal.synthetic, strict=True))
    assert shares["(other)"] == pytest.approx(strange)


def test_a_column_without_any_listed_value_is_refused():
    """It would be one category: a red utility, and a risk of zero that nobody has measured."""
    strange = SYNTHETIC.with_columns(pl.lit("elsewhere").alias("ward"))
    for tables in (strange, [SYNTHETIC, strange]):
        with pytest.raises(DataError, match=r"column 'ward' of synthetic table \d: none of its"):
            pegsynth.evaluate(ORIGINAL, tables, SCHEMA)
    with pytest.raises(DataError, match="column 'ward' of the hold-out"):
        pegsynth.evaluate(ORIGINAL, SYNTHETIC, SCHEMA, holdout=strange)


def test_no_table_is_refused():
    with pytest.raises(ParameterError, match="no synthetic table"):
        pegsynth.evaluate(ORIGINAL, [], SCHEMA)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"formulas": "charge ~ weight"}, "no feature 'weight'"),
        ({"target": "weight"}, "no feature 'weight'"),
        ({"known": ["weight"]}, "'weight'"),
        ({"infer": "weight"}, "'weight'"),
        ({"known": "cat", "infer": "cat"}, "both known and"),
        ({"known": [["cat"], ["sev"]], "infer": ["charge"]}, "2 lists of known features and 1"),
        ({"threads": 0}, "threads"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(options, message):
    with pytest.raises((ParameterError, SchemaError), match=message):
        pegsynth.evaluate(ORIGINAL, SYNTHETIC, SCHEMA, **options)


def test_attacks_as_people_write_them():
    def attacks(**options):
        return options_of(SCHEMA, **options).attacks

    assert attacks() == ((None, None),)
    assert attacks(known="cat, sev") == ((("cat", "sev"), None),)
    assert attacks(known=["cat", "sev"], infer="charge") == ((("cat", "sev"), ("charge",)),)
    assert attacks(known=["cat,sev", "age"], infer=["charge", "los"]) == (
        (("cat", "sev"), ("charge",)),
        (("age",), ("los",)),
    )
    found = pegsynth.evaluate(
        ORIGINAL, SYNTHETIC, SCHEMA, known=[["cat", "sev"], ["age"]], infer=["charge", "ward"]
    )
    assert found.record("intruder_error", "charge | cat, sev").value is not None
    assert found.record("intruder_error", "ward | age").value is not None


def test_the_papers_regressions_are_the_default_on_its_data():
    schema = pegsynth.datasets.discharge_schema()
    texts = tuple(formula.text for formula in options_of(schema).formulas)
    assert texts == PAPER_FORMULAS
    assert options_of(SCHEMA).formulas == ()
    assert options_of(schema, formulas=[]).formulas == ()


@pytest.mark.slow
def test_a_million_rows_take_seconds_and_bounded_memory():
    import resource
    import time

    schema = pegsynth.datasets.discharge_schema()
    original = pegsynth.datasets.discharge(1_000_000, seed=1)
    drawn = original.sample(1_000_000, with_replacement=True, seed=2)
    pegsynth.evaluate(original.head(2000), drawn.head(2000), schema)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found = pegsynth.evaluate(original, drawn, schema)
    # Processor time, which other work on the machine does not change much.
    assert time.process_time() - start < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2_000_000
    assert found.summary["tvd1"] == pytest.approx(found.record("tvd1").baseline, rel=0.5)
