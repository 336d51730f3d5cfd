"""Values at the ends of their types are read row by row, and none of them fails (R12, R30)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pegsynth.codec.codec import Encoder
from pegsynth.codec.number_grid import grid_schema
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dtypes import unit_text

LEAST, MOST = -(1 << 63), (1 << 63) - 1
FLOATS = [0.0, 2.5, 1e19, 1.7976931348623157e308, -1.7976931348623157e308, 5e-324, np.inf, -np.inf]
NUMBERS = [
    pl.Series([*FLOATS, np.nan, None], dtype=pl.Float64),
    pl.Series([3.4e38, -3.4e38, np.inf, 1e-45, None], dtype=pl.Float32),
    pl.Series([LEAST, MOST, 0, 5, None], dtype=pl.Int64),
    pl.Series([0, 5, 1 << 63, (1 << 64) - 1, None], dtype=pl.UInt64),
    pl.Series(["5", f"-{'9' * 34}.99", None]).cast(pl.Decimal(38, 2)),
    pl.Series(["5", "inf", "-inf", "nan", "1e400", "-1e400", "9" * 400, "1e-400", ""]),
]
MOMENTS = [LEAST, LEAST + 1, MOST, 0, 10**15, None]
DATES = [
    pl.Series([-(1 << 31), (1 << 31) - 1, 95_026_237, 0, None], dtype=pl.Int32).cast(pl.Date),
    *(pl.Series(MOMENTS).cast(pl.Datetime(unit)) for unit in ("ms", "us", "ns")),
    *(pl.Series(MOMENTS).cast(pl.Datetime(unit, "Asia/Tokyo")) for unit in ("ms", "us", "ns")),
    pl.Series(["0001-01-01", "9999-12-31T23:59:59+23:59", "10000-01-01", "0000-01-01", ""]),
]
LENGTHS = [
    *(pl.Series(MOMENTS).cast(pl.Duration(unit)) for unit in ("ms", "us", "ns")),
    pl.Series(["P999999999D", "-P999999999DT999999999H999999999M999999999999S", "PT0S", ""]),
]
DATED = {"edges": "year", "lowest": "2000-01-01", "highest": "2008-12-31"}
FEATURES = {
    "number": {"kind": "numeric", "edges": (0.0, 10.0, 20.0)},
    "whole number": {"kind": "numeric", "edges": (0.0, 10.0, 20.0), "dtype": "int64"},
    "measured": {"kind": "numeric", "edges": "private"},
    "measured whole number": {"kind": "numeric", "edges": "private", "dtype": "int64"},
    "decimals": {"kind": "numeric", "edges": "private", "decimals": 2},
    "date": DATED | {"kind": "date"},
    "moment": DATED | {"kind": "datetime"},
    "measured date": DATED | {"kind": "date", "edges": "private"},
    "length": {"kind": "duration", "edges": (0, 10, 20)},
    "category": {"categories": ("5", "0001-01-01")},
}
COLUMNS = {
    **dict.fromkeys(("date", "moment", "measured date"), DATES),
    "length": LENGTHS,
    "category": [*NUMBERS, *DATES, *LENGTHS],
}


def codes_of(values, schema):
    frame = values.alias("x").to_frame()
    return Encoder(schema, source="x", columns=["x"]).encode(frame)[:, 0]


@pytest.mark.parametrize("name", FEATURES)
def test_every_value_has_the_code_that_it_has_alone(name):
    feature = Feature("x", missing=("",), unknown="category", **FEATURES[name])
    schema = Schema((feature,))
    if feature.private_edges:
        schema = grid_schema(schema)
    for values in COLUMNS.get(name, NUMBERS):
        with np.errstate(all="raise", under="ignore"):
            together = codes_of(values, schema)
            alone = [codes_of(values[i : i + 1], schema)[0] for i in range(len(values))]
        assert together.tolist() == alone


@pytest.mark.parametrize("values", [*DATES, *LENGTHS], ids=lambda each: str(each.dtype))
def test_different_moments_name_different_units(values):
    names = unit_text(values)
    assert names.n_unique() == values.n_unique()
    assert names.is_null().equals(values.is_null())
