"""Which rows of a long table count: the first `most` of every unit, in the order of folding (R24).

In go batches of a table with its unit column; out comes for every row whether it counts. What is
held grows with the units and with `most`, not with the rows that are cut.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.panels.folding import Folding, in_order, units_of
from pegsynth.schema.schema import Schema

MOST_HELD = 1 << 20
_ROW = "row"


class CountedRows:
    """Looks at the rows of a panel, batch by batch.

    Parameters
    ----------
    schema
        The codebook of the long table; two tables are looked at as one.
    """

    def __init__(self, schema: Schema, *, most_held: int = MOST_HELD) -> None:
        if schema.panel is None:
            raise ValueError("the schema has no panel")
        panel = replace(schema.panel, tables=None, least=1)
        self._folding = Folding(replace(schema, panel=panel))
        self._most, self._most_held = panel.most, most_held
        self._parts: list[pl.DataFrame] = []
        self._held = self._rows = 0

    def add(self, batch: pl.DataFrame) -> None:
        """Take in the next rows."""
        numbers = pl.Series(_ROW, np.arange(self._rows, self._rows + batch.height))
        self._parts.append(self._folding.prepared(batch).with_columns(numbers))
        self._rows += batch.height
        self._held += batch.height
        if self._held > self._most_held:
            self._reduce()
            # Held units cannot get fewer, so look again only when there is much more.
            self._most_held = max(self._most_held, 2 * self._held)

    def mask(self) -> NDArray[np.bool_]:
        """Return for every row whether it counts."""
        counted = np.zeros(self._rows, dtype=bool)
        if self._parts:
            self._reduce()
            counted[self._parts[0].get_column(_ROW).to_numpy()] = True
        return counted

    def _reduce(self) -> None:
        """Drop rows that come after enough others of their unit."""
        rows = in_order(pl.concat(self._parts), len(self._folding.needed) - 1)
        begins, counts = units_of(rows)
        position = np.arange(rows.height) - np.repeat(begins, counts)
        self._parts = [rows.filter(pl.Series(position < self._most))]
        self._held = self._parts[0].height
