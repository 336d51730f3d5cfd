"""Tables that are measured whatever is chosen, because somebody declared that they are wanted.

Which they are, and what each costs, is settled before any data is read; so no choice is paid for.
They are noisy counts like all others (R11), and the pool is weighed to them like to all others.

What declared analyses and tables measure, and what each costs: before any data is read (R26).

Tables of the features of declared analyses, whose distances can be bought (R34).

A coefficient has no bound on what one row does to it. The counts of the features that an analysis
looks at have one: whatever is computed from these features is computed from their table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pegsynth.errors import ParameterError
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.methods.released.counted import MergedTable
from pegsynth.methods.released.joint_fit import JointFit
from pegsynth.methods.released.published import NoisyTable
from pegsynth.methods.released.row_pool import MOST_CELLS, Features
from pegsynth.methods.released.terms import Design, design_of
from pegsynth.schema import Schema

PURPOSE = "wanted"


@dataclass(frozen=True)
class Wanted:
    """A table that is to be published.

    Parameters
    ----------
    features
        Its features.
    share
        The part of the whole budget that pays for it.
    """

    features: Features
    share: float


def measured_tables(
    table: MergedTable, fit: JointFit, budget_filter: PrivacyFilter, wanted: Sequence[Wanted]
) -> list[NoisyTable]:
    """Measure the tables, and weigh the pool to each."""
    table.ask([each.features for each in wanted])
    found = []
    for each in wanted:
        noisy, deviation = budget_filter.measure(
            table.count(each.features),
            each.share,
            purpose=PURPOSE,
            features=each.features,
            levels=[fit.pool.sizes[feature] for feature in each.features],
        )
        found.append(NoisyTable(each.features, noisy, deviation))
        fit.take(found[-1])
    return found


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
