"""Extreme times fold by unit: nobody's values change, or break, another's row (R24, R30)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command import pegs
from pegsynth.codec.codec import Encoder
from pegsynth.codec.folding import folded_reader
from pegsynth.codec.number_grid import grid_schema
from pegsynth.schema import Feature, Schema
from pegsynth.schema.panel import Panel
from pegsynth.schema.toml import dumps
from pegsynth.schema.wide_schema import wide_schema
from pegsynth.tables.table_input import TablePair, open_table

LEAST, MOST = -(1 << 63), (1 << 63) - 1
NUMBERS = (0, 5, 7, LEAST, LEAST + 1, MOST, 1 << 53, (1 << 53) + 1, None)
FLOATS = (
    *(0.0, 2.5, 1e19, -1e19, 1.7976931348623157e308, -1.7976931348623157e308, 5e-324),
    *(np.inf, -np.inf, np.nan, None),
)
TEXTS = ("5", " 7 ", "1e19", "-9223372036854775808", "inf", "-inf", "nan", "1e400", "9" * 400, "")
MOMENTS = (LEAST, LEAST + 1, MOST, 0, 10**15, None)
DAYS = (-(1 << 31), (1 << 31) - 1, 0, 18_000, 2_932_897, -719_163, None)
DATED = ("0001-01-01", "9999-12-31", "2004-02-29", "0000-01-01", "10000-01-01", "2005-06-07", "")
NUMBER = {"kind": "numeric", "edges": (0.0, 10.0, 20.0)}
DATE = {"edges": "year", "lowest": "2000-01-01", "highest": "2008-12-31"}
CASES = {
    "int64": (NUMBER | {"dtype": "int64"}, pl.Int64(), NUMBERS),
    "uint64": (NUMBER | {"dtype": "uint64"}, pl.UInt64(), (0, 5, 1 << 63, (1 << 64) - 1, None)),
    "double": (NUMBER, pl.Float64(), FLOATS),
    "whole doubles": (NUMBER | {"dtype": "int64"}, pl.Float64(), FLOATS),
    "text": (NUMBER | {"dtype": "int64"}, pl.String(), TEXTS),
    "dates": (DATE | {"kind": "date"}, pl.Date(), DAYS),
    "dates as text": (DATE | {"kind": "date"}, pl.String(), DATED),
    "moments": (DATE | {"kind": "datetime"}, pl.Datetime("ms"), MOMENTS),
    "days of moments": (DATE | {"kind": "date"}, pl.Datetime("us"), MOMENTS),
    "moments of a zone": (
        *(DATE | {"kind": "datetime"}, pl.Datetime("us", "Europe/Berlin")),
        (LEAST, MOST, 0, None),
    ),
}


def book(said, *, two=False, private=False, least=0):
    if private:
        near = {} if said["kind"] == "numeric" else {"lowest": "2004-01-01"}
        said = {**said, **near, "edges": "private"}
    time = Feature("t", missing=("",), unknown="category", **said)
    tables = {"tables": ("units", "rows"), "least": least} if two else {}
    panel = Panel("u", "t", 3, ("sex",), **tables)
    sex = Feature("sex", categories=("f", "m"))
    return Schema((Feature("u", role="identifier"), sex, time), panel=panel, reviewed=True)


def table(lines, dtype):
    numbers = pl.Series("t", [value for _, value in lines], strict=False)
    typed = numbers.cast(pl.Int32) if dtype == pl.Date else numbers
    return pl.DataFrame(
        {
            "u": pl.Series([unit for unit, _ in lines], dtype=pl.String),
            "sex": ["f"] * len(lines),
            "t": typed.cast(dtype),
        }
    )


def folded(frame, schema):
    """Return wide rows and their codes under public edges, or on the grid of private ones."""
    pair = frame
    if schema.panel.tables is not None:
        pair = TablePair(frame.select("u", "sex").unique(maintain_order=True), frame.drop("sex"))
    wide = pl.concat(list(folded_reader(open_table(pair), schema).batches()))
    codebook = wide_schema(schema)
    if schema["t"].private_edges:
        codebook = grid_schema(codebook)
    columns = wide.columns
    encoder = Encoder(codebook, source="wide", columns=columns, need_unit=False)
    return wide, encoder.encode(wide)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("two", [False, True], ids=["one table", "two tables"])
@settings(max_examples=10)
@given(data=st.data())
def test_folding_together_is_folding_each_unit_alone(case, two, data):
    said, dtype, values = CASES[case]
    units = st.sampled_from(("a", "b", "c"))
    lines = data.draw(st.lists(st.tuples(units, st.sampled_from(values)), min_size=1, max_size=9))
    frame = table(lines, dtype)
    for private in (False, True):
        schema = book(said, two=two, private=private)
        with np.errstate(all="raise", under="ignore"):
            wide, codes = folded(frame, schema)
            alone = [folded(each, schema) for each in frame.sort("u").partition_by("u")]
        assert wide.equals(pl.concat([each for each, _ in alone]))
        assert np.array_equal(codes, np.concatenate([each for _, each in alone]))


@pytest.mark.parametrize(
    ("value", "two"), [(str(LEAST), False), ("inf", False), ("1e19", True), ("nan", True)]
)
def test_nobody_makes_another_persons_panel_fail(tmp_path, value, two):
    schema = tmp_path / "schema.toml"
    schema.write_text(dumps(book(CASES["int64"][0], two=two, least=1)))
    outcomes = []
    for who in ("a", "b", "ab"):
        times = {"a": value, "b": "5"}
        lines = [f"{each},f,{times[each]}" for each in who]
        units = [f"{each},f" for each in who]
        rows = [f"{each},{times[each]}" for each in who]
        tables = {"one": ["u,sex,t", *lines]}
        if two:
            tables = {"units": ["u,sex", *units], "rows": ["u,t", *rows]}
        paths = []
        for name, texts in tables.items():
            paths.append(tmp_path / f"{who}-{name}.csv")
            paths[-1].write_text("\n".join(texts) + "\n")
        told = ("--method", "pegs-once", "--epsilon", 0.1, "--delta", 1e-9, "--rows", 5)
        folder = tmp_path / f"out-{who}"
        outcomes.append(pegs("release", *paths, "--schema", schema, *told, "-o", folder))
    assert [outcome.code for outcome in outcomes] == [0, 0, 0]
    assert len({outcome.err.replace("out-ab", "out-a") for outcome in outcomes[::2]}) == 1


def test_differences_of_extreme_times_fall_into_the_last_bin():
    schema = book(CASES["int64"][0])
    wide, codes = folded(table([("a", LEAST), ("a", 5), ("a", MOST)], pl.Int64()), schema)
    later = [wide_schema(schema).index(name) for name in ("t_2", "t_3")]
    last = wide_schema(schema)["t_2"].bin_count - 1
    assert codes[0, later].tolist() == [last, last]
    assert wide["t_2"].to_list() == ["9223372036854775808"]
