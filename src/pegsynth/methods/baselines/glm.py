"""The design matrix of a regression on categorical features, in compact form.

Every cell (feature, code) has one column and one value, so a row of the matrix is a
handful of (column, value) pairs that its codes name, and the matrix is never written out.
A nominal feature has one indicator per category, none left out, because the coefficients
are penalised. An ordinal or numeric feature may enter as one standardised score instead
(its code, or the middle of its bin), with an indicator for each special code (unknown,
not applicable, missing). The last feature is the intercept: one cell, one column.

Multinomial logistic regressions, one per target: the model of the paper's PMI.

::

    P(x_i = j | x_-i)  proportional to  exp(c_ij + beta_ij . x_-i)

A fitted `GlmModel` is a value: coefficients per target over a common design. Categories
that the fitted rows never showed get a small fixed share each, (0 + 1/2) / (N + C/2), and
the regression divides the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.kernels.logistic import Layout, cell_table, gathered_softmax
from pegsynth.methods.baselines.target_fits import (
    MOST_CATEGORIES,
    Arrays,
    Integers,
    by_target,
    cell_starts,
    check_rows,
    damaged,
    of_targets,
    pack_text,
    take,
    unpack_text,
)

if TYPE_CHECKING:
    from pegsynth.schema import Schema
    from pegsynth.schema.feature import Feature


SCORED_ABOVE = 64
"""Ordinal and numeric features with more categories enter as scores. Indicators follow any shape
and predict better wherever there are rows enough to fit them."""


@dataclass(frozen=True)
class Design:
    """Columns and values of all cells.

    Parameters
    ----------
    cell_start
        First cell of every feature, the intercept last, and the number of cells.
    values
        Value of every cell in its column.
    first_cell
        First cell of every column: the cells of a column follow each other.
    first_column
        First column of every feature, the intercept last, and the number of columns.
    """

    cell_start: Integers
    values: Float64
    first_cell: Integers
    first_column: Integers

    @property
    def columns(self) -> int:
        """Number of columns, the intercept included."""
        return len(self.first_cell) - 1

    def layout(self, target: int) -> Layout:
        """Return what the kernels need to regress one target on all other features."""
        features = len(self.cell_start) - 2
        others = [feature for feature in range(features) if feature != target]
        order = np.array([features, *others], dtype=np.int64)
        return Layout(self.cell_start, self.values, self.first_cell, self.first_column, order)

    def own_columns(self, target: int) -> slice:
        """Return the columns of one feature."""
        return slice(int(self.first_column[target]), int(self.first_column[target + 1]))

    def arrays(self) -> Arrays:
        """Return the arrays that the schema does not imply."""
        return {
            "design_values": self.values,
            "design_first_cell": self.first_cell,
            "design_first_column": self.first_column,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, schema: Schema) -> Self:
        """Rebuild a design; refuse arrays that point outside the schema's cells."""
        starts = _with_intercept(cell_starts(schema))
        values = take(arrays, "design_values", np.float64)
        first_cell = take(arrays, "design_first_cell", np.int64)
        first_column = take(arrays, "design_first_column", np.int64)
        sound = (
            len(values) == starts[-1]
            and bool(np.isfinite(values).all())
            and len(first_column) == len(starts)
            and len(first_cell) > 1
            and _climbs(first_cell, int(starts[-1]))
            and _climbs(first_column, len(first_cell) - 1)
        )
        # Features begin at the same cell whether one counts by columns or by codes.
        if not sound or not np.array_equal(first_cell[first_column], starts):
            raise damaged()
        return cls(starts, values, first_cell, first_column)


def make_design(
    codes: Codes, schema: Schema, *, weights: Float64, scored_above: int = SCORED_ABOVE
) -> Design:
    """Lay out the columns of a schema, standardising scores over the rows given.

    Parameters
    ----------
    codes, weights
        Rows over which scores get mean 0 and variance 1, special codes aside.
    scored_above
        From how many categories on ordinal and numeric features enter as scores.
    """
    values: list[Float64] = []
    sizes: list[int] = []
    first_column = [0]
    for index, feature in enumerate(schema.features):
        if feature.kind != "nominal" and feature.category_count > scored_above:
            held, cells = _scored(feature, codes[:, index], weights)
        else:
            held, cells = _indicators(feature)
        values.append(held)
        sizes.extend(cells)
        first_column.append(len(sizes))
    return Design(
        _with_intercept(cell_starts(schema)),
        np.concatenate([*values, np.ones(1)]),
        np.concatenate([[0], np.cumsum([*sizes, 1])]).astype(np.int64),
        np.array([*first_column, len(sizes) + 1], dtype=np.int64),
    )


def row_columns(codes: Codes) -> NDArray[np.int32]:
    """Return codes feature by feature, with a line of zeros for the intercept."""
    out = np.zeros((codes.shape[1] + 1, codes.shape[0]), dtype=np.int32)
    out[:-1] = codes.T
    return out


def _indicators(feature: Feature) -> tuple[Float64, list[int]]:
    count = feature.category_count
    if count > MOST_CATEGORIES:
        raise ParameterError(
            f"feature {feature.name!r} has {count:,} categories, each of which would be a column "
            f"of the regression; at most {MOST_CATEGORIES:,} are fitted. Group its categories in "
            "the schema, or use a method of the pegs family"
        )
    return np.ones(count), [1] * count


def _scored(feature: Feature, codes: Codes, weights: Float64) -> tuple[Float64, list[int]]:
    bins = feature.bin_count
    special = feature.category_count - bins
    if bins == 0:
        return _indicators(feature)
    edges = np.asarray(feature.edges)
    raw = 0.5 * (edges[:-1] + edges[1:]) if feature.binned else np.arange(float(bins))
    mass = np.bincount(codes, weights, minlength=feature.category_count)[:bins].astype(float)
    return np.concatenate([_standardised(raw, mass), np.ones(special)]), [bins, *[1] * special]


def _standardised(raw: Float64, mass: Float64) -> Float64:
    """Centre and scale; a score that does not vary is 0 everywhere."""
    total = mass.sum()
    if total <= 0:
        return np.zeros(len(raw))
    centred = raw - (mass @ raw) / total
    variance = (mass @ centred**2) / total
    # Rounding leaves a trace of variance where all rows hold one category.
    if np.count_nonzero(mass) < 2 or variance <= 0:
        return np.zeros(len(raw))
    scaled: Float64 = centred / np.sqrt(variance)
    return scaled


def _with_intercept(starts: Integers) -> Integers:
    return np.append(starts, starts[-1] + 1)


def _climbs(starts: Integers, end: int) -> bool:
    return bool(starts[0] == 0 and starts[-1] == end and (np.diff(starts) > 0).all())


@dataclass(frozen=True)
class Regression:
    """The regression of one target on all other features.

    Parameters
    ----------
    coefficients
        One line per column of the design, the intercept last; one column per category of
        the target. An intercept of minus infinity marks a category that never occurred.
    unseen
        Share of each category that never occurred.
    penalty
        The penalty that was used, lambda of the elastic net.
    """

    coefficients: Float64 = field(repr=False)
    unseen: float
    penalty: float


@dataclass(frozen=True)
class GlmModel:
    """Regressions of some or all features on the others.

    Parameters
    ----------
    schema
        The public codebook.
    design
        How features enter as predictors.
    regressions
        By target feature.
    note
        How the penalty was chosen.
    """

    schema: Schema
    design: Design = field(repr=False)
    regressions: Mapping[int, Regression] = field(repr=False)
    note: str = ""

    def probabilities(self, target: int, rows: Codes) -> Float64:
        """Return the probabilities of the target's categories, one line per row of codes."""
        if target not in self.regressions:
            raise ParameterError(f"feature {target} was not among the targets of this model")
        check_rows(rows, self.schema, ignore=target)
        regression = self.regressions[target]
        layout = self.design.layout(target)
        out = np.empty((len(rows), regression.coefficients.shape[1]))
        gathered_softmax(
            row_columns(rows), layout.cell_start, layout.order, self._tables[target], out
        )
        never = np.isneginf(regression.coefficients[-1])
        if never.any():
            out *= 1.0 - regression.unseen * np.count_nonzero(never)
            out[:, never] = regression.unseen
        return out

    @cached_property
    def _tables(self) -> dict[int, Float64]:
        """Contribution of every cell to the linear predictor of every target."""
        tables = {}
        for target, regression in self.regressions.items():
            table = np.zeros((int(self.design.cell_start[-1]), regression.coefficients.shape[1]))
            cell_table(self.design.layout(target), regression.coefficients, table)
            tables[target] = table
        return tables

    def arrays(self) -> Arrays:
        """Return everything the model holds as flat arrays."""
        lines = {
            target: {
                "coefficients": line.coefficients.ravel(),
                "figures": np.array([line.unseen, line.penalty]),
            }
            for target, line in self.regressions.items()
        }
        return {**self.design.arrays(), **by_target(lines), "note": pack_text(self.note)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, schema: Schema) -> Self:
        """Rebuild a model from `arrays`, refusing what does not belong to the schema."""
        design = Design.from_arrays(arrays, schema)
        regressions = {}
        for target, held in of_targets(arrays, schema):
            flat, figures = (take(held, name, np.float64) for name in ("coefficients", "figures"))
            if len(flat) != design.columns * schema.category_counts[target] or len(figures) != 2:
                raise damaged()
            line = Regression(flat.reshape(design.columns, -1), *figures.tolist())
            _check_coefficients(line.coefficients, line.unseen)
            regressions[target] = line
        return cls(schema, design, regressions, unpack_text(take(arrays, "note", np.uint8)))


def _check_coefficients(held: Float64, unseen: float) -> None:
    never = np.isneginf(held[-1])
    finite = np.isfinite(held[:-1]).all() and np.isfinite(held[-1][~never]).all()
    shares = unseen >= 0.0 and unseen * np.count_nonzero(never) < 1.0
    if never.all() or not finite or not shares:
        raise damaged()
