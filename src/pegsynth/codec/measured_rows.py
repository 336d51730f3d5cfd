"""Exact counts of numbers on their public grids: confidential, and in bounded memory.

In go code rows under `grid_schema`, batch by batch, wherever they are; out comes one array
of counts for each feature that is measured. Counts of different rows add up.

What a codec that is paid for is made of, counted from a table with its units bounded (R12).

Numbers are counted on their public grids (R21), values of features with private categories as
texts (R29). The rows that count are chosen once and are the same for all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl

from pegsynth.codec.code_table import CodeTable, KeptRows, kept_rows
from pegsynth.codec.codec import Encoder
from pegsynth.codec.finding_categories import counted_values, private_names
from pegsynth.codec.number_grid import grid_schema
from pegsynth.codec.pair_counts import TableCounter
from pegsynth.codec.paying import CodecCounts, wants_grids
from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.schema.schema import Schema
from pegsynth.tables.reader import TableReader


class GridCounter(TableCounter[str]):
    """Counts rows by the cells of every grid, its special categories included.

    Parameters
    ----------
    schema
        What `grid_schema` returned: all of its features are counted.
    """

    def __init__(self, schema: Schema) -> None:
        self.names = schema.names
        spaces = {
            name: (1, count) for name, count in zip(self.names, schema.category_counts, strict=True)
        }
        super().__init__(spaces, most_dense=max(schema.category_counts), threads=1)

    def add(self, batch: Codes) -> None:
        """Count one batch of code rows."""
        if batch.shape[1] != len(self.names):
            raise ParameterError(f"a batch must have {len(self.names)} columns of codes")
        for column, line in zip(batch.T, self._flat.values(), strict=True):
            np.add(line, np.bincount(column, minlength=len(line)), out=line)

    def counts(self) -> dict[str, Int64]:
        """Return the counts of every feature so far."""
        return {name: line.copy() for name, line in self._flat.items()}


def count_grid(batches: Iterable[Codes], schema: Schema) -> dict[str, Int64]:
    """Count all batches of a table under a grid schema."""
    counter = GridCounter(schema)
    for batch in batches:
        counter.add(batch)
    return counter.counts()


class MeasuredRows:
    """The rows of a table that its codec is measured on.

    Parameters
    ----------
    schema
        The schema with private edges or categories.

    Attributes
    ----------
    kept
        Rows kept of every unit; None where all are, or where rows come in another order the
        next time.
    """

    def __init__(
        self,
        reader: TableReader,
        schema: Schema,
        stream: RandomStream,
        *,
        progress: Progress = quiet,
    ) -> None:
        self._reader, self._schema, self._progress = reader, schema, progress
        # Columns are checked before any of them is read.
        unit = None if reader.folded else schema.unit
        Encoder(schema, source=reader.source, columns=reader.columns, need_unit=not reader.folded)
        self._names = private_names(schema)
        self._numbers: CodeTable | None = None
        self.kept: KeptRows | None = None
        if self._names and unit is not None and not reader.steady:
            raise ParameterError(
                f"{reader.source}: rows may come in another order the next time, so that those of "
                "a unit cannot be told apart while categories are looked for; write the table to "
                "a file first, or list the categories in the schema"
            )
        if wants_grids(schema):
            self._numbers = CodeTable(reader, grid_schema(schema), stream, progress=progress)
            self.kept = self._numbers.kept
        elif unit is not None:
            k = schema.rows_per_unit
            self.kept = kept_rows(reader, unit, k, stream, progress=progress)

    def counts(self) -> CodecCounts:
        """Count numbers; texts are counted when they are asked for."""
        schema, table = self._schema, self._numbers
        grids = count_grid(table.batches(), grid_schema(schema)) if table else {}
        features = [schema[name] for name in self._names]
        return CodecCounts(grids, counted_values(self._rows, features) if features else ())

    def _rows(self) -> Iterator[pl.DataFrame]:
        """Yield the columns whose categories are looked for, of the rows that count."""
        first = 0
        for batch in self._reader.batches(self._names):
            kept = batch
            if self.kept is not None:
                kept = batch.filter(pl.Series(self.kept.mask(first, batch.height)))
            first += batch.height
            yield kept
            self._progress("values", first, self._reader.expected_rows)
