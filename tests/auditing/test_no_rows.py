"""A table without rows is a table: that there is one row, or none, decides nothing (R30)."""

from dataclasses import replace
from itertools import islice

import polars as pl
import pytest

import pegsynth
from checks.doors.comparing import read_through
from checks.doors.readers import DOORS
from checks.doors.tables import pairs
from command import done, pegs
from contract import ENTRIES, contract_schema, contract_table, made
from pegsynth.datasets import households, households_schema
from pegsynth.errors import DataError
from pegsynth.methods import get
from pegsynth.privacy import Ledger
from pegsynth.schema import Feature, Schema
from pegsynth.schema.panel import Panel
from pegsynth.schema.toml import dumps
from pegsynth.storage.book.book_file import create_book, read_book
from pegsynth.storage.book.book_policy import BookPolicy
from pegsynth.tables.table_input import open_table

TABLE = contract_table()
NO_HEADER = {"CSV folder", "CSV partitions", "Parquet folder", "Parquet partitions"}
NO_HEADER |= {"chunks", "chunks, pandas objects", "PyArrow dataset"}
"""Here no rows are no file, or no chunk, and nothing says what the columns are."""


@pytest.mark.parametrize(
    "door", [d for d in DOORS if d.name not in NO_HEADER], ids=lambda d: d.name
)
def test_no_rows_have_the_types_of_one_row(door, tmp_path):
    if door.needs:
        pytest.importorskip(door.needs)
    for number, pair in enumerate(islice(pairs(door.holding, f"no rows, {door.name}"), 2)):
        found = []
        for rows in ([], [pair.extra]):
            place = tmp_path / f"{number}-{len(rows)}"
            place.mkdir()
            found.append(read_through(door, pair, rows, place))
        none, one = found
        assert none.refused == ""
        assert none.codes == {}
        if not one.refused:
            assert none.types == one.types


PROVEN = [entry for entry in ENTRIES if get(entry.method).has_proof]


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("entry", PROVEN, ids=str)
def test_every_method_with_a_guarantee_takes_no_rows(entry, unit):
    # With rules, noisy counts of so few rows may leave no row to start from, of either table.
    schema = contract_schema(rules=())
    found = []
    for rows in (0, 1):
        data = TABLE.head(rows)
        if unit:
            schema = replace(schema, unit="who", rows_per_unit=2)
            data = data.with_columns(who=pl.lit("somebody"))
        found.append(made(entry, data, schema, seed=None, rows=30))
    none, one = found
    assert none.frames[0].schema == one.frames[0].schema
    assert none.frames[0].height == one.frames[0].height == 30
    if entry.method != "pegs-once":
        assert none.ledger == one.ledger
    assert none.ledger.guarantee == one.ledger.guarantee


@pytest.mark.parametrize("method", ["pegs-once", "pegs", "pmi"])
def test_a_codec_is_measured_of_no_rows(method):
    schema = Schema(
        (
            Feature("v", kind="numeric", private_edges=True, lowest=0.0, highest=100.0),
            Feature("t", private_categories=True),
            Feature("c", categories=("a", "b")),
        ),
        reviewed=True,
    )
    data = pl.DataFrame({"v": [1.0], "t": ["x"], "c": ["a"]})
    told = {"method": method, "rows": 20, "epsilon": 1.0, "delta": 1e-6}
    none, one = (pegsynth.synthesize(data.head(n), schema, **told) for n in (0, 1))
    assert none.ledger.guarantee == one.ledger.guarantee


@pytest.mark.parametrize(
    ("method", "transitions"), [("marginal", "folded"), ("pegs-once", "pooled")]
)
def test_a_panel_may_have_no_rows(method, transitions):
    panel = Panel("person", "when", 3, (), transitions=transitions)
    columns = (
        Feature("person", role="identifier"),
        Feature("when", "ordinal", categories=("1", "2", "3"), dtype="int64"),
        Feature("state", categories=("a", "b")),
    )
    schema = Schema(columns, panel=panel, reviewed=True)
    data = pl.DataFrame({"person": ["p"], "when": [1], "state": ["a"]})
    told = {"method": method, "rows": 20, "epsilon": 1.0}
    for table in (data.clear(), data):
        assert pegsynth.synthesize(table, schema, **told).ledger.epsilon <= 1.0


def childless():
    schema = households_schema()
    return replace(schema, panel=replace(schema.panel, least=0))


def test_two_tables_may_have_no_member_and_no_household(tmp_path):
    """With `least = 0` one household more, without anybody, is a neighbour."""
    units, members = households(150, seed=1)
    childless().save(tmp_path / "schema.toml")
    lived_in = members.filter(pl.col("household") == members["household"][0])
    tables = {
        "nobody": (units, members.clear()),
        "one household": (units, lived_in),
        "nothing": (units.clear(), members.clear()),
    }
    for name, pair in tables.items():
        files = [tmp_path / f"{name}-{place}.csv" for place in (1, 2)]
        for frame, file in zip(pair, files, strict=True):
            frame.write_csv(file)
        # Noise alone may leave no row that obeys the rules of a pair: this seed leaves some.
        told = ("--schema", tmp_path / "schema.toml", "--epsilon", 8, "--delta", 1e-9, "--seed", 1)
        done("release", *files, *told, "--rows", 60, "-o", tmp_path / name)
        assert (tmp_path / name / "internal" / "report.html").is_file()


@pytest.mark.parametrize("flags", [(), ("--quality", 0.1), ("--public-only",)])
def test_a_release_ends_alike_with_no_row_and_with_one(tmp_path, flags):
    contract_schema(rules=()).save(tmp_path / "schema.toml")
    seen = []
    for rows in (0, 1):
        place = tmp_path / str(rows)
        place.mkdir()
        TABLE.head(rows).write_csv(place / "data.csv")
        told = ("--schema", tmp_path / "schema.toml", "--method", "pegs-once", "--epsilon", 1)
        outcome = pegs(
            "release", place / "data.csv", *told, "--rows", 30, "-o", place / "r", *flags
        )
        names = sorted(str(path.relative_to(place)) for path in (place / "r").rglob("*"))
        seen.append((outcome.code, names))
    assert seen[0] == seen[1]
    assert seen[0][0] == 0


@pytest.mark.parametrize(
    ("formula", "family"),
    [
        ("n ~ a * s", "gaussian"),
        ("n ~ a:s + a + s", "gaussian"),
        ("n ~ log(s) + I(s^2)", "gaussian"),
        ("d ~ a * n", "binomial"),
        ("b ~ a + s", "multinomial"),
    ],
)
def test_declared_analyses_of_no_rows_are_measured(tmp_path, formula, family):
    """Nor does a file without rows in a folder end the run."""
    declared = f'[[analyses]]\nformula = "{formula}"\nfamily = "{family}"\n'
    (tmp_path / "schema.toml").write_text(f"{dumps(contract_schema(rules=()))}\n{declared}")
    told = ("--schema", tmp_path / "schema.toml", "--epsilon", 8, "--delta", 1e-6, "--rows", 30)
    for name, sizes in {"none": (0,), "some": (0, 40, 0)}.items():
        folder = tmp_path / name
        folder.mkdir()
        for number, rows in enumerate(sizes):
            TABLE.head(rows).write_parquet(folder / f"{number}.parquet")
        done("release", folder, *told, "--method", "pegs-once", "-o", tmp_path / f"{name}-out")


def test_a_question_about_no_rows_is_answered(tmp_path):
    schema = contract_schema(rules=())
    release = pegsynth.Release([TABLE], Ledger(), schema)
    book = tmp_path / "b.book"
    create_book(book, BookPolicy(epsilon=1.0))
    for rows in (0, 1):
        found = pegsynth.verify(TABLE.head(rows), release, "n ~ s", epsilon=0.5, book=book)
        assert [each.parts for each in found.terms] == [10]
    assert [entry.state for entry in read_book(book).entries] == ["settled"] * 2


def test_what_nobody_is_promised_still_needs_rows(tmp_path):
    TABLE.clear().write_csv(tmp_path / "bare.csv")
    for source in (TABLE.clear(), tmp_path / "bare.csv"):
        with pytest.raises(DataError, match="has no rows"):
            open_table(source)
        with pytest.raises(DataError, match="has no rows"):
            Schema.draft(source)
        with pytest.raises(DataError, match="has no rows"):
            pegsynth.evaluate(source, [TABLE], contract_schema())
    for method in ("cart", "bootstrap"):
        with pytest.raises(DataError, match="the table has no rows"):
            pegsynth.synthesize(TABLE.clear(), contract_schema(), method=method, rows=5)
