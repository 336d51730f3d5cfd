"""The public grid: it covers every number, nests, and is a function of the schema (R21)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.codec.codec import encode
from pegsynth.codec.encoding import ColumnEncoder
from pegsynth.codec.measured_rows import GridCounter, count_grid
from pegsynth.codec.number_grid import LEVELS, grid_feature, grid_of, grid_schema
from pegsynth.errors import ParameterError
from pegsynth.schema import Feature, Schema

WHOLE = Feature("x", kind="numeric", edges="private", dtype="int64")
REAL = Feature("x", kind="numeric", edges="private", dtype="double")
CENTS = Feature("x", kind="numeric", edges="private", dtype="double", decimals=2)
FEATURES = [
    WHOLE,
    REAL,
    CENTS,
    Feature("x", kind="numeric", edges="private", dtype="uint8"),
    Feature("x", kind="numeric", edges="private", dtype="int64", lowest=0, highest=120),
    Feature("x", kind="numeric", edges="private", lowest=-1.5, highest=2.5),
    Feature("x", kind="numeric", edges=(0.0, 0.3, 7.7), inside="measured"),
]


@lru_cache
def encoder(feature):
    return ColumnEncoder(grid_feature(feature))


def cell_of(feature, value):
    return int(encoder(feature).encode(pl.Series([value], dtype=pl.Float64))[0])


@pytest.mark.parametrize("feature", FEATURES, ids=range(len(FEATURES)))
def test_levels_nest_and_cover(feature):
    grid = grid_of(feature)
    assert (np.diff(grid.edges) > 0).all()
    for level in range(LEVELS):
        starts = grid.starts[level]
        assert starts[0] == 0
        assert (np.diff(starts) > 0).all()
        if level:
            assert set(grid.starts[level - 1]) <= set(starts)
            parents = grid.parents(level)
            assert (np.diff(parents) >= 0).all()
            assert parents[-1] == grid.nodes(level - 1) - 1
            low, high = grid.bounds(level)
            above, end = grid.bounds(level - 1)
            assert ((above[parents] <= low) & (high <= end[parents])).all()
    assert grid.nodes(LEVELS - 1) == grid.cells


@pytest.mark.parametrize("value", [*range(-127, 128), 1000, -1000, 5000, 25_000, 30_000])
def test_small_and_round_whole_numbers_have_cells_of_their_own(value):
    edges = grid_of(WHOLE).edges
    cell = cell_of(WHOLE, value)
    assert (edges[cell], edges[cell + 1]) == (value, value + 1)


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 0.5, 2.5, 100.0, 1000.0, -25_000.0])
def test_zero_and_round_real_numbers_have_cells_of_their_own(value):
    edges = grid_of(REAL).edges
    cell = cell_of(REAL, value)
    assert edges[cell] == value
    assert edges[cell + 1] == np.nextafter(value, math.inf)


@given(st.integers(-(10**9), 10**9))
def test_decimals_are_counted_in_their_unit(cents):
    edges = grid_of(CENTS).edges
    value = cents / 100
    cell = cell_of(CENTS, value)
    assert edges[cell] <= value < edges[cell + 1]
    assert float(edges[cell]) == round(float(edges[cell]), 2)


@given(st.floats(allow_nan=False))
def test_every_number_has_a_cell(value):
    grid = grid_of(REAL)
    cell = cell_of(REAL, value)
    assert 0 <= cell < grid.cells
    assert grid.edges[cell] <= max(value, grid.edges[0])
    assert min(value, grid.edges[-1]) <= grid.edges[cell + 1]


@given(st.floats(2.0**-20, 2.0**40))
def test_cells_are_narrow(value):
    grid = grid_of(REAL)
    for sign in (1, -1):
        cell = cell_of(REAL, sign * value)
        assert grid.edges[cell + 1] - grid.edges[cell] <= value / 32


def test_the_highest_number_has_a_cell_of_its_own():
    bounded = FEATURES[4]
    assert cell_of(bounded, 120) == cell_of(bounded, 500) == cell_of(bounded, 119) + 1
    assert cell_of(bounded, -3) == cell_of(bounded, 0) == 0


def test_public_edges_are_edges_of_cells():
    assert set(FEATURES[-1].edges) <= set(grid_of(FEATURES[-1]).edges)


def schema_of_two():
    return Schema(
        (
            Feature("id", role="identifier"),
            Feature("sex", categories=("f", "m"), heads=("pay",)),
            Feature("pay", kind="numeric", edges="private", missing=("",), dtype="int64"),
            Feature("age", kind="numeric", edges=(0, 50, 99), inside="measured"),
        )
    )


def test_only_what_is_measured_is_counted():
    grids = grid_schema(schema_of_two())
    assert grids.names == ("pay", "age")
    assert not grids.unsettled
    table = pl.DataFrame(
        {"id": [1, 2, 3], "sex": ["f", "x", "?"], "pay": [7, None, 7], "age": [1.0, 2.0, 49.9]}
    )
    counts = count_grid([encode(table, grids)], grids)
    assert counts["pay"].sum() == counts["age"].sum() == 3
    assert counts["pay"][-1] == 1
    assert counts["pay"].max() == 2


@given(st.lists(st.none() | st.integers(-300, 300), min_size=1, max_size=30), st.integers(1, 29))
def test_counts_add_up_over_batches_and_machines(values, cut):
    bounds = {"lowest": -300, "highest": 300, "dtype": "int64", "missing": ("",)}
    grids = grid_schema(Schema((Feature("x", kind="numeric", edges="private", **bounds),)))
    codes = encode(pl.DataFrame({"x": pl.Series(values, dtype=pl.Int64)}), grids)
    whole, left, right = (GridCounter(grids) for _ in range(3))
    whole.add(codes)
    left.add(codes[:cut])
    right.add(codes[cut:])
    left.absorb(right.arrays())
    assert (whole.counts()["x"] == left.counts()["x"]).all()


def test_batches_of_other_tables_are_refused():
    with pytest.raises(ParameterError, match="columns"):
        GridCounter(grid_schema(schema_of_two())).add(np.zeros((1, 3), dtype=np.uint8))


@pytest.mark.parametrize(("lowest", "highest"), [(44.8, 45.1), (-93.4, -93.1)])
def test_narrow_public_bounds_are_resolved(lowest, highest):
    """Coordinates: without bounds they share a few cells."""
    bounds = {"lowest": lowest, "highest": highest, "decimals": 4}
    grid = grid_of(Feature("x", kind="numeric", edges="private", dtype="double", **bounds))
    assert grid.edges[0] == lowest
    assert grid.edges[-1] >= highest
    assert np.diff(grid.edges).max() <= (highest - lowest) / 30
    wide = grid_of(Feature("x", kind="numeric", edges="private", dtype="double", decimals=4))
    assert ((wide.edges > lowest) & (wide.edges < highest)).sum() < 5
