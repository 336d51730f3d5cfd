"""What becomes of people in a panel: transitions, histories, and the risk of a whole history.

In go the original and synthetic long tables of a panel and its schema; out come records. Every
table is folded (R24), and what is compared are the wide rows: how one row of a unit leads to the
next, how many rows units have, what the first and the last are, how long is in between. Units of
a synthetic table that cannot be are counted as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from pegsynth.codec.encoding import column_encoders
from pegsynth.codec.folding import Folding, folded_reader
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
from pegsynth.tables.reader import TableReader
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


@dataclass(frozen=True)
class _Histories:
    """One table: wide codes, and the share of units that cannot be."""

    schema: Schema
    panel: Panel
    codes: Int64
    inconsistent: float

    @property
    def counts(self) -> Int64:
        """Rows of every unit, from 1 on."""
        found: Int64 = self.codes[:, self.schema.index(self.panel.count)] + self.panel.least
        return found

    def at(self, name: str, position: int) -> Int64:
        """Codes of a feature at a position; one code, the last, is that of no row."""
        found: Int64 = self.codes[:, self.schema.index(self.panel.at(name, position))]
        return found

    def size(self, name: str) -> int:
        """Codes of a feature, with that of no row."""
        return self.schema[self.panel.at(name, min(2, self.panel.most))].category_count + 1

    def first(self, name: str) -> Int64:
        """Count what the first row of units holds."""
        return np.bincount(self.at(name, 1), minlength=self.size(name))

    def last(self, name: str) -> Int64:
        """Count what the last row of units holds."""
        positions = np.stack([self.at(name, each) for each in self.panel.positions])
        last = positions[self.counts - 1, np.arange(len(self.counts))]
        return np.bincount(last, minlength=self.size(name))

    def transitions(self, name: str) -> Int64:
        """Count pairs of what a row holds and the unit's next row, over all positions."""
        size = self.size(name)
        pairs = np.zeros(size * size, dtype=np.int64)
        for position in self.panel.positions[1:]:
            there = self.counts >= position
            before, after = (self.at(name, each)[there] for each in (position - 1, position))
            pairs += np.bincount(np.minimum(before, size - 1) * size + after, minlength=len(pairs))
        return pairs

    def gaps(self) -> Int64:
        """Count the bins of the time from one row to the next."""
        time = self.panel.time
        found = np.zeros(self.size(time), dtype=np.int64)
        for position in self.panel.positions[1:]:
            there = self.counts >= position
            found += np.bincount(self.at(time, position)[there], minlength=len(found))
        return found


def panel_records(original: object, synthetic: Sequence[object], schema: Schema) -> list[Record]:
    """Return the records of a panel; none for another table."""
    if schema.panel is None or schema.panel.wide:
        return []
    # Two tables are judged as one, rows with the features of their unit.
    panel = replace(schema.panel, tables=None, least=1)
    if panel.gaps == PRIVATE:
        panel = replace(panel, gaps=gap_edges(schema[panel.time]))
    schema = replace(schema, panel=panel)
    try:
        real = _read(original, schema, panel)
        tables = [_read(table, replace(schema, dialect=Dialect()), panel) for table in synthetic]
    except EmptyTableError:
        return [not_computed(name, "", "a table has no rows") for name in PANEL_KEYS]
    except DataError as error:
        return [not_computed(name, "", str(error)) for name in PANEL_KEYS]
    return [*_distances(real, tables), _inconsistent(tables), _reappearing(real, tables)]


def _read(source: object, schema: Schema, panel: Panel) -> _Histories:
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
        return _Histories(wide, wide.panel or panel, codes, _impossible(reader, schema))


def _impossible(reader: TableReader, schema: Schema) -> float:
    """Return the share of units with too many rows, or with two values of a fixed feature."""
    panel = Folding(schema).panel
    names = [panel.unit, *panel.fixed]
    rows = pl.concat([batch.cast(pl.String) for batch in reader.batches(names)])
    units = rows.group_by(panel.unit).agg(pl.len().alias("_rows"), pl.col(panel.fixed).n_unique())
    wrong = units.get_column("_rows") > panel.most
    for name in panel.fixed:
        wrong = wrong | (units.get_column(name) > 1)
    return float(wrong.to_numpy().mean())


def _distances(real: _Histories, tables: Sequence[_Histories]) -> list[Record]:
    panel, every = real.panel, (real, *tables)
    found: dict[str, list[Record]] = {name: [] for name in PANEL_KEYS}
    counts = {
        "transition_distance": _Histories.transitions,
        "first_row_distance": _Histories.first,
        "last_row_distance": _Histories.last,
    }
    for key, count in counts.items():
        ours = [
            record
            for name in panel.changing(real.schema.names)
            if name != panel.time
            for record in _distance(key, name, [count(each, name) for each in every])
        ]
        found[key] = [_mean(key, ours), *ours] if ours else []
    rows = [np.bincount(each.counts, minlength=panel.most + 1) for each in every]
    found["rows_per_unit_distance"] = _distance("rows_per_unit_distance", "", rows)
    # Times that have categories have no bins.
    if panel.most > 1 and real.schema[panel.at(panel.time, 2)].binned:
        gaps = [each.gaps() for each in every]
        found["gap_distance"] = _distance("gap_distance", "", gaps)
    return [record for records in found.values() for record in records]


def _distance(key: str, subject: str, counts: Sequence[Int64]) -> list[Record]:
    """Compare counts of the original with those of every synthetic table."""
    size = max(map(len, counts))
    padded = [np.pad(each, (0, size - len(each))) for each in counts]
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
    lines, counts = np.unique(real.codes.astype(np.uint32), axis=0, return_counts=True)
    alone = {line.tobytes() for line in lines[counts == 1]}
    values = [
        float(np.mean([line.tobytes() in alone for line in each.codes.astype(np.uint32)]))
        for each in tables
    ]
    n = min(len(each.codes) for each in tables)
    own = len(alone) / len(real.codes)
    return measured(key, "", spread(values, n=n), baseline=own, note=_NOTES[key])
