"""Whether two columns of a weighted table have to do with each other: Rao and Scott's test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from pegsynth.arrays import Float64
from pegsynth.errors import ParameterError
from pegsynth.inference.pooled_result import Pooled, WaldTest
from pegsynth.procedures.replicating import replicated
from pegsynth.procedures.weighted_statistics import Estimates, Prepared, Statistic, groups_of


@dataclass(frozen=True, eq=False)
class RaoScott:
    """A test of independence.

    Parameters
    ----------
    test
        F, its degrees of freedom and p.
    chi_square
        Pearson's statistic of the weighted table, scaled to its number of rows.
    cells
        The proportion of every cell.
    """

    test: WaldTest
    chi_square: float
    cells: Pooled

    @property
    def pvalue(self) -> float:
        """The chance of an F at least as large where the columns are independent."""
        return self.test.pvalue

    def __str__(self) -> str:
        return f"Rao-Scott test of independence: {self.test}"


def rao_scott(first: str, second: str, frame: Any, **options: Any) -> RaoScott:
    """Test whether two columns of a table with replicate weights are independent.

    Parameters
    ----------
    first, second
        Names of the columns; rows with a missing value are left out.
    frame, options
        As for `replicated`.

    Notes
    -----
    Rao and Scott (1984), On chi-squared tests for multiway contingency tables with cell
    proportions estimated from survey data, The Annals of Statistics 12(1), 46-60,
    doi:10.1214/aos/1176346391: the second-order correction, compared with F as
    Thomas and Rao (1987) do, and as svychisq of the R package survey does by default.
    """
    sizes: list[int] = []

    def prepare(table: pl.DataFrame, *_: object) -> Prepared:
        rows, columns = groups_of(table, [first], [second]), groups_of(table, [second], [first])
        wide, kept = len(columns.labels), rows.codes >= 0
        sizes[:] = [len(rows.labels), wide, int(kept.sum())]
        if min(sizes[:2]) < 2:
            raise ParameterError(f"{first} and {second} need two values each to be compared")
        cells = rows.codes * wide + columns.codes
        names = [f"{a}{b}" for a in rows.labels for b in columns.labels]

        def estimates(weights: Float64) -> Estimates:
            sums = np.bincount(cells[kept], weights[kept], minlength=len(names))
            return dict(zip(names, (sums / sums.sum()).tolist(), strict=True))

        return Prepared(estimates)

    found = replicated(Statistic(prepare, f"{first} + {second}"), frame, **options)
    height, width, count = sizes
    shares = np.atleast_1d(found.combined.estimate)
    table = shares.reshape(height, width)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    chi_square = count * float(((table - expected) ** 2 / expected).sum())
    contrasts = _interactions(height, width)
    inverse = np.divide(1.0, shares, out=np.zeros_like(shares), where=shares > 0)
    weighted = contrasts * inverse[:, np.newaxis]
    plain = contrasts.T @ weighted / count
    spread = weighted.T @ np.asarray(found.combined.covariance) @ weighted
    effects = np.linalg.pinv(plain) @ spread
    whole = float(np.trace(effects))
    freedom = whole**2 / float(np.trace(effects @ effects))
    degrees = float(np.min(found.combined.degrees_of_freedom))
    test = WaldTest.of(chi_square / whole, freedom, freedom * degrees)
    return RaoScott(test, chi_square, found)


def _interactions(height: int, width: int) -> Float64:
    """Return a basis of the interactions of a table, a column each."""
    return np.asarray(np.kron(_centred(height), _centred(width)))


def _centred(size: int) -> Float64:
    """Return columns that add up to 0."""
    found = np.eye(size)[:, 1:] - 1.0 / size
    return np.asarray(found)
