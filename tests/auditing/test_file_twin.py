"""The file twin (R30): neighbours with the same noisy numbers publish the same bytes."""

import os
from importlib.util import find_spec
from itertools import islice

import polars as pl
import pytest

from checks.doors.comparing import Door, temporary_folder
from checks.doors.office import dialect_schema
from checks.doors.tables import UNIT, Holding, pairs
from door_twins import BY_NAME, pair_of, reader_of
from file_twin import everything, unlike
from pegsynth.errors import PegsynthError
from pegsynth.schema import Feature

PAIRS = 15 if os.environ.get("PEGSYNTH_LONG") else 1


def different(door, pair, folder):
    """Return which files of a release and a model differ; one row more changes none."""

    def published(rows):
        kind = "parquet" if pair.style % 2 else "csv"

        def build(folder):
            source = door.build(folder, pair=pair, rows=rows)
            return source() if callable(source) else source

        schema = dialect_schema(pair.schema) if "dialect" in door.name else pair.schema
        return everything(build, schema, folder / "twin", kind)

    return unlike(published(pair.rows), published(pair.with_extra(pair.rows)))


def compared(door, count, *, seed="file twin"):
    """Yield of so many pairs that can be read which files differ."""
    found = 0
    for pair in islice(pairs(door.holding, f"{seed} {door.name}", extras=1), 60 * count):
        with temporary_folder() as folder:
            try:
                files = different(door, pair, folder)
            except PegsynthError:
                continue
        yield pair, files
        found += 1
        if found == count:
            return
    raise AssertionError("too few pairs can be read")


@pytest.mark.parametrize("name", BY_NAME)
def test_same_numbers_give_the_same_files(name):
    door = BY_NAME[name]
    if door.needs and find_spec(door.needs) is None:
        pytest.skip(f"{door.needs} is not installed")
    for pair, files in compared(door, PAIRS):
        assert not files, f"{files} differ\n{pair}"


# Broken twins


def types_twin(folder, pair, rows):
    """A reader whose types follow from the values: whole numbers, as long as all are."""
    frame = pl.DataFrame(rows, schema=dict.fromkeys(pair.held, pl.String), orient="row")
    whole = frame.get_column("a").str.contains("^[0-9]+$").all()
    return reader_of(frame, dtypes={"a": pl.Int64() if whole else pl.Float64()})


def order_twin(folder, pair, rows):
    """A reader that puts the columns in an order that depends on the rows."""
    frame = pl.DataFrame(rows, schema=dict.fromkeys(pair.held, pl.String), orient="row")
    return reader_of(frame.select(frame.columns[:: 1 if len(rows) % 2 else -1]))


@pytest.mark.parametrize("build", [types_twin, order_twin])
def test_the_file_twin_catches_a_reader_that_looks_at_all_rows(build, tmp_path):
    pair = pair_of(
        {"a": "string", UNIT: "string"},
        (Feature("a", "numeric", edges=(0, 10, 20)),),
        [("1", "p"), ("12", "q")],
        ("12.5", "r"),
    )
    door = Door("twin", Holding(("string",)), build)
    found = different(door, pair, tmp_path)
    assert {"model.pegs", "public/synthetic-1.csv"} <= set(found)
