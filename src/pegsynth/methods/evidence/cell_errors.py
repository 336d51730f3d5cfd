"""What a published cell says of its count, given what everything else expects of it (R36).

A cell that is rounded or suppressed lies between two numbers, each as likely before anything else
is known. Together with an expectation of known variance it is a truncated normal distribution,
whose mean and variance an unbiased measurement with normal error would have given as well. That
measurement stands for the cell in the joint fit. Where the expectation is sharp the bounds say
little; where it is vague the cell counts as its middle, with the variance of the rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from pegsynth.errors import DataError
from pegsynth.kernels.arrays import Float64
from pegsynth.schema.schema import Schema
from pegsynth.tables.published_tables import PublishedTable

LEAST_VARIANCE = 1e-6
"""Of a cell that is known exactly, so that no division fails."""
_FARTHEST = 30.0
_NOTHING = 1e12
_HALF = 0.5
_CERTAIN = 6.0
"""Standard errors between two estimates that nobody would take for chance."""
_SHOWN = 3


def truncated_moments(
    low: Float64, high: Float64, mean: Float64, variance: Float64
) -> tuple[Float64, Float64]:
    """Return mean and variance of a normal distribution within bounds."""
    from scipy.special import log_ndtr

    spread = np.sqrt(variance)
    # Far outside only the nearer bound matters, and how far hardly does.
    mean = np.clip(mean, low - _FARTHEST * spread, high + _FARTHEST * spread)
    left, right = (low - mean) / spread, (high - mean) / spread
    # The tail on the left is the one that logarithms hold.
    turned = left > 0
    left, right = np.where(turned, -right, left), np.where(turned, -left, right)
    upper = log_ndtr(right)
    inside = upper + np.log1p(-np.exp(np.minimum(log_ndtr(left) - upper, -1e-12)))
    root = 0.5 * math.log(2 * math.pi)
    at_left = np.exp(-0.5 * left**2 - root - inside)
    at_right = np.exp(-0.5 * np.minimum(right, 1e6) ** 2 - root - inside)
    shift = at_left - at_right
    bend = np.where(np.isfinite(left), left, 0) * at_left
    bend -= np.where(np.isfinite(right), right, 0) * at_right
    moved = np.where(turned, -shift, shift)
    within = np.clip(1 + bend - shift**2, 1e-9, 1.0)
    return np.clip(mean + spread * moved, low, high), variance * within


def as_measured(table: PublishedTable, mean: Float64, variance: Float64) -> tuple[Float64, Float64]:
    """Return the measurement, and the variance of its error, that stands for every cell."""
    estimated = table.variance > 0
    exact = (table.low == table.high) & ~estimated
    variance = np.maximum(variance, LEAST_VARIANCE)
    ends = np.maximum(table.low - _HALF, 0.0), table.high + _HALF
    middle, spread = truncated_moments(*ends, mean, variance)
    precision = np.maximum(1 / spread - 1 / variance, 1 / _NOTHING)
    told = (middle / spread - mean / variance) / precision
    # Rounding of numbers must not lead a cell out of its bounds.
    told = np.clip(told, ends[0], np.where(np.isfinite(ends[1]), ends[1], np.inf))
    noisy = np.where(estimated | exact, table.low, told)
    error = np.where(estimated, table.variance, np.where(exact, LEAST_VARIANCE, 1 / precision))
    return noisy, error


def expected_cells(table: PublishedTable, mean: Float64, variance: Float64) -> Float64:
    """Return the expectation of every cell, given another one and its variance."""
    noisy, error = as_measured(table, mean, variance)
    found: Float64 = (noisy / error + mean / variance) / (1 / error + 1 / variance)
    return np.maximum(found, 0.0)


def log_likelihood(table: PublishedTable, mean: Float64, variance: Float64) -> float:
    """Return how likely the cells are under an expectation and its variance."""
    from scipy.special import log_ndtr

    estimated = table.variance > 0
    whole = table.variance + variance
    density = -0.5 * ((table.low - mean) ** 2 / whole + np.log(whole))
    spread = np.sqrt(variance)
    left = (np.maximum(table.low - _HALF, 0.0) - mean) / spread
    right = (table.high + _HALF - mean) / spread
    turned = left > 0
    left, right = np.where(turned, -right, left), np.where(turned, -left, right)
    upper = log_ndtr(right)
    inside = upper + np.log1p(-np.exp(np.minimum(log_ndtr(left) - upper, -1e-12)))
    return float(np.where(estimated, density, inside).sum())


def combined(tables: Sequence[PublishedTable]) -> list[PublishedTable]:
    """Return one table for every set of features: what all tables of them say together."""
    found: dict[tuple[int, ...], PublishedTable] = {}
    for table in tables:
        before = found.get(table.features)
        found[table.features] = table if before is None else _both(before, table)
    return sorted(found.values(), key=lambda each: (len(each.features), each.features))


def _both(one: PublishedTable, other: PublishedTable) -> PublishedTable:
    """Return what two tables of the same features say: bounds meet, estimates are averaged."""
    estimates = (one.variance > 0) & (other.variance > 0)
    bounds = (one.variance == 0) & (other.variance == 0)
    total = np.where(estimates, one.variance + other.variance, 1.0)
    weight = np.where(estimates, other.variance / total, 0.0)
    mean = one.low * weight + other.low * (1 - weight)
    first = one.spread <= other.spread
    low = np.where(bounds, np.maximum(one.low, other.low), np.where(first, one.low, other.low))
    high = np.where(bounds, np.minimum(one.high, other.high), np.where(first, one.high, other.high))
    variance = np.where(first, one.variance, other.variance)
    together = one.variance * other.variance / total
    return replace(
        one,
        low=np.where(estimates, mean, low),
        high=np.where(estimates, mean, high),
        variance=np.where(estimates, together, variance),
    )


def check_agreement(tables: Sequence[PublishedTable], schema: Schema) -> None:
    """Refuse tables that contradict each other by more than their errors, with the worst cells."""
    sizes = schema.category_counts
    problems = [
        line
        for one, other in combinations(tables, 2)
        for line in _contradictions(one, other, sizes, schema)
    ]
    if problems:
        shown = "; ".join(problems[:_SHOWN])
        left = len(problems) - _SHOWN
        more = f"; and {left} more pairs of tables" if left > 0 else ""
        raise DataError(
            f"the published tables contradict each other beyond their errors: {shown}{more}. "
            "Check that they count the same rows, and the error that tables.toml states"
        )


def _contradictions(
    one: PublishedTable, other: PublishedTable, sizes: Sequence[int], schema: Schema
) -> list[str]:
    """Return at most one line: the cells in which two tables differ most."""
    shared = tuple(each for each in one.features if each in other.features)
    first, second = one.margin(shared, sizes), other.margin(shared, sizes)
    apart = np.maximum(first.low - second.high, second.low - first.high)
    excess = apart - _CERTAIN * np.sqrt(first.variance + second.variance)
    # Sums of decimals are off by rounding.
    worst = np.argsort(-excess, kind="stable")[:_SHOWN]
    worst = worst[excess[worst] > 1e-6 * (1 + first.low[worst])]
    if not len(worst):
        return []
    cells = ", ".join(
        f"{_cell_name(shared, int(cell), sizes, schema)} ({_said(first, cell)} and "
        f"{_said(second, cell)})"
        for cell in worst
    )
    return [f"{one.source} and {other.source} differ in {cells}"]


def _cell_name(features: Sequence[int], cell: int, sizes: Sequence[int], schema: Schema) -> str:
    if not features:
        return "the number of rows"
    codes = np.unravel_index(cell, [sizes[each] for each in features])
    named = zip(features, codes, strict=True)
    return " x ".join(
        f"{schema.names[each]} = {schema.features[each].labels[int(code)]}" for each, code in named
    )


def _said(table: PublishedTable, cell: int) -> str:
    low, high = table.low[cell], table.high[cell]
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def margins_of(
    tables: Sequence[PublishedTable], features: tuple[int, ...], sizes: Sequence[int]
) -> Iterator[PublishedTable]:
    """Yield what every table that holds some features tells of them."""
    for table in tables:
        if set(features) <= set(table.features):
            yield table.margin(features, sizes)


def best_margin(
    tables: Sequence[PublishedTable], features: tuple[int, ...], sizes: Sequence[int]
) -> PublishedTable | None:
    """Return what the table that knows them best tells of some features."""
    found = list(margins_of(tables, features, sizes))
    return min(found, key=lambda each: float(each.spread.sum())) if found else None
