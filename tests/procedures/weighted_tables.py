"""A small table with replicate weights, and slow twins of what is computed of it."""

from __future__ import annotations

import numpy as np
import polars as pl

from pegsynth import combine

REPLICATES = 12
PART = float(combine([0.0, 2.0], rule="replicate-weights", main=1.0).variance) ** -0.5
"""The part of an estimate's error that replicates have where no ledger says which."""


def weighted(rows=400, *, seed=1, replicates=REPLICATES):
    """Return a table in which y depends on x, on the group g and on both together."""
    random = np.random.default_rng(seed)
    x = random.gamma(2.0, 2.0, rows).round(3)
    g = random.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2])
    y = 1 + 0.5 * np.log1p(x) + 0.3 * (g == "b") * x + random.normal(size=rows)
    columns = {
        "x": x,
        "g": g,
        "y": y.round(3),
        "d": (y > 2).astype(np.int64),
        "n": random.poisson(0.4 * x * (1 + (g == "c"))),
        "t": random.integers(1, 8, rows),
        "e": random.integers(0, 2, rows),
        "pegs_weight": random.gamma(3.0, 1.0, rows),
    }
    for k in range(1, replicates + 1):
        columns[f"pegs_weight_{k}"] = columns["pegs_weight"] * (
            1 + PART * (random.gamma(5.0, 0.2, rows) - 1)
        )
    return pl.DataFrame(columns)


def lines(frame):
    """Return the weights, and those of every replicate."""
    names = [name for name in frame.columns if name.startswith("pegs_weight")]
    return [frame[name].to_numpy() for name in names]


def by_hand(estimate, frame):
    """Return estimates and their covariance matrix, by the rule itself."""
    main, *rest = (np.asarray(estimate(weights), dtype=float) for weights in lines(frame))
    off = np.array(rest) - main
    return main, off.T @ off / (len(off) * PART**2)
