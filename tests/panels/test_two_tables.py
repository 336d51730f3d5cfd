"""Two tables: a unit with all its rows is one row, and keys agree in what comes out (R24)."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs
from pegsynth.codec.folding import folded_reader
from pegsynth.codec.unfolding import Unfolding
from pegsynth.datasets import households, households_schema
from pegsynth.errors import DataError, ParameterError, SchemaError
from pegsynth.schema import Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.toml import dumps, loads
from pegsynth.schema.wide_schema import long_schema, wide_schema
from pegsynth.tables.table_input import TablePair, open_table

HOUSEHOLDS = 150
ONCE = {"method": "pegs-once", "epsilon": 8.0, "delta": 1e-9, "seed": 3, "progress": False}


@pytest.fixture(scope="module")
def tables():
    return households(HOUSEHOLDS, seed=1)


def childless(schema):
    return replace(schema, panel=replace(schema.panel, least=0))


def wide_of(pair, schema, **told):
    reader = folded_reader(open_table(TablePair(*pair)), schema, **told)
    return pl.concat(list(reader.batches()))


def test_the_codebook_is_read_and_written():
    schema = households_schema()
    for book in (schema, childless(schema), wide_schema(schema), wide_schema(childless(schema))):
        assert loads(dumps(book)) == book
    assert long_schema(wide_schema(childless(schema))) == childless(schema)


@pytest.mark.parametrize("most_cells", [1 << 20, 40])
def test_unfolding_what_was_folded_gives_both_tables_back(tables, most_cells):
    schema = households_schema()
    first, second = tables
    wide = wide_of(tables, schema, most_cells=most_cells)
    assert wide.height == HOUSEHOLDS
    unfolding = Unfolding(wide_schema(schema))
    units, rows = unfolding.units(wide), unfolding.rows(wide)

    def told(units, rows):
        both = rows.join(units, on="household").cast(pl.String)
        groups = both.partition_by("household")
        return sorted(sorted(map(str, group.drop("household").rows())) for group in groups)

    columns = [name for name in second.columns if name != "household"]
    assert told(units, rows.select("household", *columns)) == told(first, second)


def test_who_else_is_there_changes_nothing(tables):
    schema = households_schema()
    wide = wide_of(tables, schema)
    some = [table.filter(pl.col("household") % 3 == 0) for table in tables]
    part = wide_of(some, schema)
    assert set(map(str, part.rows())) <= set(map(str, wide.rows()))


def test_a_household_may_have_nobody_where_the_schema_says_so(tables):
    first, second = tables
    fewer = second.filter(pl.col("household") > 9)
    schema = childless(households_schema())
    wide = wide_of((first, fewer), schema)
    assert (wide["household_rows"] == 0).sum() == 10
    release = pegsynth.synthesize((first, fewer), schema, rows=300, **ONCE)
    units, rows = release.frames[0]
    assert set(rows["household"]) < set(units["household"])
    with pytest.raises(DataError, match="household_rows"):
        pegsynth.synthesize((first, fewer), households_schema(), rows=10, **ONCE)


def test_keys_agree_and_households_are_whole(tables):
    release = pegsynth.synthesize(tables, households_schema(), rows=200, **ONCE)
    units, rows = release.frames[0]
    assert units.schema == tables[0].schema
    assert rows.schema == tables[1].schema
    assert units["household"].to_list() == list(range(1, 201))
    assert set(rows["household"]) == set(units["household"])
    sizes = rows.group_by("household").len()["len"]
    assert sizes.max() <= 8
    order = {text: code for code, text in enumerate(("head", "partner", "child", "other"))}
    relation = rows.with_columns(pl.col("relation").replace_strict(order, return_dtype=pl.Int64))
    assert not relation.select((pl.col("relation").diff() < 0).any().over("household"))[
        "relation"
    ].any()


def test_the_price_is_that_of_one_row(tables):
    told = {key: value for key, value in ONCE.items() if key != "seed"}
    ledger = pegsynth.synthesize(tables, households_schema(), rows=20, **told).ledger
    assert (ledger.guarantee.unit, ledger.guarantee.rows_per_unit) == ("unit", 1)
    assert ledger.guarantee.epsilon == pytest.approx(8.0)


def test_orphans_and_keys_that_stand_twice_are_refused(tables):
    first, second = tables
    schema = households_schema()
    with pytest.raises(DataError, match="names a value that is not in"):
        wide_of((first.filter(pl.col("household") > 0), second), schema)
    with pytest.raises(DataError, match="stands in several rows"):
        wide_of((pl.concat([first, first.head(1)]), second), schema)
    with pytest.raises(DataError, match="describes two tables"):
        folded_reader(open_table(first), schema)


def orphans_given_to_another(pair):
    """A broken twin: members without a household join the first household there is."""
    first, second = pair
    known = first["household"].to_list()
    found = pl.col("household").is_in(known)
    return first, second.with_columns(
        household=pl.when(found).then("household").otherwise(pl.lit(min(known)))
    )


def test_a_twin_that_gives_orphans_to_another_household_is_found(tables):
    """Adding a household then changes the row of another: neighbours are not neighbours."""
    first, second = tables
    schema = households_schema()
    without = first.filter(pl.col("household") != 5)

    def rows(pair):
        return set(map(str, wide_of(pair, schema).rows()))

    both = rows(orphans_given_to_another((without, second))), rows(tables)
    assert len(both[0] - both[1]) > 0
    apart = second.filter(pl.col("household") != 5)
    assert rows((without, apart)) <= rows(tables)


@pytest.mark.parametrize("separator", ["", ";"])
def test_the_command_takes_two_files(tables, tmp_path, separator):
    for name, table in zip(("households", "persons"), tables, strict=True):
        table.write_csv(tmp_path / f"{name}.csv", separator=separator or ",")
    schema = replace(households_schema(), dialect=Dialect(separator=separator))
    schema.save(tmp_path / "schema.toml")
    files = (tmp_path / "households.csv", tmp_path / "persons.csv")
    flags = ("--schema", tmp_path / "schema.toml", "--method", "pegs-once", "--epsilon", 4)
    done("release", *files, *flags, "--delta", 1e-9, "--rows", 60, "-o", tmp_path / "out")
    public = tmp_path / "out" / "public"
    names = sorted(path.name for path in public.glob("*.csv"))
    assert names == ["synthetic-1-households.csv", "synthetic-1-persons.csv"]
    units, rows = pegsynth.Release.load(tmp_path / "out").frames[0]
    assert set(rows["household"]) == set(units["household"])
    assert Schema.load(public / "schema.toml") == schema
    metrics = (tmp_path / "out" / "internal" / "metrics.json").read_text()
    assert "transition_distance" in metrics
    one = pegs("release", files[0], *flags, "--rows", 60, "-o", tmp_path / "other")
    check_refused(one, "describes two tables")


def test_what_two_tables_cannot_do_is_refused(tables):
    with pytest.raises(ParameterError, match="cannot be combined with two tables"):
        pegsynth.synthesize(tables, households_schema(), rows=10, complete=True, **ONCE)
    model = pegsynth.fit(tables, households_schema(), rows=10, **ONCE)
    with pytest.raises(ParameterError, match="two tables are drawn together"):
        model.sample(10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[tables]]\nname = "a"\nkey = "k"\n' * 3, "three levels or more are not known"),
        ('[[tables]]\nname = "a"\nkey = "k"\n', "1 tables are described"),
        (
            '[[tables]]\nname = "a"\nkey = "k"\n[[tables]]\nname = "b"\nkey = "j"\n',
            "another name than that of the first",
        ),
        (
            '[[tables]]\nname = "a"\nkey = "k"\nmost = 3\n[[tables]]\nname = "b"\nkey = "k"\n',
            "most belongs to the other table",
        ),
    ],
)
def test_tables_that_cannot_be_are_refused(text, message):
    with pytest.raises(SchemaError, match=message):
        loads(text + '[[features]]\nname = "x"\ncategories = ["1"]\n')


def test_two_tables_are_judged_as_pairs(tables):
    others = households(HOUSEHOLDS, seed=2)
    found = pegsynth.evaluate(tables, others, households_schema(), progress=False)
    assert 0 < found.summary["transition_distance"] < 0.5
    assert found.summary["rows_per_unit_distance"] < 0.3
    assert found.summary["inconsistent_units"] == 0
