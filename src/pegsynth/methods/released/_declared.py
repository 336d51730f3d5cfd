"""Tables and sums that are measured whatever is chosen, because they were declared (R11, R26).

Which they are, and what each costs, is settled before any data is read; so no choice is paid for.
Tables are noisy counts like all others, and the pool is weighed to them like to all others. Sums
of declared analyses are measured last: numbers are clipped at quantiles of what was paid for
before. Noisy one-way counts say how many rows a bin has, a measured shape how they lie in it.
Neither looks at the table again, so bounds cost nothing, and one row moves none of them by itself.

Distances of the tables of the features of declared analyses can be bought (R34). A coefficient has
no bound on what one row does to it. The counts of the features that an analysis looks at have one:
whatever is computed from these features is computed from their table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import polars as pl

from pegsynth.codec.bin_shape import Shape
from pegsynth.codec.codec import encode
from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.methods.released._draw import released_total
from pegsynth.methods.released._joint_fit import JointFit
from pegsynth.methods.released._row_pool import MOST_CELLS, Features
from pegsynth.methods.released._sum_design import (
    RESPONSE_FACTOR,
    STEPS,
    Bounds,
    SumDesign,
    in_frames,
    sum_design,
    sums_of,
)
from pegsynth.methods.released._terms import SCORED, Design, Scores, design_of, fitted_scores
from pegsynth.methods.released._values import (
    CountedTable,
    MeasuredSums,
    MergedTable,
    NoisyTable,
    Released,
)
from pegsynth.schema import Feature, Schema

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


LEAST_TAIL, MOST_TAIL = 0.0005, 0.06
"""Part of the rows that is clipped at either end, as the paid counts have it."""
TAIL_OF_NOISE = 4.0
"""How many times the noise on a mean that part is: the wider the bounds, the louder the noise."""
RESIDUAL_TAIL = 0.5
"""So many times as many residuals of a linear regression are clipped by themselves."""
LENGTH_TAIL = 2.0
"""So many times as many rows of a scored regression are clipped by the length of their score."""


def tail_for(noise: float) -> float:
    """Return the part of the rows to clip at either end, from public figures and paid output.

    Parameters
    ----------
    noise
        Deviation of the noise on a mean of products of numbers in [-1, 1].
    """
    return min(max(TAIL_OF_NOISE * noise, LEAST_TAIL), MOST_TAIL)


def residual_tail(tail: float) -> float:
    """Return the part of the residuals to clip where the noise asks for a tail."""
    return RESIDUAL_TAIL * tail


def length_tail(tail: float) -> float:
    """Return the part of the rows to clip by the length of their score."""
    return LENGTH_TAIL * tail


def paid_bounds(
    design: Design, schema: Schema, released: Released, shapes: Mapping[str, Shape], *, tail: float
) -> Bounds:
    """Return the bounds of all binned numbers of an analysis, from published counts alone.

    Rows that are scored are clipped by their residual and their length, and numbers themselves
    no more than need be.
    """
    names = {part.feature for part in design.parts if part.kind == "number"}
    part = LEAST_TAIL if design.analysis.family in SCORED else tail
    return {
        name: _quantiles(
            schema[name],
            released.one_ways[schema.index(name)].counts,
            shapes.get(name),
            part,
        )
        for name in names
        if schema[name].binned
    }


def _quantiles(
    feature: Feature, counts: Int64 | Float64, shape: Shape | None, tail: float
) -> tuple[float, float]:
    masses = np.maximum(counts[: feature.bin_count].astype(np.float64), 0.0)
    edges = np.asarray(feature.edges, dtype=np.float64)
    if not masses.any():
        return float(edges[0]), float(edges[-1])
    low, high, parts = edges[:-1], edges[1:], masses
    if shape is not None:
        low, high, parts = shape.low, shape.high, shape.parts * masses[shape.bins]
    reached = np.cumsum(parts) / parts.sum()
    bounds = []
    for share in (tail, 1 - tail):
        piece = min(int(np.searchsorted(reached, share)), len(parts) - 1)
        start = reached[piece - 1] if piece else 0.0
        width = max(float(reached[piece] - start), 1e-300)
        place = min(max((share - start) / width, 0.0), 1.0)
        bounds.append(float(low[piece] + place * (high[piece] - low[piece])))
    if bounds[0] < bounds[1]:
        return bounds[0], bounds[1]
    return float(edges[0]), float(edges[-1])


class ValueTable(Protocol):
    """A confidential table whose values can be added up."""

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """How values lie inside bins, where that was measured and paid for."""
        ...

    def sums(self, design: SumDesign) -> Int64:
        """Add up what every row adds."""
        ...


@dataclass(frozen=True)
class CodedValues:
    """Codes in memory: they tell the values of features without bins."""

    codes: Codes | CountedTable
    schema: Schema
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    def sums(self, design: SumDesign) -> Int64:
        """Add up the rows."""
        names = design.schema.names
        if any(self.schema[name].binned for name in names) or not isinstance(
            self.codes, np.ndarray
        ):
            raise ParameterError("sums of numbers need the values of the table, not its codes")
        return sums_of([self.codes[:, [self.schema.index(name) for name in names]]], design)


def measure_analyses(
    released: Released,
    plan: DeclaredPlan,
    schema: Schema,
    table: ValueTable,
    budget_filter: PrivacyFilter,
    *,
    model_rows: Callable[[], pl.DataFrame],
    steps: int = STEPS,
) -> Released:
    """Measure the sums of all declared analyses; bounds come from what was released before.

    Parameters
    ----------
    model_rows
        Gives synthetic rows, from what was released before: coefficients that a regression is
        scored at are fitted to them.
    """
    found = []
    for stage in plan.sums:
        family = stage.design.analysis.family
        tail = tail_for(_noise_on_a_mean(stage, schema, released, budget_filter))
        bounds = paid_bounds(stage.design, schema, released, table.shapes, tail=tail)
        design = sum_design(stage.design, schema, bounds, steps=steps)
        scored_at = np.zeros(0, dtype=np.int64)
        if family in SCORED:
            columns = design.values(codes_of(design, model_rows()))
            scores = fitted_scores(
                columns,
                steps,
                design.parts,
                tail=residual_tail(tail),
                long_tail=length_tail(tail),
                logistic=family == "binomial",
            )
            design, scored_at = replace(design, scores=scores), scores.numbers()
        noisy, deviation = budget_filter.measure_sums(
            table.sums(design),
            stage.share,
            largest_sum=design.largest(1),
            largest_square=design.largest(2),
            features=tuple(schema.index(name) for name in stage.design.features),
        )
        found.append(MeasuredSums(_plain(stage.design, bounds), noisy, deviation, scored_at))
    return replace(released, sums=tuple(found))


def _noise_on_a_mean(
    stage: SumStage, schema: Schema, released: Released, budget_filter: PrivacyFilter
) -> float:
    """Return the deviation of the noise on a mean product with the response, about."""
    # What a row adds at most depends neither on where numbers are clipped nor on coefficients.
    design, factor = sum_design(stage.design, schema, {}), RESPONSE_FACTOR
    if stage.design.analysis.family in SCORED:
        nothing = np.zeros(design.columns - 1, dtype=np.int64)
        design, factor = replace(design, scores=Scores(nothing, 1, logistic=False)), 1
    most = math.sqrt(design.largest(2)) / design.steps**2 / factor
    return most * budget_filter.deviation(stage.share) / max(released_total(released), 1.0)


def published_designs(schema: Schema, sums: Sequence[MeasuredSums]) -> list[SumDesign]:
    """Return what a row adds to the published sums, from published bounds."""
    return [
        sum_design(
            design,
            schema,
            _bounds(design, each.bounds),
            scores=Scores.stored(
                each.scored_at, design.analysis.family, design.columns(schema) - 1
            ),
        )
        for design, each in zip(
            (design_of(analysis, schema) for analysis in schema.analyses),
            sums,
            strict=True,
        )
    ]


def codes_of(design: SumDesign, frame: pl.DataFrame) -> Codes:
    """Return synthetic rows of values as the codes of a design."""
    schema = in_frames(design.schema)
    return encode(frame.select(schema.names), schema)


def _plain(design: Design, bounds: Bounds) -> Float64:
    nothing = (np.nan, np.nan)
    pairs = [
        bounds.get(part.feature, nothing) if part.kind == "number" else nothing
        for part in design.parts
    ]
    return np.array(pairs, dtype=np.float64).ravel()


def _bounds(design: Design, plain: Float64) -> Bounds:
    pairs = plain.reshape(-1, 2).tolist()
    return {
        part.feature: (low, high)
        for part, (low, high) in zip(design.parts, pairs, strict=True)
        if low < high
    }
