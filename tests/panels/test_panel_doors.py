"""Door invariance of folded tables (R24, R30): one row more changes one unit's wide row alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice

import numpy as np
import polars as pl
import pytest

from checks.doors.comparing import temporary_folder
from checks.doors.readers import DOORS
from checks.doors.tables import ROW, UNIT, pairs
from pegsynth.codec import folding
from pegsynth.codec.codec import encode_table
from pegsynth.codec.folding import folded_reader
from pegsynth.codec.pooled_positions import Pooling
from pegsynth.errors import PegsynthError
from pegsynth.schema.panel import Panel
from pegsynth.schema.wide_schema import wide_schema
from pegsynth.tables.table_input import open_table

PAIRS = 2
MOST = 2


def panel_schema(pair):
    """The schema of a pair as that of a panel, ordered by the numbers of its rows."""
    columns = tuple(
        replace(column, kind="ordinal") if column.name == ROW else column
        for column in pair.schema.columns
    )
    return replace(pair.schema, columns=columns, rows_per_unit=1, panel=Panel(UNIT, ROW, MOST))


def wide_rows(door, pair, rows, folder):
    """Return the wide codes of all units, or None where the table is refused."""
    folder.mkdir()
    schema = panel_schema(pair)
    source = door.build(folder, pair, rows)
    try:
        with open_table(source() if callable(source) else source, dialect=schema.dialect) as reader:
            wide = folded_reader(reader, schema)
            codes = np.concatenate(list(encode_table(wide, wide_schema(schema), need_unit=False)))
    except PegsynthError:
        return None
    return Counter(tuple(map(int, line)) for line in codes)


def broken(door, count, seed="panel"):
    """Yield pairs for which more than one unit differs."""
    for pair in islice(pairs(door.holding, f"{seed} {door.name}"), count):
        with temporary_folder() as folder:
            plain = wide_rows(door, pair, pair.rows, folder / "plain")
            more = wide_rows(door, pair, pair.with_extra(pair.rows), folder / "more")
        if plain is None or more is None:
            continue
        gone, new = (sum(each.values()) for each in (plain - more, more - plain))
        # A row beyond the most may change nothing at all.
        if gone > 1 or new > 1 or gone > new:
            yield pair


HERE = [door for door in DOORS if door.read is None]


@pytest.mark.parametrize("door", HERE, ids=lambda door: door.name)
def test_one_row_more_changes_one_unit(door):
    if door.needs and find_spec(door.needs) is None:
        pytest.skip(f"{door.needs} is not installed")
    for pair in broken(door, PAIRS):
        pytest.fail(str(pair))


def test_one_row_more_changes_the_transitions_of_one_unit():
    """Tables that are pooled over positions (R24): at most so many rows go, and so many come."""
    door = next(door for door in HERE if door.name == "Polars")
    compared = 0
    for pair in islice(pairs(door.holding, "pooled"), 25):
        with temporary_folder() as folder:
            found = [
                wide_rows(door, pair, rows, folder / name)
                for name, rows in (("plain", pair.rows), ("more", pair.with_extra(pair.rows)))
            ]
        if None in found:
            continue
        pooling = Pooling(wide_schema(panel_schema(pair)))
        plain, more = (
            Counter(map(tuple, pooling.pairs(np.array(list(each.elements()), dtype=np.uint32))))
            for each in found
        )
        assert max((plain - more).total(), (more - plain).total()) <= MOST - 1
        compared += plain != more
    assert compared


def test_a_cut_by_the_size_of_the_table_is_found(monkeypatch):
    """The broken twin: as many rows of a unit count as units have on average."""
    shipped = folding.in_order

    def cut_by_the_mean(rows):
        ordered = shipped(rows)
        most = max(rows.height // rows.get_column(folding.UNIT).n_unique(), 1)
        place = pl.int_range(pl.len()).over(folding.UNIT)
        return ordered.filter(place < most)

    monkeypatch.setattr(folding, "in_order", cut_by_the_mean)
    door = next(door for door in HERE if door.name == "Polars")
    assert any(True for _ in broken(door, 150))
