"""What becomes of people in a panel: transitions, histories, and the risk of a whole history.

In go the original and synthetic long tables of a panel and its schema; out come records. Every
table is folded (R24), and what is compared are the wide rows: how one row of a unit leads to the
next, how many rows units have, what the first and the last are, how long is in between. Units of
a synthetic table that cannot be are counted as they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from pegsynth.codec.encoding import column_encoders
from pegsynth.codec.folding import Folding, folded_reader
from pegsynth.errors import DataError, EmptyTableError
from pegsynth.evaluation.records import Record, mean_record, measured, not_computed
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
NO_PAIR = "no unit has two rows"
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

    def counts(self) -> dict[tuple[str, str], Int64]:
        """Count all that is compared, by measure and feature.

        A feature has one code more than categories, the last, which is that of no row.
        """
        panel, schema, positions = self.panel, self.schema, self.panel.positions
        rows = self.codes[:, schema.index(panel.count)] + panel.least

        def at(name: str) -> tuple[Int64, int]:
            """Return the codes of a feature by position and unit, and how many there are."""
            places = [schema.index(panel.at(name, position)) for position in positions]
            return self.codes[:, places].T, schema[
                panel.at(name, min(2, panel.most))
            ].category_count + 1

        found = {("rows_per_unit_distance", ""): np.bincount(rows, minlength=panel.most + 1)}
        for name in panel.changing(schema.names):
            codes, size = at(name)
            if name == panel.time:
                # Times that have categories have no bins.
                if panel.most > 1 and schema[panel.at(name, 2)].binned:
                    gaps = [codes[p - 1][rows >= p] for p in positions[1:]]
                    found["gap_distance", ""] = np.bincount(np.concatenate(gaps), minlength=size)
                continue
            last = codes[rows - 1, np.arange(len(rows))]
            found["first_row_distance", name] = np.bincount(codes[0], minlength=size)
            found["last_row_distance", name] = np.bincount(last, minlength=size)
            pairs = np.zeros(size * size, dtype=np.int64)
            for p in positions[1:]:
                before, after = codes[p - 2][rows >= p], codes[p - 1][rows >= p]
                cells = np.minimum(before, size - 1) * size + after
                pairs += np.bincount(cells, minlength=len(pairs))
            found["transition_distance", name] = pairs
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
    return [*_distances(real, tables), *_of_units(real, tables)]


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


def _distances(real: _Histories, tables: Sequence[_Histories]) -> Iterable[Record]:
    """Compare counts of the original with those of every synthetic table."""
    original, *others = (each.counts() for each in (real, *tables))
    for key in PANEL_KEYS:
        ours = []
        for about, counts in original.items():
            if about[0] == key:
                ours.append(_distance(*about, [counts, *(each[about] for each in others)]))
        if ours and ours[0].subject:
            note = f"mean over features of the {_NOTES[key]}"
            yield mean_record(key, ours, note=note, reason=NO_PAIR)
        yield from ours


def _distance(key: str, subject: str, counts: Sequence[Int64]) -> Record:
    size = max(map(len, counts))
    padded = [np.pad(each, (0, size - len(each))) for each in counts]
    if not all(each.any() for each in padded):
        return not_computed(key, subject, NO_PAIR)
    values = [total_variation(padded[0], each) for each in padded[1:]]
    floor = float(np.mean([total_variation_floor(padded[0], int(t.sum())) for t in padded[1:]]))
    n = min(int(each.sum()) for each in padded[1:])
    return measured(key, subject, spread(values, n=n), baseline=floor, note=_NOTES[key])


def _of_units(real: _Histories, tables: Sequence[_Histories]) -> Iterable[Record]:
    """Say how many units cannot be, and how many whole histories are those of one person."""
    n = min(len(each.codes) for each in tables)
    lines, counts = np.unique(real.codes.astype(np.uint32), axis=0, return_counts=True)
    alone = {line.tobytes() for line in lines[counts == 1]}
    again = [
        float(np.mean([line.tobytes() in alone for line in each.codes.astype(np.uint32)]))
        for each in tables
    ]
    wrong = [each.inconsistent for each in tables]
    baselines = 0.0, len(alone) / len(real.codes)
    for key, values, baseline in zip(PANEL_KEYS[-2:], (wrong, again), baselines, strict=True):
        yield measured(key, "", spread(values, n=n), baseline=baseline, note=_NOTES[key])
