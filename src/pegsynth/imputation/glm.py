"""Multinomial logistic regressions, one per target: the model of the paper's PMI.

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
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Codes, Float64
from pegsynth.errors import ParameterError
from pegsynth.imputation.design import Design, row_columns
from pegsynth.imputation.protocol import Arrays, check_rows, damaged, pack_text, take, unpack_text
from pegsynth.kernels.logistic import cell_table, gathered_softmax

if TYPE_CHECKING:
    from pegsynth.schema import Schema


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
        targets = sorted(self.regressions)
        lines = [self.regressions[target] for target in targets]
        return {
            **self.design.arrays(),
            "targets": np.array(targets, dtype=np.int64),
            "coefficients": np.concatenate(
                [np.empty(0), *[line.coefficients.ravel() for line in lines]]
            ),
            "unseen": np.array([line.unseen for line in lines]),
            "penalties": np.array([line.penalty for line in lines]),
            "note": pack_text(self.note),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], schema: Schema) -> Self:
        """Rebuild a model from `arrays`, refusing what does not belong to the schema."""
        design = Design.from_arrays(arrays, schema)
        targets = take(arrays, "targets", np.int64)
        flat = take(arrays, "coefficients", np.float64)
        unseen = take(arrays, "unseen", np.float64)
        penalties = take(arrays, "penalties", np.float64)
        if not len(targets) == len(unseen) == len(penalties) == len(set(targets.tolist())):
            raise damaged()
        if not ((targets >= 0) & (targets < len(schema.features))).all():
            raise damaged()
        counts = [schema.category_counts[target] for target in targets]
        if len(flat) != design.columns * sum(counts):
            raise damaged()
        ends = np.cumsum([design.columns * count for count in counts])
        parts = np.split(flat, ends[:-1]) if counts else []
        regressions = {}
        for target, part, share, penalty in zip(targets, parts, unseen, penalties, strict=True):
            held = part.reshape(design.columns, -1)
            _check_coefficients(held, share)
            regressions[int(target)] = Regression(held, float(share), float(penalty))
        return cls(schema, design, regressions, unpack_text(take(arrays, "note", np.uint8)))


def _check_coefficients(held: Float64, unseen: float) -> None:
    never = np.isneginf(held[-1])
    finite = np.isfinite(held[:-1]).all() and np.isfinite(held[-1][~never]).all()
    shares = unseen >= 0.0 and unseen * np.count_nonzero(never) < 1.0
    if never.all() or not finite or not shares:
        raise damaged()
