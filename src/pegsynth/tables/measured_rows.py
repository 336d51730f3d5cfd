"""What a codec that is paid for is made of, counted from a table with its units bounded (R12).

Numbers are counted on their public grids (R21), values of features with private categories as
texts (R29). The rows that count are chosen once and are the same for all of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pegsynth.categories import CandidateCounts, private_names
from pegsynth.errors import ParameterError
from pegsynth.io.reader import TableReader
from pegsynth.numbers import CodecCounts, count_grid, grid_schema, wants_grids
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.schema.codec import Encoder
from pegsynth.schema.schema import Schema
from pegsynth.tables.code_table import CodeTable
from pegsynth.tables.units import KeptRows, kept_rows


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
        counted = CandidateCounts(self._rows, [schema[name] for name in self._names])
        return CodecCounts(grids, counted.parts() if self._names else ())

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
