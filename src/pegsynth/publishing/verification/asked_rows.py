"""Units are dealt to parts, each by a draw of its own (R32).

Tables as a formula needs them: codes, numbers, and whose every row is.

Every row is read for itself (R30): all rows are kept, and a number is what stands in its
cell, whatever the other rows hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from pegsynth.codec.codec import Encoder
from pegsynth.inference.choice import weight_columns
from pegsynth.inference.value_columns import TableValues, ValueCollector
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.mechanisms.noise import Below
from pegsynth.schema import Schema
from pegsynth.schema.dtypes import unit_text
from pegsynth.tables.reader import TableReader, is_blank, missing_units


def dealt(units: Int64 | None, rows: int, parts: int, words: Below) -> Int64:
    """Return the part of every row.

    Every unit gets an exact uniform integer of its own and takes all its rows along. Parts
    of equal size would not do: one unit more would move others to another part.

    Parameters
    ----------
    units
        For every row the number of its unit, from 0; None: every row is a unit.
    words
        A source of exact uniform integers.
    """
    count = rows if units is None else (int(units.max()) + 1 if len(units) else 0)
    drawn = np.array([words.below(parts) for _ in range(count)], dtype=np.int64)
    found: Int64 = drawn if units is None else drawn[units]
    return found


_ALL = 1 << 62
"""No bound on the numbers that are kept: leaving out every second row would look at places."""


@dataclass(frozen=True)
class Rows:
    """A table in memory.

    Parameters
    ----------
    codes
        One feature a line.
    values
        Numbers, row by row, and weights where there are any.
    units
        For every row the number of its unit; None: every row is a unit.
    """

    codes: Codes
    values: TableValues
    units: Int64 | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.codes.shape[1])

    def some(self, kept: Int64) -> Rows:
        """Return some of the rows."""
        columns = {name: line[kept] for name, line in self.values.columns.items()}
        values = replace(self.values, columns=columns, weights=None, replicates=None)
        return Rows(self.codes[:, kept], values)

    def replicated(self) -> Iterator[Rows]:
        """Yield the table with each of its replicate weights."""
        lines = self.values.replicates
        for line in () if lines is None else lines:
            yield replace(self, values=replace(self.values, weights=line, replicates=None))


def read_rows(reader: TableReader, schema: Schema, *, need_unit: bool) -> Rows:
    """Read a table whole; the original with its units, a release with its weights.

    Parameters
    ----------
    need_unit
        Whether rows have units; those of a release have none.
    """
    weights = () if need_unit else weight_columns(reader.columns, schema.names)
    columns = [name for name in reader.columns if name not in weights]
    encoder = Encoder(schema, source=reader.source, columns=columns, need_unit=need_unit)
    unit = schema.unit if need_unit else None
    names = list(dict.fromkeys([*schema.names, *([unit] if unit else []), *weights]))
    collector = ValueCollector(schema, weights, most=_ALL)
    parts: list[Codes] = []
    owners: list[pl.Series] = []
    for batch in reader.batches(names):
        parts.append(encoder.encode(batch))
        collector.add(batch, parts[-1])
        if unit:
            owners.append(unit_text(batch.get_column(unit)))
    encoder.finish()
    # Whether some cell holds a label is known of all rows together, and must not matter.
    values = replace(collector.finish(), labelled=frozenset())
    return Rows(
        np.ascontiguousarray(np.concatenate(parts).T),
        values,
        _numbered(pl.concat(owners), reader.source, unit) if unit else None,
    )


def _numbered(units: pl.Series, source: str, unit: str) -> Int64:
    """Give every unit a number; which one it gets decides nothing."""
    blank = int(is_blank(units).sum())
    if blank:
        raise missing_units(source, unit, blank)
    numbers: Int64 = (units.rank("dense").to_numpy() - 1).astype(np.int64)
    return numbers
