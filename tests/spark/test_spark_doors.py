"""Door invariance on Spark (R30): DataFrames, files and folders; PEGSYNTH_LONG=1 tries more."""

import os
import shutil
from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np
import pytest

import spark_clusters
from checks.doors import readers as door_readers
from checks.doors.comparing import Door, failures
from checks.doors.reading import Reading
from checks.doors.tables import FOLDER, UNIT, Holding
from door_twins import BY_NAME, pair_of
from file_twin import request
from pegsynth.cli import cluster, working
from pegsynth.codec.codec import Decoder
from pegsynth.errors import DataError
from pegsynth.pipeline.settling import settle
from pegsynth.random import RandomStream
from pegsynth.schema import Feature
from pegsynth.spark import arrow_batches, codes
from pegsynth.spark.cluster_files import file_source, folder_columns
from pegsynth.spark.cluster_fit import count_model
from pegsynth.spark.codes import UnitWords
from pegsynth.spark.counts import ClusterCounts
from pegsynth.tables.caller_frames import check_names

PAIRS = 13 if os.environ.get("PEGSYNTH_LONG") else 1
KINDS = (
    *("string", "int64", "int32", "int8", "double", "float", "bool", "date32"),
    *("decimal128(38, 6)", "decimal128(9, 2)", "timestamp[us]", "timestamp[us, tz=Europe/Berlin]"),
)


def counted(task, batches, counts, schema):
    """Return the codes of the rows that count, and refuse what a cluster would."""
    seen = codes.RowsSeen(len(schema.names))
    parts = codes.unpacked(task(batches), schema, seen)
    lines = [tuple(line) for part in parts for line in part.tolist()]
    counts._first = None
    counts._check(seen)
    return {line[0]: line for line in lines}


def read_frame(opened, schema):
    """Read a DataFrame as `count_model` does, but to rows and not to counts.

    Values go through Spark and its workers; what they give is worked on here, by the same
    tasks, because every job takes long.
    """
    frame, folder = opened()
    check_names(frame.columns, "the DataFrame")
    alone = replace(schema, unit=None)
    words = UnitWords.of(frame, RandomStream())
    counts = ClusterCounts(frame, schema, words, source="the DataFrame")
    by_unit = counts._codes
    whole = file_source(frame, alone, 2) or codes.code_source(frame, alone, None, 2)
    every = counted(whole.task, whole.frame.toArrow().to_batches(), counts, alone)
    named_rows = by_unit.frame.toArrow().to_batches()
    kept = counted(by_unit.task, named_rows, counts, schema)
    unit = {}
    for batch in named_rows:
        for name, cell in zip(batch["unit"].to_pylist(), batch["codes"].to_pylist(), strict=True):
            if cell is not None:
                line = tuple(np.frombuffer(cell, dtype=schema.code_dtype).tolist())
                assert line == every[line[0]]
                unit[line[0]] = name
    named = folder_columns(frame) if folder else ()
    types = arrow_batches.column_types(frame, [name for name in schema.names if name not in named])
    order = () if folder else tuple(frame.columns)
    written = Decoder(schema, columns=order or None, dtypes=types).schema
    return Reading("", True, (str(order), str(types), str(written)), every, unit, frozenset(kept))


def frame_of(spark, folder, pair, rows):
    """A DataFrame made of values, in one partition or in several."""
    made = spark.createDataFrame(door_readers.arrow_table(pair, rows))
    return lambda: (made.repartition(3) if pair.pick(1, 2) else made, False)


def files_of(spark, name, folder, pair, rows):
    """A DataFrame of Parquet files, of which workers read the plain ones themselves."""
    source = BY_NAME[name].build(folder, pair, rows)
    return lambda: (cluster._read(spark, source), name != "Parquet")


def doors(spark):
    plain, foldered = Holding(KINDS), Holding(KINDS, folder=True)
    yield Door("Spark DataFrame", plain, partial(frame_of, spark), False, read=read_frame)
    for name, holding in (
        ("Parquet", plain),
        ("Parquet folder", plain),
        ("Parquet partitions", foldered),
    ):
        build = partial(files_of, spark, name)
        yield Door(f"Spark, {name}", holding, build, False, read=read_frame)


@pytest.mark.slow(seconds=30)
def test_one_row_more_changes_nothing_on_spark(tmp_path):
    """One test, because a session takes long to start."""
    with spark_clusters.local_session() as spark:
        for door in doors(spark):
            for failure in failures(door, PAIRS):
                pytest.fail(str(failure))
        same_numbers_give_the_same_model(spark, tmp_path)
        tables_of_a_lakehouse_are_refused(spark, tmp_path)


def tables_of_a_lakehouse_are_refused(spark, folder):
    """Spark's plain Parquet reader, too, would read files that a log has removed."""
    lake = folder / "lake"
    for mark in ("_delta_log", ".hoodie", "metadata/v1.metadata.json"):
        shutil.rmtree(lake, ignore_errors=True)
        spark.range(3).write.parquet(f"{lake}/people/ward=a b")
        assert cluster._read(spark, f"{lake}/people").count() == 3
        (lake / "people" / mark).mkdir(parents=True)
        for source in ("people", "people/ward=a b", "people/*/*.parquet", "*"):
            with pytest.raises(DataError, match=r"lake/people: this folder is an? \w+ table"):
                cluster._read(spark, f"{lake}/{source}")


def same_numbers_give_the_same_model(spark, folder):
    pair = pair_of(
        {FOLDER: "string", UNIT: "decimal128(38, 6)"},
        (Feature(FOLDER, categories=("1", "2"), unknown="category"),),
        [("1", Decimal(1)), ("2", Decimal(2))],
        ("none", Decimal(3)),
    )
    plain, more = (
        model_of(spark, pair, rows, folder / "twin")
        for rows in (pair.rows, pair.with_extra(pair.rows))
    )
    assert plain == more


def model_of(spark, pair, rows, folder):
    """The bytes of a model of released blocks whose noisy numbers are given."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    source = BY_NAME["Parquet partitions"].build(folder / "data", pair, rows)
    pair.schema.save(folder / "schema.toml")
    given = request()
    settled, stream = settle(folder / "schema.toml", given, data=source, saved=True), given.stream()
    frame = cluster._read(spark, source)
    model = count_model(frame, settled, stream, source=source, folder=True)
    working.save_fitted(model, folder / "model.pegs", stream)
    return (folder / "model.pegs").read_bytes()
