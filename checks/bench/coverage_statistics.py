"""The statistics whose intervals are measured: shares, means, cells, differences, slopes.

Each is computed from a table of counts or from sums of products, so that hundreds of them
take a second. They are chosen by the population, not by any sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.unsignedinteger]

RARE = 0.01


@dataclass(frozen=True)
class Statistic:
    """A sum over cells of a pair, or its ratio to another: all that is measured here.

    Parameters
    ----------
    group
        What kind of statistic it is.
    features, shape
        The features of its table, and the categories of each.
    top, bottom
        Weights of the cells in the numerator and in the denominator; a second ratio may be
        subtracted.
    cell
        The categories of a share, for its floor; empty for anything else.
    """

    group: str
    features: tuple[int, ...]
    shape: tuple[int, ...]
    top: Array
    bottom: Array | None = None
    less: tuple[Array, Array] | None = None
    cell: tuple[int, ...] = ()

    def counted(self, codes: Codes, weights: Array | None = None) -> Array:
        """Count rows, or add up their weights, by the cells of the table."""
        keys = np.ravel_multi_index(tuple(codes[:, each] for each in self.features), self.shape)
        cells = np.bincount(keys, weights, int(np.prod(self.shape)))
        return cells.astype(float).reshape(self.shape)

    def of(self, table: Array) -> float:
        """Return its value."""
        value = self._ratio(table, self.top, self.bottom)
        return value - self._ratio(table, *self.less) if self.less else value

    def variance(self, table: Array, rows: int) -> float:
        """Return the usual variance for independent rows, as an analyst would take it."""
        shares = table / table.sum()
        first = self._influence(shares, self.top, self.bottom)
        if self.less:
            first = first - self._influence(shares, *self.less)
        mean = float((shares * first).sum())
        return float((shares * (first - mean) ** 2).sum()) / rows

    @staticmethod
    def _ratio(table: Array, top: Array, bottom: Array | None) -> float:
        whole = table.sum() if bottom is None else (table * bottom).sum()
        return float((table * top).sum() / max(whole, 1e-300))

    def _influence(self, shares: Array, top: Array, bottom: Array | None) -> Array:
        if bottom is None:
            return top
        whole = float((shares * bottom).sum())
        if whole == 0:
            # A group without rows: its share counts as 0 without a variance, and as a miss.
            return np.zeros_like(top)
        return (top - self._ratio(shares, top, bottom) * bottom) / whole


@dataclass(frozen=True)
class Slope:
    """A coefficient of a linear regression of one feature's codes on those of two others.

    Parameters
    ----------
    features
        The response and the explanatory features.
    place
        Which of the explanatory features, from 0.
    """

    features: tuple[int, int, int]
    place: int
    group: str = "linear regressions"
    cell: tuple[int, ...] = ()

    def counted(self, codes: Codes, weights: Array | None = None) -> Array:
        """Return the sums of products of 1, the explanatory features and the response."""
        response, *others = (codes[:, feature].astype(float) for feature in self.features)
        columns = np.stack([np.ones(len(codes)), *others, response])
        return (columns if weights is None else columns * weights) @ columns.T

    def of(self, products: Array) -> float:
        """Return the coefficient."""
        return float(np.linalg.solve(products[:3, :3], products[:3, 3])[self.place + 1])

    def variance(self, products: Array, rows: int) -> float:
        """Return the usual variance, for errors of one variance."""
        inverse = np.linalg.inv(products[:3, :3])
        left = products[3, 3] - products[:3, 3] @ inverse @ products[:3, 3]
        return float(inverse[self.place + 1, self.place + 1] * left) / rows


def statistics(
    truth: Codes, sizes: tuple[int, ...], ordered: list[bool]
) -> list[Statistic | Slope]:
    """Return what is estimated; chosen by the population, not by any sample."""
    found: list[Statistic | Slope] = []
    for feature, size in enumerate(sizes):
        shares = np.bincount(truth[:, feature], minlength=size) / len(truth)
        for code in np.flatnonzero(shares > 0):
            group = "shares below 1 %" if shares[code] < RARE else "shares above 1 %"
            found.append(
                Statistic(group, (feature,), (size,), _cell((size,), (code,)), cell=(int(code),))
            )
        if ordered[feature]:
            found.append(
                Statistic("means of codes", (feature,), (size,), np.arange(size, dtype=float))
            )
    for pair in combinations(range(len(sizes)), 2):
        found += _of_pair(truth, pair, (sizes[pair[0]], sizes[pair[1]]))
    for chosen in combinations(np.flatnonzero(ordered).tolist(), 3):
        for response in chosen:
            others = [feature for feature in chosen if feature != response]
            found += [Slope((response, *others), place) for place in (0, 1)]
    return found


def _of_pair(truth: Codes, pair: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[Statistic]:
    table = Statistic("", pair, shape, np.zeros(shape)).counted(truth) / len(truth)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    away = np.where(table >= RARE, np.abs(table - np.outer(rows, columns)), -1.0)
    for place, group in (
        (-1, "most dependent cell"),
        (len(away.ravel()) * 3 // 4, "ordinary cell"),
    ):
        cell = np.unravel_index(np.argsort(away, axis=None)[place], shape)
        if table[cell] >= RARE:
            code = tuple(int(each) for each in cell)
            yield Statistic(group, pair, shape, _cell(shape, cell), cell=code)
    first, second = np.argsort(-rows)[:2]
    top = int(np.argmax(columns))
    ones = [np.zeros(shape), np.zeros(shape)]
    ones[0][first, :], ones[1][second, :] = 1.0, 1.0
    yield Statistic(
        "differences of shares",
        pair,
        shape,
        _cell(shape, (first, top)),
        ones[0],
        (_cell(shape, (second, top)), ones[1]),
    )


def _cell(shape: tuple[int, ...], code: tuple[object, ...]) -> Array:
    cell = np.zeros(shape)
    cell[code] = 1.0
    return cell
