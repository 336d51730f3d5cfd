"""A log-linear model of a small contingency table, by iterative proportional fitting.

`fit_loglinear` finds the table of largest entropy that agrees with the data on chosen
margins, by default all pairs of features. Every cell is listed, so the table must be
small. The fit has no price of its own (R9): drawn as it is the ledger says "none". With
virtual rows it is R8 on the vector of cells: P(j) = (floor(s g_j) + p)/(W + C p), one draw
per row, in exact integers (R15).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.kernels.arrays import Codes as AnyCodes
from pegsynth.kernels.arrays import Float64
from pegsynth.kernels.uniform import REJECTED, bounded_array
from pegsynth.methods.prior import MOST_TOTAL, Weights
from pegsynth.methods.seed_rows import WORD_BITS, Codes, WordSource
from pegsynth.random import Words
from pegsynth.schema.rules import Rule

MOST_CELLS = 1 << 22
MOST_FEATURES = 32
_FINEST = 1 << 52
_SLACK = 64
_MOST_ROUNDS = 100
_TOLERANCE = 1e-6
"""Fitting stops when no fitted margin is further than this from its goal."""


@dataclass(frozen=True)
class LogLinearTable:
    """Fitted probabilities of every cell.

    Parameters
    ----------
    probabilities
        g, one number per cell, the last feature turning fastest. Confidential.
    category_counts
        C_1 .. C_M.
    """

    probabilities: Float64 = field(repr=False)
    category_counts: tuple[int, ...]

    def draw(
        self,
        rows: int,
        *,
        numerator: int,
        scale: int,
        words: Words,
        rules: Sequence[Rule] = (),
    ) -> Codes:
        """Return `rows` independent draws, one of R8 each.

        Parameters
        ----------
        numerator, scale
            alpha = numerator/scale in R8; 0 leaves the fit as it is, and no claim.
        rules
            Public rules; cells that break one have weight 0 (R18).
        """
        weights = cell_weights(self.probabilities, numerator, scale)
        blocked = blocked_cells(rules, self.category_counts)
        weights[blocked] = 0
        if not weights.any():
            weights[~blocked] = 1  # unperturbed, and all that was fitted breaks a rule
        if not weights.any():
            raise SchemaError("the schema's rules forbid every row; list fewer categories")
        cells = draw_cells(np.cumsum(weights, dtype=np.uint64), rows, words.take)
        return np.stack(np.unravel_index(cells, self.category_counts), axis=1).astype(np.uint32)


def fit_loglinear(
    codes: AnyCodes,
    category_counts: Sequence[int],
    margins: Sequence[tuple[int, ...]] | None = None,
) -> LogLinearTable:
    """Fit the table that agrees with the data on `margins` and is otherwise as flat as it can be.

    Parameters
    ----------
    margins
        Tuples of feature indices in order; all pairs when None.
    """
    shape = tuple(category_counts)
    check_size(shape)
    fitted = np.full(shape, 1.0 / math.prod(shape))
    if len(codes):
        if margins is None:
            margins = list(combinations(range(len(shape)), min(2, len(shape))))
        goals = [(features, _margin(codes, shape, features)) for features in margins]
        for _ in range(_MOST_ROUNDS):
            if max(_scale_to(fitted, features, goal) for features, goal in goals) <= _TOLERANCE:
                break
    return LogLinearTable(fitted.ravel(), shape)


def check_size(shape: tuple[int, ...]) -> None:
    """Refuse a table with too many cells to list."""
    cells = math.prod(shape)
    if cells > MOST_CELLS or len(shape) > MOST_FEATURES:
        raise ParameterError(
            f"the full table has {cells} cells over {len(shape)} features; a log-linear fit lists "
            f"every cell and takes at most {MOST_CELLS} cells over {MOST_FEATURES} features; "
            "leave features out, merge categories, or draw by direct counting"
        )


def _margin(codes: AnyCodes, shape: tuple[int, ...], features: tuple[int, ...]) -> Float64:
    """Return the shares of a margin, shaped to be multiplied into the full table."""
    sizes = tuple(shape[feature] for feature in features)
    flat = np.ravel_multi_index(tuple(codes[:, f].astype(np.int64) for f in features), sizes)
    shares = np.bincount(flat, minlength=math.prod(sizes)) / len(codes)
    return shares.reshape([size if f in features else 1 for f, size in enumerate(shape)])


def _scale_to(fitted: Float64, features: tuple[int, ...], goal: Float64) -> float:
    """Make one margin of the fit meet its goal, in place; return how far off it was."""
    others = tuple(f for f in range(fitted.ndim) if f not in features)
    found = fitted.sum(axis=others, keepdims=True)
    # A margin at 0 stays at 0, whatever factor its cells are given.
    fitted *= np.divide(goal, found, out=np.zeros_like(goal), where=found > 0)
    return float(np.abs(goal - found).max())


def check_alpha(cells: int, numerator: int, scale: int) -> None:
    """Refuse virtual rows that do not fit in 64 bits over all cells."""
    if numerator < 0 or scale < 1 or scale + cells * numerator >= MOST_TOTAL:
        raise ParameterError(
            f"alpha = {numerator}/{scale} over {cells} cells does not fit in 64 bits; "
            "raise epsilon or draw fewer rows"
        )


def cell_weights(probabilities: Float64, numerator: int, scale: int) -> Weights:
    """Return floor(s g_j) + p for every cell, at the finest s and p of the same alpha = p/s (R8).

    Many cells share s, so s and p are multiplied by the same power of two as far as 64-bit
    totals allow: alpha and the price stay what they are, and less is lost to the floor.
    """
    cells = len(probabilities)
    check_alpha(cells, numerator, scale)
    while 2 * (scale + cells * numerator) < MOST_TOTAL and 2 * scale <= _FINEST:
        scale, numerator = 2 * scale, 2 * numerator
    weights = np.floor(probabilities * float(scale)).astype(np.uint64)
    # Fitted shares are floating numbers and may sum to a little above 1. R8 needs W <= s.
    excess = int(weights.sum()) - scale
    while excess > 0:
        largest = int(weights.argmax())
        cut = min(excess, int(weights[largest]))
        weights[largest] -= np.uint64(cut)
        excess -= cut
    return weights + np.uint64(numerator)


def blocked_cells(rules: Sequence[Rule], category_counts: tuple[int, ...]) -> NDArray[np.bool_]:
    """Say for every cell whether it breaks a rule."""
    blocked = np.zeros(category_counts, dtype=bool)
    for rule in rules:
        forbid = dict(rule.forbidden)
        parts = [
            sorted(forbid[feature]) if feature in forbid else range(size)
            for feature, size in enumerate(category_counts)
        ]
        blocked[np.ix_(*parts)] = True
    return blocked.ravel()


def draw_cells(
    cumulative: Weights, count: int, words: WordSource, bits: np.uint64 = WORD_BITS
) -> NDArray[np.int64]:
    """Return `count` cells drawn in proportion to weights, exactly (R15)."""
    chosen = np.empty(0, dtype=np.uint64)
    while len(chosen) < count:
        drawn = bounded_array(words(count - len(chosen) + _SLACK), cumulative[-1], bits)
        chosen = np.concatenate([chosen, drawn[drawn != REJECTED]])
    return np.searchsorted(cumulative, chosen[:count], side="right").astype(np.int64)
