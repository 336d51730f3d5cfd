"""A release can be read by its own schema: out and in again, every code is the same."""

import datetime as dt
import os

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

import read_back
from checks.doors.foreign_here import foreign_here
from pegsynth.codec.codec import Decoder, encode
from pegsynth.evaluation.evaluate import measured_codebook
from pegsynth.schema import Schema
from pegsynth.spark import arrow_batches
from pegsynth.tables.caller_frames import to_kind
from pegsynth.tables.database import DatabaseTable, DatabaseTarget
from pegsynth.tables.table_input import TableInFile, opened
from pegsynth.tables.table_output import write_table

EXAMPLES = 1_000 if os.environ.get("PEGSYNTH_LONG") else 40
FILES = ("csv", "csv.gz", "tsv", "parquet", "arrow", "sav", "zsav", "dta", "xlsx")
usual = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("extension", FILES)
def test_files(tmp_path, extension):
    dialects = read_back.PLAIN if extension == "xlsx" else read_back.DIALECTS

    @usual
    @given(read_back.cases(dialects=dialects))
    def trip(case):
        read_back.check(case, read_back.written(tmp_path / f"t.{extension}", case))

    with foreign_here():
        trip()


@usual
@given(case=read_back.cases(dialects=read_back.PLAIN))
def test_sqlite(tmp_path, case):
    file = tmp_path / "t.db"
    file.unlink(missing_ok=True)
    file.touch()
    read_back.written(DatabaseTarget(f"sqlite:///{file}", "t"), case)
    read_back.check(case, DatabaseTable(f"sqlite:///{file}", table="t"))


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
def test_frames(kind):
    @usual
    @given(read_back.cases())
    def trip(case):
        read_back.check(case, to_kind(case.frame, kind))

    trip()


@usual
@given(case=read_back.cases())
def test_duckdb(tmp_path, case):
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "t.duckdb"
    file.unlink(missing_ok=True)
    with duckdb.connect() as connection:
        read_back.check(case, connection.from_arrow(case.frame.to_arrow()))
    with duckdb.connect(str(file)) as connection:
        connection.from_arrow(case.frame.to_arrow()).create("t")
    with foreign_here():
        read_back.check(case, TableInFile(str(file), "t"))


@usual
@given(case=read_back.cases())
def test_batches_of_spark(case):
    """What workers hand to Spark, and what they get of it."""
    batches = arrow_batches.spark_batches(case.frame)
    names = case.frame.columns
    read_back.check(case, pl.concat(arrow_batches.values(batch, names) for batch in batches))


# From the original over a draft to the release

ORIGINAL = pl.DataFrame(
    {
        "sex": [1.0, 2.0, None, 2.0] * 15,
        "region": [3.0, 1.0, 2.0] * 20,
        "ward": ["01", "02", "10"] * 20,
        "age": [20, 45, 70, 45, 33] * 12,
        "dose": [0.5, 1.25, 7.75, 2.0] * 15,
        "day": pl.Series([dt.date(2001, 2, 3), dt.date(2010, 5, 6)] * 30),
        "moment": pl.Series([dt.datetime(2001, 2, 3, 4, 5), dt.datetime(2010, 5, 6, 7)] * 30),
        "flag": [True, False, True, True] * 15,
    }
)


def statistics_file(path, frame):
    """A file as other programs write it, without any of our codebooks."""
    import pyreadstat

    names = {".sav": "write_sav", ".dta": "write_dta", ".xpt": "write_xport"}
    labels = {"variable_value_labels": {"sex": {1: "male", 2: "female"}}}
    getattr(pyreadstat, names[path.suffix])(
        frame.with_columns(pl.col("flag").cast(pl.Int8)), str(path),
        **({} if path.suffix == ".xpt" else labels),
    )  # fmt: skip
    return str(path)


def duckdb_file(path, frame):
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.from_arrow(frame.to_arrow()).create("t")
    return str(path)


def ours(path, frame):
    write_table(path, frame)
    return str(path)


READERS = {
    **dict.fromkeys(["csv", "parquet", "arrow", "xlsx"], ours),
    **dict.fromkeys(["sav", "dta", "xpt"], statistics_file),
    "duckdb": duckdb_file,
    "pandas": lambda path, frame: to_kind(frame, "pandas"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_draft_reads_what_is_written_by_it(tmp_path, reader):
    with foreign_here():
        source = READERS[reader](tmp_path / f"original.{reader}", ORIGINAL)
        schema = measured_codebook(source, Schema.draft(source))
        with opened(source, dialect=schema.dialect) as table:
            types, columns = table.dtypes, table.columns
        codes = encode(source, schema)
        decoder = Decoder(schema, columns=columns, dtypes=types)
        words = np.random.default_rng(1).integers(
            0, 1 << 64, decoder.words_needed(len(codes)), dtype=np.uint64
        )
        frame = decoder.decode(codes, words)
        # What is written has the type that the original declares.
        assert {name: frame.schema[name] for name in types} == dict(types)
        case = read_back.Case(schema, codes, codes, frame)
        for extension in FILES:
            read_back.check(case, read_back.written(tmp_path / f"release.{extension}", case))
        # Text files hold the categories as the schema spells them.
        listed = [each for each in schema.features if not each.binned]
        texts = pl.read_csv(tmp_path / "release.csv", infer_schema=False)
        for feature in listed:
            assert set(texts[feature.name].drop_nulls()) <= set(feature.categories)
        assert {"sex", "region", "ward"} <= {each.name for each in listed}
        assert schema["sex"].categories == ("1", "2")
