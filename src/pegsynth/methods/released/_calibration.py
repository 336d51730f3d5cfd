"""Weights tilted so that sums over rows agree with measured ones (R26).

Of all weights that give the wanted sums those are taken that are nearest to the given ones, so
that everything else moves as little as possible: w ~ w_0 exp(lambda f), where lambda solves a
concave problem of as many unknowns as there are sums. The noise of the sums enters as a penalty.
All of it is post-processing of what was paid for.

Synthetic rows whose values agree with the sums of declared analyses (R26).

Rows are decoded first: what they add is read off their *values*, on the same fine bins and with
the same bounds as the original's. Weights are then tilted to the published sums, and rows chosen by
them out of more than are wanted. Replicate weights of the chosen rows are tilted by fresh noise on
the sums (R28).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.kernels.pool_loops import shuffled, uniforms
from pegsynth.methods.released._declared import codes_of, published_designs
from pegsynth.methods.released._sum_design import SumDesign
from pegsynth.methods.released._values import Released
from pegsynth.random import Words
from pegsynth.schema import Schema

PENALTY = 0.002
"""How much of the noise's variance is held against a tilt. With all of it weights would stay at
the given ones where these are as likely as the noise; they are not that likely."""
MOST_STEPS = 30
_MOST_EXPONENT = 1.0
_CLOSE = 1e-9
_RIDGE = 1e-10


class Products(Protocol):
    """What every row adds to every sum, a part of the rows at a time."""

    @property
    def size(self) -> int:
        """Number of sums."""
        ...

    def parts(self) -> Iterator[tuple[slice, Float64]]:
        """Yield rows, and what they add."""
        ...


def calibrated(
    weights: Float64,
    products: Products,
    sums: Float64,
    deviations: Float64,
    start: Float64 | None = None,
) -> tuple[Float64, Float64]:
    """Return weights of the same total whose sums are close to the measured ones, and lambda.

    Parameters
    ----------
    weights
        Weights of the rows, as the published tables have them.
    products
        What every row adds.
    sums, deviations
        The measured sums, and the deviation of their noise.
    start
        Where to look for lambda first.
    """
    total = float(weights.sum())
    penalty = PENALTY * deviations**2 / total
    wanted = sums / total
    tilt = np.zeros(products.size) if start is None else start
    state = _State.of(weights, products, tilt)
    for _ in range(MOST_STEPS):
        slope = wanted - state.mean - penalty * tilt
        curve = state.spread + np.diag(penalty)
        # Sums of columns that are the same in all rows can be moved by no tilt.
        curve[np.diag_indices_from(curve)] += _RIDGE * (1 + np.trace(curve) / len(curve))
        step: Float64 = np.linalg.solve(curve, slope).astype(np.float64)
        gain = float(slope @ step)
        if gain < _CLOSE:
            break
        state, tilt = _moved(weights, products, state, tilt, step, wanted, penalty, gain)
    return state.weights * (total / state.weights.sum()), tilt


def _moved(
    weights: Float64,
    products: Products,
    state: _State,
    tilt: Float64,
    step: Float64,
    wanted: Float64,
    penalty: Float64,
    gain: float,
) -> tuple[_State, Float64]:
    """Take a step of Newton, shorter where it would not help."""
    before = _value(state, tilt, wanted, penalty)
    length = min(1.0, _MOST_EXPONENT / max(float(np.abs(step).max()) * 1e-2, np.sqrt(gain)))
    while True:
        tried = tilt + length * step
        found = _State.of(weights, products, tried)
        if _value(found, tried, wanted, penalty) >= before or length < _CLOSE:
            return found, tried
        length /= 2


def _value(state: _State, tilt: Float64, wanted: Float64, penalty: Float64) -> float:
    """Return what is to be made large."""
    return float(tilt @ wanted - state.logarithm - 0.5 * (penalty * tilt**2).sum())


class _State:
    """Weights under a tilt, their logarithm, and mean and spread of what rows add."""

    def __init__(self, weights: Float64, logarithm: float, mean: Float64, spread: Float64) -> None:
        self.weights, self.logarithm, self.mean, self.spread = weights, logarithm, mean, spread

    @classmethod
    def of(cls, weights: Float64, products: Products, tilt: Float64) -> _State:
        exponents = np.empty(len(weights))
        for rows, added in products.parts():
            exponents[rows] = added @ tilt
        # The largest must not underflow, or no weight is left to be scaled.
        highest = float(exponents.max()) if len(exponents) else 0.0
        tilted = weights * np.exp(exponents - highest)
        whole = float(tilted.sum())
        mean, square = np.zeros(products.size), np.zeros((products.size, products.size))
        for rows, added in products.parts():
            heavy = added * tilted[rows, None]
            mean += heavy.sum(axis=0)
            square += added.T @ heavy
        mean /= whole
        logarithm = highest + float(np.log(whole / weights.sum()))
        return cls(tilted, logarithm, mean, square / whole - np.outer(mean, mean))


OVERSAMPLED = 2
"""Rows that are decoded for every row of a table."""
CALIBRATED_ROWS = 1 << 19
"""Rows of a table that are chosen together."""
_SORTED_BY = 4
_PART = 1 << 13


@dataclass(frozen=True)
class Calibration:
    """The declared analyses of a published model.

    Parameters
    ----------
    designs
        What a row adds to the sums of each.
    """

    designs: tuple[SumDesign, ...]

    @classmethod
    def of(cls, schema: Schema, released: Released) -> Calibration | None:
        """Return the calibration of a model; None if it declares nothing."""
        designs = published_designs(schema, released.sums) if released.sums else ()
        return cls(tuple(designs)) if designs else None

    def added(self, frame: pl.DataFrame) -> Added:
        """Return what the rows of a table of values add."""
        lines = (design.values(codes_of(design, frame)).astype(np.int32) for design in self.designs)
        return Added(self.designs, tuple(lines))

    def targets(self, released: Released) -> tuple[Float64, Float64]:
        """Return the sums of a model or a replicate, and the deviations of their noise."""
        pairs = list(zip(self.designs, released.sums, strict=True))
        sums = [each.sums / design.scale() for design, each in pairs]
        noise = [each.deviation / design.scale() for design, each in pairs]
        return np.concatenate(sums), np.concatenate(noise)

    def replicated(
        self, frame: pl.DataFrame, lines: Float64, moved: Float64, noise: Sequence[Float64]
    ) -> Float64:
        """Return replicate weights, each tilted to sums of other rows with other noise.

        Parameters
        ----------
        lines
            A line of weights for every replicate, each with the same mean.
        moved
            The weights that drawing the original's rows again would give, which have no noise yet.
        noise
            For every analysis the noise on its sums, a line for every replicate, in units of a
            row's mean weight.
        """
        added = self.added(frame)
        scales = [design.scale() for design in self.designs]
        fresh = np.concatenate([n / s for n, s in zip(noise, scales, strict=True)], axis=1)
        found = []
        for line, other, away in zip(lines, moved, fresh, strict=True):
            sums = added.whole(other) * (line.sum() / other.sum()) + away
            found.append(calibrated(line, added, sums, fresh.std(axis=0))[0])
        return np.stack(found)

    def chosen(
        self,
        frame: pl.DataFrame,
        codes: Codes,
        rows: int,
        total: float,
        released: Released,
        words: Words,
    ) -> Int64:
        """Choose rows of a larger table, so that their values agree with the sums.

        They are chosen at equal steps of their weights along codes that come first, and leave
        in random order.

        Parameters
        ----------
        codes
            The codes of the same rows, features that were drawn first standing first.
        total
            The number of original rows, as published.
        """
        sums, noise = self.targets(released)
        even = np.full(frame.height, total / max(frame.height, 1))
        weights, _ = calibrated(even, self.added(frame), sums, noise)
        order = np.lexsort(codes.T[:_SORTED_BY][::-1])
        reached = np.cumsum(weights[order])
        offset = uniforms(words.take(1))[0]
        points = (np.arange(rows) + offset) * (reached[-1] / max(rows, 1))
        places = np.minimum(np.searchsorted(reached, points, side="right"), len(even) - 1)
        found: Int64 = order[places][shuffled(words.take(rows))]
        return found


@dataclass(frozen=True)
class Added:
    """What rows add to all sums, each as a product of numbers in [-1, 1]."""

    designs: tuple[SumDesign, ...]
    lines: tuple[np.ndarray[tuple[int, int], np.dtype[np.int32]], ...]

    @property
    def size(self) -> int:
        """Number of sums."""
        return sum(len(design.factors) for design in self.designs)

    def parts(self) -> Iterator[tuple[slice, Float64]]:
        """Yield rows, and what they add."""
        for start in range(0, len(self.lines[0]), _PART):
            rows = slice(start, start + _PART)
            found = []
            for design, line in zip(self.designs, self.lines, strict=True):
                added = design.multiplied(line[rows].astype(np.int64))
                found.append(added / float(design.steps) ** 2)
            yield rows, np.concatenate(found, axis=1)

    def whole(self, times: Float64) -> Float64:
        """Return the sums of rows that count so many times."""
        whole = np.zeros(self.size)
        for rows, added in self.parts():
            whole += times[rows] @ added
        return whole

    def deviations(self, times: Float64) -> list[Float64]:
        """Return the same by analysis, in the units of published sums."""
        ends = np.cumsum([len(design.factors) for design in self.designs])[:-1]
        scales = (design.scale() for design in self.designs)
        parts = np.split(self.whole(times), ends)
        return [part * scale for part, scale in zip(parts, scales, strict=True)]
