"""Exact counts of numbers on their public grids: confidential, and in bounded memory.

In go code rows under `grid_schema`, batch by batch, wherever they are; out comes one array
of counts for each feature that is measured. Counts of different rows add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

import numpy as np

from pegsynth.arrays import Codes, Int64
from pegsynth.errors import ParameterError
from pegsynth.schema.schema import Schema


class GridCounter:
    """Counts rows by the cells of every grid, its special categories included.

    Parameters
    ----------
    schema
        What `grid_schema` returned: all of its features are counted.
    """

    def __init__(self, schema: Schema) -> None:
        self.names = schema.names
        self._ends = np.cumsum(schema.category_counts)
        self._cells = np.zeros(int(self._ends[-1]), dtype=np.int64)

    def add(self, batch: Codes) -> None:
        """Count one batch of code rows."""
        if batch.shape[1] != len(self.names):
            raise ParameterError(f"a batch must have {len(self.names)} columns of codes")
        for column, line in zip(batch.T, self._lines(), strict=True):
            np.add(line, np.bincount(column, minlength=len(line)), out=line)

    def counts(self) -> dict[str, Int64]:
        """Return the counts of every feature so far."""
        return {name: line.copy() for name, line in zip(self.names, self._lines(), strict=True)}

    def arrays(self) -> dict[str, Int64]:
        """Return all counts so far as plain arrays; they change with the next batch."""
        return {"cells": self._cells}

    def absorb(self, arrays: Mapping[str, Int64]) -> None:
        """Add counts of other rows."""
        self._cells += arrays["cells"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to let go of: counters on a cluster are opened and closed."""

    def _lines(self) -> list[Int64]:
        return np.split(self._cells, self._ends[:-1])


def count_grid(batches: Iterable[Codes], schema: Schema) -> dict[str, Int64]:
    """Count all batches of a table under a grid schema."""
    counter = GridCounter(schema)
    for batch in batches:
        counter.add(batch)
    return counter.counts()
