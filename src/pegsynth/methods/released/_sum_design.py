"""What one row adds to the sums of a declared analysis: integers, and their largest size (R26).

Numbers are read on fine public bins, as for private edges (R21), clipped, transformed if the
formula says so, and scaled to whole steps between bounds that are public or were paid for before;
a comparison is 0 or the largest step, a category the largest step in its own column, and a column
of an interaction is the product of others in units of the largest step. Every row adds the
products of any two columns; of a linear or logistic regression it adds to the score at
coefficients that were paid for. How much that is at most follows from these lines alone, whatever
rows there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.number_grid import grid_feature, grid_of
from pegsynth.inference.model_matrix import compared, transformed, truth
from pegsynth.inference.value_columns import numeric_values
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.methods.released._terms import Design, Part, Scores
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.number_text import parsed_number

Bounds = Mapping[str, tuple[float, float]]
Usable = NDArray[np.bool_]

STEPS = 1 << 10
"""Steps of a scaled number to either side of the middle of its bounds."""
RESPONSE_FACTOR = 2
"""Products with the response count so many times: errors in them matter most."""


@dataclass(frozen=True, eq=False)
class SumDesign:
    """Public integers that say what a row adds.

    Parameters
    ----------
    design
        The analysis.
    schema
        The features that are read, numbers on fine bins.
    places
        For every part of every block the feature of the schema that it is about.
    lines
        For every part what each code puts into its columns.
    usable
        For every part whether a row with that code counts.
    steps
        The largest step.
    scores
        What a regression is scored at; from paid output. None: products of the columns
        themselves.
    """

    design: Design
    schema: Schema
    places: tuple[int, ...]
    lines: tuple[Int64, ...]
    usable: tuple[Usable, ...]
    steps: int
    scores: Scores | None = None

    @property
    def columns(self) -> int:
        """Number of columns, the intercept included."""
        return len(self.block_of)

    @cached_property
    def block_of(self) -> Int64:
        """The block of every column: 0 for the intercept, 1 for the response."""
        widths = (math.prod(self.lines[part].shape[1] for part in ps) for ps in self.parts_of)
        sizes = [1, *widths]
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def parts_of(self) -> tuple[range, ...]:
        """The parts of every block, as places in `lines`."""
        counts = [len(block.parts) for block in self.design.blocks]
        ends = np.cumsum(counts).tolist()
        return tuple(range(end - count, end) for count, end in zip(counts, ends, strict=True))

    @cached_property
    def pairs(self) -> tuple[Int64, Int64]:
        """The columns of every sum: of a scored regression, those with the residual.

        Products within a block are left out where they say nothing: two categories exclude
        each other, and what is 0 or 1 is its own square.
        """
        if self.scores is not None:
            others = np.flatnonzero(self.block_of != 1)
            return np.ones_like(others), others
        left, right = np.triu_indices(self.columns)
        block = self.block_of
        square = np.array([True, *(each.numeric for each in self.design.blocks)])
        kept = (block[left] != block[right]) | ((left == right) & square[block[left]])
        return left[kept].astype(np.int64), right[kept].astype(np.int64)

    @cached_property
    def factors(self) -> Int64:
        """How many times every sum counts."""
        if self.scores is not None:
            return np.ones(len(self.pairs[0]), dtype=np.int64)
        left, right = (self.block_of[each] for each in self.pairs)
        return np.where((left == 1) != (right == 1), RESPONSE_FACTOR, 1).astype(np.int64)

    def values(self, codes: Codes) -> Int64:
        """Return the columns of rows; of a scored regression turned ones, and its residual.

        Rows that do not count are 0 in all columns.
        """
        found = self._columns_of(codes)
        if self.scores is not None:
            return self.scores.scored(found, self.steps, self.parts)
        return found

    @property
    def parts(self) -> int:
        """The most columns but the response's that are not 0 in one row."""
        return len(self.design.blocks)

    def _columns_of(self, codes: Codes) -> Int64:
        counts = np.ones(len(codes), dtype=bool)
        values = []
        for place, line, usable in zip(self.places, self.lines, self.usable, strict=True):
            column = codes[:, place].astype(np.int64)
            counts &= usable[column]
            values.append(line[column])
        found = [np.full((len(codes), 1), self.steps, dtype=np.int64)]
        for first, *others in self.parts_of:
            block = values[first]
            for other in others:
                both = block[:, :, None] * values[other][:, None, :] // self.steps
                block = both.reshape(len(codes), both.shape[1] * both.shape[2])
            found.append(block)
        return np.where(counts[:, None], np.concatenate(found, axis=1), 0)

    def products(self, codes: Codes) -> Int64:
        """Return what every row adds to every sum."""
        return self.multiplied(self.values(codes)) * self.factors

    def multiplied(self, values: Int64) -> Int64:
        """Return the products of the columns of rows, without factors."""
        left, right = self.pairs
        added: Int64 = values[:, left] * values[:, right]
        return added

    def largest(self, power: int) -> int:
        """Return the most that a row adds, each sum to a power, whatever its values.

        A block has at most one column that is not 0, and which code that is does not depend on
        the other features: the largest of each block together are the largest of all. What a
        row adds to a score is bounded by itself.
        """
        most = [self.steps, *(self._most(number) for number in range(len(self.parts_of)))]
        if self.scores is not None:
            return self.scores.largest([most[0], *most[2:]], self.steps, self.parts, power)
        numbers = [True, *(block.numeric for block in self.design.blocks)]
        whole = 0
        for first, one in enumerate(most):
            for second, other in enumerate(most[first:], start=first):
                if first == second and not numbers[first]:
                    continue
                factor = RESPONSE_FACTOR if (first == 1) != (second == 1) else 1
                whole += (factor * one * other) ** power
        return whole

    def _most(self, block: int) -> int:
        """Return the largest size of a column of a block over all codes that count.

        The parts of an interaction are taken at their largest together; products are rounded
        down, which may make a negative one longer, but by less than one.
        """
        most = [self._largest_of(part) for part in self.parts_of[block]]
        found = most[0]
        for other in most[1:]:
            found = -(-found * other // self.steps)
        return found

    def _largest_of(self, part: int) -> int:
        line = self.lines[part][self.usable[part]]
        return int(np.abs(line).max()) if line.size else 0

    def scale(self) -> Float64:
        """Return what every sum is divided by, to be one of products of numbers in [-1, 1]."""
        return self.factors.astype(np.float64) * float(self.steps) ** 2


def sum_design(
    design: Design,
    schema: Schema,
    bounds: Bounds,
    *,
    steps: int = STEPS,
    scores: Scores | None = None,
) -> SumDesign:
    """Settle what a row adds.

    Parameters
    ----------
    schema
        The schema of the release, with edges and categories.
    bounds
        Where numbers with bins are clipped, by name: public, or paid for before.
    scores
        See `SumDesign`.
    """
    fine = fine_schema(design, schema)
    lines, usable = [], []
    for number, part in enumerate(design.parts):
        line, counts = _line(part, fine[part.feature], bounds, steps, response=number == 0)
        lines.append(line)
        usable.append(counts)
    places = tuple(fine.index(part.feature) for part in design.parts)
    return SumDesign(design, fine, places, tuple(lines), tuple(usable), steps, scores)


def fine_schema(design: Design, schema: Schema) -> Schema:
    """Return the schema of the features of an analysis alone, numbers on fine public bins."""
    columns = []
    for column in schema.columns:
        if column.name not in design.features:
            columns.append(replace(column, role="identifier"))
            continue
        plain = replace(column, heads=(), parent=None, l=None)
        columns.append(_fine(plain, design) if column.binned else plain)
    return replace(schema, columns=tuple(columns), rules=(), analyses=(), tables_wanted=())


def in_frames(schema: Schema) -> Schema:
    """Return a schema that reads dataframes, whose values are not written in a dialect."""
    return replace(schema, dialect=Dialect(), unit=None, rows_per_unit=1)


def _fine(feature: Feature, design: Design) -> Feature:
    """Return a number on its grid, with edges at what it is compared with."""
    fine = grid_feature(feature)
    unit = grid_of(feature).unit
    marks = []
    for part in design.parts:
        number = parsed_number(part.term.operand) if part.term.sign else None
        if part.feature == feature.name and number is not None:
            marks += [number, number + unit if unit else float(np.nextafter(number, np.inf))]
    inside = [mark for mark in marks if fine.edges[0] < mark < fine.edges[-1]]
    return replace(fine, edges=tuple(sorted({*fine.edges, *inside})))


def _line(
    part: Part, feature: Feature, bounds: Bounds, steps: int, *, response: bool
) -> tuple[Int64, Usable]:
    if part.kind == "categories":
        return _categories(feature, steps, response=response)
    if part.kind == "truth":
        answers = _truth(part, feature)
        usable = ~np.isnan(answers)
        return np.where(usable, answers, 0.0).astype(np.int64)[:, None] * steps, usable
    values = _values(feature)
    usable = ~np.isnan(values)
    low, high = bounds.get(part.feature, _public_bounds(values))
    clipped = np.clip(np.where(usable, values, low), low, high)
    if part.term.function:
        # A value that has no logarithm has none where it is clipped, either.
        clipped = transformed(part.term, clipped)
        usable &= np.isfinite(transformed(part.term, values)) & np.isfinite(clipped)
        if not usable.any():
            return np.zeros((len(values), 1), dtype=np.int64), usable
        low, high = float(clipped[usable].min()), float(clipped[usable].max())
        clipped = np.where(usable, clipped, low)
    return scaled(clipped, low, high, steps)[:, None], usable


def scaled(values: Float64, low: float, high: float, steps: int) -> Int64:
    """Clip numbers to bounds, and scale them to whole steps around the middle."""
    half = max((high - low) / 2, np.finfo(np.float64).tiny)
    middle = low + (high - low) / 2
    clipped = np.clip(values, low, high)
    whole: Int64 = np.rint((clipped - middle) / half * steps).astype(np.int64)
    return np.clip(whole, -steps, steps)


def _values(feature: Feature) -> Float64:
    """Return the number that stands for each code: of a fine bin its middle."""
    if not feature.binned:
        return numeric_values(feature)
    values = np.full(feature.category_count, np.nan)
    edges = np.asarray(feature.edges)
    low, high = edges[:-1], edges[1:].copy()
    unit = _unit(feature)
    values[: feature.bin_count] = low / 2 + np.maximum(high - unit, low) / 2
    return values


def _unit(feature: Feature) -> float:
    if feature.integer:
        return 1.0
    return 0.0 if feature.decimals is None else 10.0**-feature.decimals


def _public_bounds(values: Float64) -> tuple[float, float]:
    return float(np.nanmin(values)), float(np.nanmax(values))


def _truth(part: Part, feature: Feature) -> Float64:
    term = part.term
    if not term.sign:
        answers = np.full(feature.category_count, np.nan)
        answers[:2] = 0.0, 1.0
        return answers
    number = parsed_number(term.operand)
    if not feature.binned or number is None:
        return truth(term, feature)
    answers = np.full(feature.category_count, np.nan)
    answers[: feature.bin_count] = compared(term, np.asarray(feature.edges[:-1]), number)
    return answers


def _categories(feature: Feature, steps: int, *, response: bool) -> tuple[Int64, Usable]:
    """Return a column for every category but the first; a response that is missing has none."""
    count = feature.category_count
    line = np.zeros((count, count - 1), dtype=np.int64)
    line[np.arange(1, count), np.arange(count - 1)] = steps
    usable = np.ones(count, dtype=bool)
    if response:
        usable[feature.bin_count :] = False
        line = line[:, : feature.bin_count - 1]
    return line, usable


class SumCounter:
    """Sums over rows, batch by batch; sums of different rows add up."""

    def __init__(self, design: SumDesign) -> None:
        self._design = design
        self._sums = np.zeros(len(design.factors), dtype=np.int64)

    def add(self, batch: Codes) -> None:
        """Add up one batch of code rows under the schema of the design."""
        design = self._design
        columns = design.values(batch)
        left, right = design.pairs
        if design.scores is not None:
            # Products of two turned columns are not wanted, and might not fit into 64 bits.
            self._sums += columns[:, 1] @ columns[:, right]
            return
        self._sums += (columns.T @ columns)[left, right] * design.factors

    def sums(self) -> Int64:
        """Return the sums so far."""
        return self._sums.copy()

    def arrays(self) -> dict[str, Int64]:
        """Return the sums so far as plain arrays; they change with the next batch."""
        return {"sums": self._sums}

    def absorb(self, arrays: Mapping[str, Int64]) -> None:
        """Add sums of other rows."""
        self._sums += arrays["sums"]

    def __enter__(self) -> SumCounter:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def sums_of(batches: Sequence[Codes], design: SumDesign) -> Int64:
    """Add up rows that are at hand."""
    counter = SumCounter(design)
    for batch in batches:
        counter.add(batch)
    return counter.sums()
