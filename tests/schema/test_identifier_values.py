"""What a schema says of an identifier or of the unit column reaches no output."""

from __future__ import annotations

import pickle
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from command import done, review
from pegsynth.codec.codec import encode
from pegsynth.schema import Feature, Schema, feature_checks
from pegsynth.schema.toml import dumps, loads

MARKS = (b"LEAK", b"765433")
ROWS = 120
TOTAL = ("--epsilon", 1, "--delta", 1e-6)
PER_ROW = ("--epsilon-per-row", 1)
PUBLISHED_SCHEMAS = {
    "counts.pegs",
    "once.pegs",
    "csv/public/schema.toml",
    "parquet/public/schema.toml",
}
BOOK = """
reviewed = true
{table}
[[features]]
name = "individual"
label = "LEAK in a label"
kind = "ordinal"
role = "identifier"
dtype = "LEAK type"
categories = [{ids}]
missing = ["LEAK missing"]
not_applicable = ["LEAK not applicable"]
unknown = "category"
heads = ["LEAK head"]
parent = "LEAK parent"
shares = [765433.5]
l = 765433
drafted_from_data = true

[[features]]
name = "account"
kind = "numeric"
role = "identifier"
edges = [1, 765433]

[[features]]
name = "person"
role = "{role}"
label = "LEAK of a unit"
categories = [{ids}]
missing = ["LEAK missing"]

[[features]]
name = "sex"
categories = ["f", "m"]

[[features]]
name = "age"
kind = "numeric"
dtype = "int64"
edges = [0, 20, 40, 60, 80, 100]
"""
UNITS = '[table]\nunit = "person"\nrows_per_unit = 2\n'


def book(*, unit=False):
    """Return the text of a schema; the person is the unit, or an identifier."""
    ids = ", ".join(f'"LEAK-{i}"' for i in range(ROWS))
    role = "quasi-identifier" if unit else "identifier"
    return BOOK.format(ids=ids, table=UNITS if unit else "", role=role)


def write_inputs(folder: Path, *, unit=False) -> tuple[Path, Path]:
    numbers = np.random.default_rng(5)
    lines = [
        f"LEAK-{i},{765433 if i else 1},LEAK-{i // 2},{'fm'[numbers.integers(2)]},"
        f"{numbers.integers(100)}"
        for i in range(ROWS)
    ]
    data, schema = folder / "LK.csv", folder / "LK.toml"
    data.write_text("\n".join(["individual,account,person,sex,age", *lines, ""]))
    schema.write_text(book(unit=unit))
    return data, schema


def contents(path: Path) -> bytes:
    """Return a file's bytes and, of a Parquet or model file, metadata and cells in the clear."""
    raw = path.read_bytes()
    if not raw.startswith(b"PAR1"):
        return raw
    file = pq.ParquetFile(path)
    groups = [str(file.metadata.row_group(i).to_dict()) for i in range(file.num_row_groups)]
    cells = [
        cell if isinstance(cell, bytes) else str(cell).encode()
        for column in file.read().columns
        for cell in column.to_pylist()
    ]
    parts = (raw, str(file.metadata.metadata).encode(), "".join(groups).encode(), *cells)
    return b"\n".join(parts)


def run_all(folder: Path, *commands) -> dict[str, bytes]:
    """Return what commands wrote into a folder, by file, and what they said."""
    before = set(folder.rglob("*"))
    outcomes = [done(*command) for command in commands]
    found = {
        str(path.relative_to(folder)): contents(path)
        for path in set(folder.rglob("*")) - before
        if path.is_file()
    }
    said = "".join(outcome.out + outcome.err for outcome in outcomes)
    return found | {"said": said.encode()}


def leaks(found: dict[str, bytes]) -> set[str]:
    return {name for name, text in found.items() if any(mark in text for mark in MARKS)}


def publish(folder: Path, *, unit: bool) -> dict[str, bytes]:
    """Make everything that may leave, from a schema that says much of identifiers."""
    data, schema = write_inputs(folder, unit=unit)
    about = (data, "--schema", schema)
    release = ("release", *about, "--rows", 20, *PER_ROW, "--public-only")
    fit, sample = ("fit", *about, "--method"), "sample"
    counts, once = folder / "counts.pegs", folder / "once.pegs"
    return run_all(
        folder,
        (*release, "-o", folder / "csv"),
        (*release, "--format", "parquet", "--datasets", 2, "-o", folder / "parquet"),
        ("synthesize", *about, "--rows", 20, *PER_ROW, "-o", folder / "rows.parquet"),
        (*fit, "pegs", "-o", counts),
        (sample, counts, "--rows", 5, *PER_ROW, "-o", folder / "drawn.csv"),
        (*fit, "pegs-once", *TOTAL, "-o", once),
        (sample, once, "--rows", 5, "-o", folder / "free.parquet"),
        *(("inspect", each) for each in (counts, once, schema, folder / "csv/public/privacy.json")),
        ("plan", "--schema", schema, "--rows-in", ROWS, "--rows", 5, *TOTAL),
    )


@pytest.mark.parametrize("unit", [False, True], ids=["identifier", "unit"])
def test_nothing_said_of_an_identifier_or_unit_reaches_an_output(tmp_path, unit):
    found = publish(tmp_path, unit=unit)
    assert b"SHAREABLE" in found["once.pegs"]
    assert PUBLISHED_SCHEMAS | {"drawn.csv.privacy.json", "rows.parquet"} <= found.keys()
    assert leaks(found) == set()


@pytest.mark.parametrize("unit", [False, True], ids=["identifier", "unit"])
def test_a_feature_that_forgets_nothing_is_caught(tmp_path, monkeypatch, unit):
    kept = frozenset(each.name for each in fields(Feature))
    monkeypatch.setattr(feature_checks, "_KEPT", kept)
    assert leaks(publish(tmp_path, unit=unit)) == PUBLISHED_SCHEMAS


@pytest.mark.slow
def test_nothing_said_of_an_identifier_reaches_reports(tmp_path):
    data, schema = write_inputs(tmp_path)
    about = ("--schema", schema)
    compared = ("--report", tmp_path / "report.html", "--json", tmp_path / "metrics.json")
    table = tmp_path / "release" / "public" / "synthetic-1.csv"
    found = run_all(
        tmp_path,
        ("release", data, *about, "--rows", 20, *PER_ROW, "-o", tmp_path / "release"),
        ("evaluate", data, table, *about, *compared),
    )
    assert {"release/internal/report.html", "metrics.json", "report.html"} <= found.keys()
    assert leaks(found) == set()


def test_a_written_schema_shows_name_and_role_of_identifiers():
    for unit in (False, True):
        schema = loads(book(unit=unit))
        text = dumps(schema)
        for name in ("individual", "account", "person"):
            assert f'[[features]]\nname = "{name}"\nrole = "identifier"\n\n' in text
        assert loads(text) == schema
        assert pickle.loads(pickle.dumps(schema)) == schema
        assert leaks({"pickle": pickle.dumps(schema)}) == set()


def test_a_model_is_the_same_whatever_is_said_of_identifiers(tmp_path):
    data, schema = write_inputs(tmp_path)
    plain = tmp_path / "plain.toml"
    Schema.load(schema).save(plain)
    for book_file, model in ((schema, "a.pegs"), (plain, "b.pegs")):
        seeded = ("--method", "pegs-once", *TOTAL, "--seed", 3)
        done("fit", data, "--schema", book_file, *seeded, "-o", tmp_path / model)
    assert (tmp_path / "a.pegs").read_bytes() == (tmp_path / "b.pegs").read_bytes()


def test_bins_of_identifiers_are_not_even_made():
    bins = "bins = { lowest = 0, highest = 1, count = 100000 }"
    many = "".join(
        f'[[features]]\nname = "{i}"\nkind = "numeric"\nrole = "identifier"\n{bins}\n'
        for i in range(50)
    )
    schema = loads(f'{many}[[features]]\nname = "x"\ncategories = ["a"]')
    assert schema.names == ("x",)


def test_drafting_names_the_columns_that_it_drops(tmp_path):
    lines = [",".join([f"{'xy'[i % 2]}", *(f"LEAK-{i}-{j}" for j in range(12))]) for i in range(40)]
    header = ",".join(["kept", *(f"id {j}" for j in range(12))])
    (tmp_path / "wide.csv").write_text("\n".join([header, *lines, ""]))
    said = done("schema", tmp_path / "wide.csv", "-o", tmp_path / "draft.toml").err
    names = ", ".join(f"'id {j}'" for j in range(10))
    assert "1 features drafted; a value that fewer than 10 rows have is not listed. " in said
    assert f"not listed. Dropped as identifiers: {names} and 2 more. The" in said
    assert "LEAK" not in said + (tmp_path / "draft.toml").read_text()
    pl.DataFrame({"kept": ["x", "y"]}).write_csv(tmp_path / "none.csv")
    assert "Dropped" not in done("schema", tmp_path / "none.csv", "-o", tmp_path / "d.toml").err


def test_integers_with_gaps_as_pandas_writes_them_come_back_as_whole_numbers(tmp_path):
    words = np.random.default_rng(6)
    frame = pd.DataFrame({"mass": words.integers(180, 274, 300), "sex": words.integers(0, 2, 300)})
    frame.astype(float).mask(words.random((300, 2)) < 0.1).to_csv(tmp_path / "t.csv", index=False)
    assert "181.0" in (tmp_path / "t.csv").read_text()
    listed = ("--binning", "equal-width", "-o", tmp_path / "draft.toml")
    done("schema", tmp_path / "t.csv", *listed)
    schema = review(tmp_path / "draft.toml")
    mass, sex = Schema.load(schema).features
    assert (mass.kind, mass.dtype, sex.categories, sex.dtype) == (
        "numeric",
        "int64",
        ("0", "1"),
        "int64",
    )
    for output in ("out.csv", "out.parquet"):
        rows = ("--rows", 200, *PER_ROW, "-o", tmp_path / output)
        done("synthesize", tmp_path / "t.csv", "--schema", schema, *rows)
        codes = encode(tmp_path / output, Schema.load(schema))
        assert codes.shape == (200, 2)
    drawn = pl.read_parquet(tmp_path / "out.parquet")
    assert drawn.dtypes == [pl.Int64, pl.Int64]
    assert drawn["mass"].null_count() > 0
    assert drawn["mass"].drop_nulls().is_between(180, 275).all()
