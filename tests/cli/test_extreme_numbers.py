"""Numbers at the ends of their types go through the whole program, and no warning tells of them."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import polars as pl
import pytest

from command import done, pegs_process
from pegsynth.cli import main as command
from pegsynth.schema import Feature, Schema
from pegsynth.schema.toml import dumps

LARGEST = 1.7976931348623157e308
WILD = [LARGEST, -LARGEST, 5e-324, np.inf, -np.inf, 1e300]
WHOLE = [-(1 << 63), (1 << 63) - 1, 0, 1 << 53, -1, 7]
EDGES = {
    "listed": ({"edges": (0.0, 50.0, 100.0)}, {"edges": (0.0, 50.0, 100.0)}),
    "far": ({"edges": (-LARGEST, 0.0, 1e-300, LARGEST)}, {"edges": (-9e18, 0.0, 9e18)}),
    "measured": ({"edges": "private"}, {"edges": "private"}),
    "bounded": (
        {"edges": "private", "lowest": 0, "highest": 99.5},
        {"edges": "private", "lowest": 0, "highest": 120},
    ),
    "far bounds": (
        {"edges": "private", "lowest": -LARGEST, "highest": LARGEST},
        {"edges": "private", "lowest": -9e18, "highest": 9e18},
    ),
}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(2)
    calm = pl.DataFrame({"x": rng.normal(50, 20, 80), "y": rng.integers(0, 100, 80)})
    wild = pl.DataFrame({"x": WILD * 30, "y": WHOLE * 30}, schema={"x": pl.Float64, "y": pl.Int64})
    frame = pl.concat([calm, wild])
    path = tmp_path / "table.parquet"
    frame.with_columns(z=pl.Series(["a", "b"] * (frame.height // 2))).write_parquet(path)
    return path


def book(path, name):
    x, y = EDGES[name]
    columns = (
        Feature("x", kind="numeric", dtype="double", **x),
        Feature("y", kind="numeric", dtype="int64", **y),
        Feature("z", categories=("a", "b"), role="sensitive"),
    )
    file = path.with_name("schema.toml")
    file.write_text(dumps(Schema(columns, reviewed=True)))
    return file


TOLD = (
    "--method",
    "pegs-once",
    "--epsilon",
    5,
    "--delta",
    1e-6,
    "--rows",
    200,
    "--format",
    "parquet",
)


@pytest.mark.parametrize("name", EDGES)
def test_extreme_numbers_make_a_release_with_its_report(table, name):
    folder = table.with_name("out")
    done("release", table, "--schema", book(table, name), *TOLD, "-o", folder)
    frame = pl.read_parquet(folder / "public" / "synthetic-1.parquet")
    assert frame["x"].is_finite().all()
    for feature in Schema.load(folder / "public" / "schema.toml").features[:2]:
        low, high = feature.public_bounds
        assert frame[feature.name].cast(pl.Float64).is_between(low, high).all()


def test_standard_error_is_the_same_with_extreme_numbers_and_without(table):
    calm = table.with_name("calm.parquet")
    pl.read_parquet(table).head(80).write_parquet(calm)
    schema = book(table, "measured")
    said = []
    for path in (table, calm):
        outcome = pegs_process("release", path, "--schema", schema, *TOLD, "-o", f"{path}.out")
        assert outcome.code == 0
        said.append(outcome.err)
    assert said[0] == said[1]
    assert "Warning" not in said[0]


def test_no_warning_of_a_library_is_printed(monkeypatch, capsys):
    def work(*_):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("a value of the data", stacklevel=1)

    monkeypatch.setattr(command, "_work", work)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(sys, "argv", ["pegs"])
    command.main()
    assert capsys.readouterr().err == ""
