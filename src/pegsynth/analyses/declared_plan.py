"""What declared analyses and tables measure, and what each costs: before any data is read (R26)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pegsynth.analyses.terms import Design, design_of
from pegsynth.errors import ParameterError
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.released.row_pool import MOST_CELLS
from pegsynth.released.wanted import Wanted
from pegsynth.schema import Schema

TABLES_PART = 0.4
"""Part of the share of an analysis that goes to tables of its explanatory features."""


@dataclass(frozen=True)
class SumStage:
    """Sums that are measured for one analysis.

    Parameters
    ----------
    design
        The analysis.
    share
        The part of the whole budget that pays for them.
    """

    design: Design
    share: float


@dataclass(frozen=True)
class DeclaredPlan:
    """All that is measured because it was declared.

    Parameters
    ----------
    tables
        Tables that were asked for, and pairs that analyses need.
    apart
        Features whose categories must stay apart, because a table of them was asked for.
    sums
        Sums, an analysis each.
    """

    tables: tuple[Wanted, ...] = ()
    apart: frozenset[int] = frozenset()
    sums: tuple[SumStage, ...] = ()

    @property
    def withheld(self) -> float:
        """The part of the budget for sums; tables have shares of their own."""
        return math.fsum(each.share for each in self.sums)


def settle_declared(schema: Schema) -> DeclaredPlan:
    """Settle what is measured, by the schema alone.

    Raises
    ------
    ParameterError
        A table has too many cells, or an analysis cannot be read.
    """
    tables: list[Wanted] = []
    for each in schema.tables_wanted:
        features = tuple(schema.index(name) for name in each.features)
        cells = math.prod(schema.category_counts[feature] for feature in features)
        if cells > MOST_CELLS:
            raise ParameterError(
                f"{each.name} has {cells:,} cells, and a table that is wanted may have "
                f"{MOST_CELLS:,}; leave out a feature, or merge categories"
            )
        tables.append(Wanted(features, each.share))
    apart = frozenset(feature for table in tables for feature in table.features)
    sums = []
    for analysis in schema.analyses:
        design = design_of(analysis, schema)
        pairs = _new_pairs(design, schema, tables)
        part = analysis.share * TABLES_PART if pairs else 0.0
        tables += [Wanted(pair, part / len(pairs)) for pair in pairs]
        sums.append(SumStage(design, analysis.share - part))
    return DeclaredPlan(tuple(tables), apart, tuple(sums))


def _new_pairs(design: Design, schema: Schema, tables: list[Wanted]) -> list[tuple[int, int]]:
    """Return the pairs that an analysis needs and no table before has, if they are not too wide."""
    counts = schema.category_counts
    pairs = [(schema.index(left), schema.index(right)) for left, right in design.pairs]
    return [
        pair
        for pair in pairs
        if counts[pair[0]] * counts[pair[1]] <= MOST_CELLS
        and not any(set(pair) <= set(table.features) for table in tables)
    ]


def declared_costs(schema: Schema, price: Price) -> Iterator[str]:
    """Yield a line on every declared table and analysis: what is measured, and what it costs."""
    names = schema.names
    plan = settle_declared(schema)
    asked = len(schema.tables_wanted)
    for table in plan.tables[:asked]:
        cells = math.prod(schema.category_counts[feature] for feature in table.features)
        yield (
            f"Table {' x '.join(names[f] for f in table.features)}: {table.share:.1%} of the "
            f"budget, {cells:,} cells, noise of {price.deviation(table.share):.4g} rows on each."
        )
    for stage in plan.sums:
        design = stage.design
        pairs = len(design.pairs)
        tables = f", with {pairs} pair tables of its explanatory features" if pairs else ""
        yield (
            f"Analysis {design.formula} ({design.analysis.family}): "
            f"{design.analysis.share:.1%} of the budget, {design.sums(schema)} sums of products "
            f"of clipped and scaled values{tables}."
        )


def labels_of_declared() -> ParameterError:
    """Say that rows with labels have no values to be calibrated by (R26)."""
    return ParameterError(
        "rows are calibrated to declared analyses by their values; leave out --decode labels"
    )
