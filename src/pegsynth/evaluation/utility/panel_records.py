"""What becomes of people in a panel: transitions, histories, and the risk of a whole history.

In go the original and synthetic long tables of a panel and its schema; out come records. Every
table is folded (R24), and what is compared are the wide rows: how one row of a unit leads to the
next, how many rows units have, what the first and the last are, how long is in between. Units of
a synthetic table that cannot be are counted as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from pegsynth.codec.column_encoders import column_encoders
from pegsynth.codec.folded_reader import folded_reader
from pegsynth.codec.folding import Folding
from pegsynth.errors import DataError, EmptyTableError
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.evaluation.utility.distances import total_variation, total_variation_floor
from pegsynth.inference.statistics import spread
from pegsynth.kernels.arrays import Int64
from pegsynth.schema import Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.keys import PRIVATE
from pegsynth.schema.panel import Panel
from pegsynth.schema.wide_schema import gap_edges, wide_schema
from pegsynth.tables.table_input import open_table

PANEL_KEYS = (
    "transition_distance",
    "rows_per_unit_distance",
    "first_row_distance",
    "last_row_distance",
    "gap_distance",
    "inconsistent_units",
    "reappearing_histories",
)
_FLOOR = "baseline: expected of as many independent draws from the original"
_NOTES = {
    "transition_distance": "total variation distance of the table of a value and the one in the "
    f"unit's next row, over all positions; {_FLOOR}",
    "rows_per_unit_distance": f"total variation distance of the number of rows of units; {_FLOOR}",
    "first_row_distance": f"total variation distance in the first row of units; {_FLOOR}",
    "last_row_distance": f"total variation distance in the last row of units; {_FLOOR}",
    "gap_distance": "total variation distance of the binned time from one row to the next; "
    f"{_FLOOR}",
    "inconsistent_units": "share of synthetic units with more rows than may count, or in which a "
    "fixed feature has two values",
    "reappearing_histories": "share of synthetic units whose whole history, in categories, is that "
    "of exactly one unit of the original; baseline: that of the original's own units",
}
_ABOUT = {"transition_distance", "first_row_distance", "last_row_distance"}


@dataclass(frozen=True)
class _Histories:
    """One table: wide codes, and the share of units that cannot be."""

    schema: Schema
    codes: Int64
    inconsistent: float

    @property
    def panel(self) -> Panel:
        """How rows belong together."""
        if self.schema.panel is None:
            raise ValueError("the schema has no panel")
        return self.schema.panel

    @property
    def counts(self) -> Int64:
        """Rows of every unit, from 1 on."""
        found: Int64 = self.codes[:, self.schema.index(self.panel.count)] + self.panel.least
        return found

    def at(self, name: str, position: int) -> Int64:
        """Codes of a feature at a position; one code, the last, is that of no row."""
        found: Int64 = self.codes[:, self.schema.index(self.panel.at(name, position))]
        return found


def panel_records(original: Any, synthetic: Sequence[Any], schema: Schema) -> list[Record]:
    """Return the records of a panel; none for another table."""
    if schema.panel is None or schema.panel.wide:
        return []
    schema = _settled(schema)
    try:
        real = _read(original, schema)
        tables = [_read(table, replace(schema, dialect=Dialect())) for table in synthetic]
    except EmptyTableError:
        return [not_computed(name, "", "a table has no rows") for name in PANEL_KEYS]
    except DataError as error:
        return [not_computed(name, "", str(error)) for name in PANEL_KEYS]
    return [*_distances(real, tables), _inconsistent(tables), _reappearing(real, tables)]


def _settled(schema: Schema) -> Schema:
    """Return the schema with public bins of the time between rows."""
    panel = schema.panel
    if panel is None:
        return schema
    # Two tables are judged as one, rows with the features of their unit.
    panel = replace(panel, tables=None, least=1)
    if panel.gaps == PRIVATE:
        panel = replace(panel, gaps=gap_edges(schema[panel.time]))
    return replace(schema, panel=panel)


def _read(source: Any, schema: Schema) -> _Histories:
    """Fold a table; values that the schema does not list are a category after the last."""
    wide = wide_schema(schema)
    with open_table(source, dialect=schema.dialect) as whole:
        known = {column.name for column in schema.columns} | {schema.unit}
        if [name for name in (schema.unit or "", *schema.names) if name not in whole.columns]:
            raise DataError("a table lacks a column of the panel")
        reader = replace(whole, columns=tuple(n for n in whole.columns if n in known))
        encoders = column_encoders(wide, spare=True)
        parts = [
            np.column_stack([encoder.encode_batch(batch) for encoder in encoders])
            for batch in folded_reader(reader, schema).batches()
        ]
        codes = np.concatenate(parts).astype(np.int64)
        return _Histories(wide, codes, _impossible(reader, schema))


def _impossible(reader: Any, schema: Schema) -> float:
    """Return the share of units with too many rows, or with two values of a fixed feature."""
    panel = Folding(schema).panel
    names = [panel.unit, *panel.fixed]
    rows = pl.concat([batch.cast(pl.String) for batch in reader.batches(names)])
    units = rows.group_by(panel.unit).agg(pl.len().alias("_rows"), pl.col(panel.fixed).n_unique())
    wrong = units.get_column("_rows") > panel.most
    for name in panel.fixed:
        wrong = wrong | (units.get_column(name) > 1)
    return float(wrong.mean() or 0.0)


def _distances(real: _Histories, tables: Sequence[_Histories]) -> list[Record]:
    panel, book = real.panel, real.schema
    changing = [name for name in panel.changing(book.names) if name != panel.time]
    found: dict[str, list[Record]] = {name: [] for name in PANEL_KEYS}
    for name in changing:
        size = book[panel.at(name, min(2, panel.most))].category_count + 1

        def transitions(table: _Histories, name: str = name, size: int = size) -> Int64:
            pairs = np.zeros(size * size, dtype=np.int64)
            for position in panel.positions[1:]:
                there = table.counts >= position
                before, after = (table.at(name, each)[there] for each in (position - 1, position))
                pairs += np.bincount(_plain(before, size) * size + after, minlength=size * size)
            return pairs

        def first(table: _Histories, name: str = name, size: int = size) -> Int64:
            return np.bincount(table.at(name, 1), minlength=size)

        def last(table: _Histories, name: str = name, size: int = size) -> Int64:
            positions = np.stack([table.at(name, each) for each in panel.positions])
            return np.bincount(
                positions[table.counts - 1, np.arange(len(table.counts))], minlength=size
            )

        for key, count in zip(sorted(_ABOUT), (first, last, transitions), strict=True):
            found[key] += _distance(key, name, count(real), [count(each) for each in tables])
    rows = [np.bincount(each.counts, minlength=panel.most + 1) for each in (real, *tables)]
    found["rows_per_unit_distance"] = _distance("rows_per_unit_distance", "", rows[0], rows[1:])
    gaps = [_gaps(each) for each in (real, *tables)]
    if gaps[0] is not None:
        counted = [each for each in gaps if each is not None]
        found["gap_distance"] = _distance("gap_distance", "", counted[0], counted[1:])
    for key in _ABOUT:
        found[key] = [_mean(key, found[key]), *found[key]] if found[key] else []
    return [record for records in found.values() for record in records]


def _plain(codes: Int64, size: int) -> Int64:
    return np.minimum(codes, size - 1)


def _gaps(table: _Histories) -> Int64 | None:
    """Count the bins of the time from one row to the next; None where times have categories."""
    panel, book = table.panel, table.schema
    if panel.most == 1 or not book[panel.at(panel.time, 2)].binned:
        return None
    size = book[panel.at(panel.time, 2)].category_count + 1
    found = np.zeros(size, dtype=np.int64)
    for position in panel.positions[1:]:
        found += np.bincount(
            table.at(panel.time, position)[table.counts >= position], minlength=size
        )
    return found


def _distance(key: str, subject: str, real: Int64, tables: Sequence[Int64]) -> list[Record]:
    size = max(len(each) for each in (real, *tables))
    padded = [np.pad(each, (0, size - len(each))) for each in (real, *tables)]
    if not all(each.any() for each in padded):
        return [not_computed(key, subject, "no unit has two rows")]
    values = [total_variation(padded[0], each) for each in padded[1:]]
    floor = float(np.mean([total_variation_floor(padded[0], int(t.sum())) for t in padded[1:]]))
    n = min(int(each.sum()) for each in padded[1:])
    return [measured(key, subject, spread(values, n=n), baseline=floor, note=_NOTES[key])]


def _mean(key: str, records: Sequence[Record]) -> Record:
    known = [record for record in records if record.value is not None]
    if not known:
        return not_computed(key, "", "no unit has two rows")
    values = [record.value or 0.0 for record in known]
    floors = [record.baseline or 0.0 for record in known]
    return Record(
        name=key,
        subject="",
        value=float(np.mean(values)),
        baseline=float(np.mean(floors)),
        n=min(record.n for record in known),
        note=f"mean over features of the {_NOTES[key]}",
    )


def _inconsistent(tables: Sequence[_Histories]) -> Record:
    key = "inconsistent_units"
    n = min(len(each.codes) for each in tables)
    found = spread([each.inconsistent for each in tables], n=n)
    return measured(key, "", found, baseline=0.0, note=_NOTES[key])


def _reappearing(real: _Histories, tables: Sequence[_Histories]) -> Record:
    key = "reappearing_histories"
    alone = _alone(real)
    values = [float(np.mean([line in alone for line in _lines(each)])) for each in tables]
    own = len(alone) / len(real.codes)
    n = min(len(each.codes) for each in tables)
    return measured(key, "", spread(values, n=n), baseline=own, note=_NOTES[key])


def _lines(table: _Histories) -> list[bytes]:
    codes = np.ascontiguousarray(table.codes.astype(np.uint32))
    return [line.tobytes() for line in codes]


def _alone(table: _Histories) -> set[bytes]:
    lines, counts = np.unique(table.codes.astype(np.uint32), axis=0, return_counts=True)
    return {line.tobytes() for line in lines[counts == 1]}
