"""How often intervals hold the truth when `pegsynth.methods.completion` completes the tables.

x is known, z and y are categories that depend on it and on each other, and both are lost, more
often for some x. Tables are drawn by the bootstrap of the original with missing as a category
(plug-in), completed by `fill`, and combined by the nested rule (R23). Quantities: the share of the
last category of y, and the difference of this share between the ends of x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.inference import combine
from pegsynth.methods.completion import fill
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema

Float64 = NDArray[np.float64]
Codes = NDArray[np.uint8]

ORIGINAL_ROWS = 2000
X = np.array([0.4, 0.3, 0.3])
Z = np.array([[0.7, 0.3], [0.5, 0.5], [0.2, 0.8]])
"""Shares of z given x."""
Y = np.array(
    [
        [[0.6, 0.3, 0.1], [0.4, 0.4, 0.2]],
        [[0.4, 0.4, 0.2], [0.3, 0.3, 0.4]],
        [[0.3, 0.3, 0.4], [0.1, 0.3, 0.6]],
    ]
)
"""Shares of y given x and z."""
LOST_Y, LOST_Z = np.array([0.1, 0.3, 0.6]), np.array([0.2, 0.1, 0.1])
BOOK = Schema(
    (
        Feature("x", categories=("0", "1", "2")),
        Feature("z", categories=("0", "1"), missing=("",)),
        Feature("y", categories=("0", "1", "2"), missing=("",)),
    )
)


@dataclass(frozen=True)
class Held:
    """Shares of intervals that hold the truth, by the nested rule and with w left out."""

    nested: Float64
    without: Float64


def truths() -> Float64:
    """Return the share of the last category of y, and its difference between the ends of x."""
    last = (Z * Y[:, :, 2]).sum(axis=1)
    return np.array([X @ last, last[2] - last[0]])


def sampled(words: np.random.Generator) -> Codes:
    """Draw an original table, with its losses."""
    x = words.choice(3, ORIGINAL_ROWS, p=X)
    z = (words.random(ORIGINAL_ROWS) < Z[x, 1]).astype(int)
    y = (words.random(ORIGINAL_ROWS)[:, None] > Y[x, z].cumsum(axis=1)[:, :2]).sum(axis=1)
    z[words.random(ORIGINAL_ROWS) < LOST_Z[x]] = 2
    y[words.random(ORIGINAL_ROWS) < LOST_Y[x]] = 3
    return np.stack([x, z, y], axis=1).astype(np.uint8)


def estimated(codes: Codes) -> tuple[Float64, Float64]:
    """Return estimates from a completed table, and their usual variances."""
    last = codes[:, 2] == 2
    ends = [last[codes[:, 0] == x] for x in (0, 2)]
    variances = [each.mean() * (1 - each.mean()) / len(each) for each in (last, *ends)]
    estimates = np.array([last.mean(), ends[1].mean() - ends[0].mean()])
    return estimates, np.array([variances[0], variances[1] + variances[2]])


def held(rows: int, datasets: int, imputations: int, runs: int, *, seed: int | None = None) -> Held:
    """Sample, synthesize, complete and combine `runs` times."""
    words = np.random.default_rng(seed)
    found = [_run(words, rows, datasets, imputations) for _ in range(runs)]
    nested, without = np.mean(found, axis=0)
    return Held(nested, without)


def _run(words: np.random.Generator, rows: int, datasets: int, imputations: int) -> Float64:
    original = sampled(words)
    lines = []
    for _ in range(datasets):
        table = original[words.integers(0, ORIGINAL_ROWS, rows)]
        stream = RandomStream(int(words.integers(1 << 62)))
        lines += [
            estimated(each.codes) for each in fill(table, BOOK, stream, imputations=imputations)
        ]
    estimates, variances = (np.array(each) for each in zip(*lines, strict=True))
    known = {"rows": rows, "rows_in": ORIGINAL_ROWS}
    nested = combine(estimates, variances, imputations=imputations, **known)
    means = [
        each.reshape(datasets, imputations, -1).mean(axis=1) for each in (estimates, variances)
    ]
    return np.array([_holds(nested), _holds(combine(*means, **known))], dtype=np.float64)


def _holds(result: object) -> NDArray[np.bool_]:
    low, high = result.interval()  # type: ignore[attr-defined]
    return (low <= truths()) & (high >= truths())
