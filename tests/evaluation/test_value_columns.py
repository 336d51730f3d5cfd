"""Numbers as they stand in a table, whatever wrote them."""

import numpy as np
import polars as pl
import pytest

from pegsynth.evaluation.evaluated_tables import plain_rows, read_tables, repeats
from pegsynth.inference.choice import weight_columns
from pegsynth.inference.value_columns import ValueCollector, moment_features, value_features
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.recoding import Recoding

SCHEMA = Schema(
    (
        Feature(
            "n",
            kind="numeric",
            edges=(-10, 0, 10, 100),
            missing=("", "-8"),
            not_applicable=("-9",),
            unknown="category",
        ),
        Feature("o", kind="ordinal", categories=("1", "2.5", "4"), missing=("",)),
        Feature("pair", kind="ordinal", categories=("0", "1")),
        Feature("name", categories=("a", "b")),
    )
)
ROWS = {
    "n": [3.0, -8.0, -9.0, None, 250.0, -7.5],
    "o": ["1", "2.5", None, "4", "1", "1"],
    "pair": ["0", "1", "0", "1", "0", "1"],
    "name": ["a", "b", "a", "b", "a", "b"],
}
EXPECTED = [3.0, np.nan, np.nan, np.nan, 250.0, -7.5]


def same(found, expected):
    assert np.array_equal(found, np.array(expected), equal_nan=True), found


def values(table, schema=SCHEMA):
    return read_tables(table, [table], schema, threads=1).values


def test_numbers_are_those_of_the_table_and_not_of_its_bins():
    for found in values(pl.DataFrame(ROWS)):
        same(found.columns["n"], EXPECTED)
        same(found.columns["o"], [1, 2.5, np.nan, 4, 1, 1])
        assert set(found.columns) == set(value_features(SCHEMA)) == {"n", "o"}
        assert (found.every, found.labelled, found.weights) == (1, frozenset(), None)


def test_text_is_read_as_the_encoder_reads_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "n,o,pair,name\n3,1,0,a\n-8,2.5,1,b\n-9,,0,a\n,4,1,b\n250,1,0,a\n -7.5 ,1,1,b\n"
    )
    for found in values(path):
        same(found.columns["n"], EXPECTED)


def test_decimal_commas(tmp_path):
    schema = Schema(SCHEMA.features, dialect=Dialect(separator=";", decimal=",", thousands="."))
    path = tmp_path / "t.csv"
    path.write_text("n;o;pair;name\n1.250,5;1;0;a\n-7,5;1;1;b\n")
    for found in values(path, schema):
        same(found.columns["n"], [1250.5, -7.5])


def test_labels_of_bins_are_no_numbers():
    frame = pl.DataFrame(ROWS | {"n": [SCHEMA.features[0].labels[0], "3", "4", "5", "6", "-9"]})
    for found in values(frame):
        assert found.labelled == {"n"}
        assert not found.has("n")
        assert found.has("o")


def test_infinite_numbers_are_none():
    frame = pl.DataFrame(ROWS | {"n": [np.inf, -np.inf, np.nan, 1.0, 2.0, 3.0]})
    for found in values(frame):
        same(found.columns["n"], [np.nan, np.nan, np.nan, 1, 2, 3])
        assert found.labelled == frozenset()


def test_numbers_are_recoded_as_the_codebook_says():
    recoded = Feature("n", kind="numeric", edges=(0, 10, 50), recoding=Recoding(round=5, top=40))
    frame = pl.DataFrame({"n": [2.5, 7.4, 39.0, 41.0, 1000.0]})
    for found in values(frame, Schema((recoded,))):
        same(found.columns["n"], [5, 5, 40, 40, 40])


def test_dates_are_compared_apart_from_numbers():
    date = Feature("d", kind="date", edges=("2020-01-01", "2021-01-01", "2022-01-01"))
    schema = Schema((date, *SCHEMA.features))
    assert value_features(schema) == ("n", "o")
    assert moment_features(schema) == ("d",)


def test_weights_need_replicates():
    ours = ("pegs_weight", "pegs_weight_1", "pegs_weight_2")
    assert weight_columns(["n", *ours, "pegs_weight_4"], SCHEMA.names) == ours
    assert weight_columns(["n", "pegs_weight"], SCHEMA.names) == ()
    assert weight_columns(["n", "pegs_weight", "pegs_weight_1"], SCHEMA.names) == ()


def test_weights_may_have_another_name():
    theirs = ("weight", "weight_1", "weight_2")
    assert weight_columns(["n", *theirs], SCHEMA.names) == theirs
    assert weight_columns(theirs, ("weight",)) == ()
    # Ours come first; of others there must be one.
    ours = ("pegs_weight", "pegs_weight_1", "pegs_weight_2")
    assert weight_columns([*theirs, *ours]) == ours
    assert weight_columns([*theirs, "x", "x_1", "x_2"]) == ()
    assert weight_columns([*theirs, "x", "x_1", "x_2"], ("x",)) == theirs


def test_weights_are_read_and_rows_counted_by_them():
    weights = {
        "weight": [2.0, 0.0, 1.0, 1.0, 1.0, 1.0],
        "weight_1": [1.0] * 6,
        "weight_2": [None, -1.0, 3.0, 1.0, 1.0, 1.0],
    }
    plain = pl.DataFrame(ROWS)
    tables = read_tables(
        plain,
        [plain.with_columns(**{k: pl.Series(v) for k, v in weights.items()})],
        SCHEMA,
        threads=1,
    )
    found = tables.values[1]
    assert found.weights.tolist() == weights["weight"]
    assert found.replicates.tolist() == [[1.0] * 6, [0, 0, 3, 1, 1, 1]]
    assert not any(record.name == "extra_columns" for record in tables.records)
    (counted,) = tables.counted
    assert counted.tolist() == tables.synthetic[0][[0, 0, 2, 3, 4, 5]].tolist()


@pytest.mark.parametrize("batch", [1, 3, 7, 100])
def test_too_many_numbers_are_thinned_evenly(batch):
    frame = pl.DataFrame({"n": np.arange(100) % 90, "o": ["1"] * 100})
    collector = ValueCollector(SCHEMA, most=40)
    codes = np.zeros((100, 4), dtype=np.uint8)
    for start in range(0, 100, batch):
        collector.add(frame[start : start + batch], codes[start : start + batch])
    found = collector.finish()
    assert found.every in (8, 16)
    assert found.columns["n"].tolist() == (np.arange(100) % 90)[:: found.every].tolist()


def test_repeats_add_up_and_follow_the_weights():
    rng = np.random.default_rng(1)
    for size in (1, 2, 17, 500):
        weights = rng.gamma(0.3, 1.0, size) + 1e-12
        found = repeats(weights)
        assert found.sum() == size
        wanted = np.cumsum(weights) * size / weights.sum()
        assert np.abs(np.cumsum(found) - wanted).max() <= 0.5 + 1e-9
    assert repeats(np.zeros(3)).tolist() == [1, 1, 1]
    codes = np.arange(6).reshape(3, 2)
    assert plain_rows(codes, None) is codes
