"""Tables of the features of declared analyses, whose distances can be bought (R34).

A coefficient has no bound on what one row does to it. The counts of the features that an analysis
looks at have one: whatever is computed from these features is computed from their table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pegsynth.analyses.terms import Design, design_of
from pegsynth.schema import Schema


@dataclass(frozen=True)
class AnalysedTable:
    """What a declared analysis or a declared table looks at.

    Parameters
    ----------
    name
        The formula, or the features of a table that is wanted.
    features
        Names of its features, each once.
    """

    name: str
    features: tuple[str, ...]

    def cells(self, schema: Schema) -> int:
        """Return how many cells the table of its features has."""
        return math.prod(schema[name].category_count for name in self.features)


def analysed_tables(schema: Schema) -> tuple[AnalysedTable, ...]:
    """Return what the declared analyses and tables of a schema look at, in order."""
    found = [AnalysedTable(d.formula, d.features) for d in _designs(schema)]
    found += [
        AnalysedTable(", ".join(each.features), each.features) for each in schema.tables_wanted
    ]
    return tuple(found)


def affordable_tables(schema: Schema, most_cells: int) -> tuple[tuple[str, ...], ...]:
    """Return the features of those that are not too large to be counted."""
    tables = analysed_tables(schema)
    return tuple(each.features for each in tables if each.cells(schema) <= most_cells)


def _designs(schema: Schema) -> list[Design]:
    return [design_of(each, schema) for each in schema.analyses]
