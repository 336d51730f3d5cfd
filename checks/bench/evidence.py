"""Rows from published tables: how near they come, how long it takes, how often intervals hold.

``python -m checks.bench.evidence`` takes 200,000 built-in discharges, publishes all 78 pair tables
rounded to base 5 with cells below 5 not shown, and compares rows made of these with a bootstrap.
``--many`` makes rows of 20 features by 60 tables of two and three features; ``--ipfn`` runs the
package of that name on the same tables, where it is installed. ``--coverage [--runs R]`` prints how
often 95 % intervals hold the shares and the pair cells of a population, for three tables of five
features, under five kinds of rounding and suppression. Tables and draws are seeded.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from pegsynth.codec.codec import encode
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.inference.combining_rules import PART
from pegsynth.kernels.arrays import Float64
from pegsynth.methods.evidence.cell_errors import combined
from pegsynth.methods.evidence.table_fit import TableFit
from pegsynth.methods.evidence.table_replicates import replicates_of_fit
from pegsynth.methods.evidence.table_rows import rows_of_fit
from pegsynth.methods.released._row_replicates import Signs
from pegsynth.random import RandomStream
from pegsynth.tables.published_tables import PublishedTable

ROWS, SAMPLE, REPLICATES = 200_000, 10_000, 20
SUBSETS = ((0, 2, 3, 4, 12), (1, 5, 7, 11, 12), (2, 6, 8, 9, 11))
KINDS = ((3, 0), (5, 0), (10, 0), (1, 5), (1, 10))
"""Base of rounding, and below what cells are not shown."""
LEAST = 20
"""Rows that a cell of a pair has in expectation, at least, to be looked at."""


def counted(codes: np.ndarray, features: Sequence[int], sizes: Sequence[int]) -> Float64:
    """Count rows by the cells of some features."""
    keys = np.zeros(len(codes), dtype=np.int64)
    for each in features:
        keys = keys * sizes[each] + codes[:, each]
    cells = int(np.prod([sizes[each] for each in features]))
    return np.bincount(keys, minlength=cells).astype(np.float64)


def published(
    codes: np.ndarray, features: tuple[int, ...], sizes: Sequence[int], base: int, below: int
) -> PublishedTable:
    """Return a table as it would be published: rounded to a base, small cells not shown."""
    counts = counted(codes, features, sizes)
    shown = np.floor(counts / base + 0.5) * base
    low = np.maximum(np.ceil(shown - base / 2), 0) if base > 1 else counts
    high = np.floor(shown + base / 2) if base > 1 else counts
    hidden = counts < below
    low, high = np.where(hidden, 0.0, low), np.where(hidden, below - 1.0, high)
    return PublishedTable("table", features, low, high, np.zeros(len(low)))


def pair_error(
    codes: np.ndarray, of: Callable[[tuple[int, ...]], Float64], sizes: Sequence[int]
) -> float:
    """Return the mean total variation distance of all pair tables from those of some rows."""
    pairs = combinations(range(len(sizes)), 2)
    found = [
        np.abs(of(pair) / of(pair).sum() - counted(codes, pair, sizes) / len(codes)).sum() / 2
        for pair in pairs
    ]
    return float(np.mean(found))


def accuracy(with_ipfn: bool) -> None:
    """Print how near rows come to the tables of 200,000 discharges."""
    schema = discharge_schema()
    codes, sizes = encode(discharge(ROWS, seed=1), schema), schema.category_counts
    pairs = list(combinations(range(len(sizes)), 2))
    tables = combined([published(codes, pair, sizes, 5, 5) for pair in pairs])
    start = time.process_time()
    fit = TableFit.of(tables, sizes, ROWS, RandomStream(2))
    rows = rows_of_fit(fit, ROWS).T
    spent = time.process_time() - start
    resampled = codes[np.random.default_rng(3).integers(0, ROWS, ROWS)]
    ours = pair_error(codes, lambda pair: counted(rows, pair, sizes), sizes)
    theirs = pair_error(codes, lambda pair: counted(resampled, pair, sizes), sizes)
    inside = [
        (counted(rows, each.features, sizes) >= each.low)
        & (counted(rows, each.features, sizes) <= each.high)
        for each in tables
    ]
    held = float(np.mean(np.concatenate(inside)))
    print(f"pair error of rows {ours:.5f}, of a bootstrap {theirs:.5f}: {ours / theirs:.2f} times")
    print(f"{spent:.1f} s of processor time; {held:.1%} of cells within their bounds")
    if with_ipfn:
        _beside_ipfn(codes, sizes)


def _beside_ipfn(codes: np.ndarray, sizes: Sequence[int]) -> None:
    """Compare with iterative proportional fitting of a full table, which takes few features."""
    from ipfn import ipfn

    used = (0, 2, 3, 8, 11, 12)
    own = codes[:, used]
    shape = [sizes[each] for each in used]
    given = [pair for pair in combinations(range(len(used)), 2) if sum(pair) % 3]
    tables = combined([published(own, pair, shape, 5, 5) for pair in given])
    fit = TableFit.of(tables, tuple(shape), ROWS, RandomStream(4))
    rows = rows_of_fit(fit, ROWS).T
    middles = [each.middle.reshape([shape[one] for one in each.features]) for each in tables]
    start = np.ones(shape)
    full = ipfn.ipfn(start, middles, [list(each.features) for each in tables]).iteration()

    def theirs(pair: tuple[int, ...]) -> Float64:
        gone = tuple(axis for axis in range(len(shape)) if axis not in pair)
        return np.asarray(full.sum(axis=gone)).ravel()

    for name, pairs in (
        ("held", given),
        ("not held", [p for p in combinations(range(len(used)), 2) if p not in given]),
    ):
        errors = []
        for of in (lambda pair: counted(rows, pair, shape), theirs):
            apart = [
                np.abs(of(p) / of(p).sum() - counted(own, p, shape) / ROWS).sum() / 2 for p in pairs
            ]
            errors.append(float(np.mean(apart)))
        print(f"{name} pairs: rows {errors[0]:.5f}, ipfn {errors[1]:.5f} (no rows, no interval)")


def many() -> None:
    """Print what 20 features with 60 tables take."""
    schema = discharge_schema()
    codes, own = encode(discharge(ROWS, seed=1), schema), schema.category_counts
    # The features once more, of other rows: 20 in all.
    codes = np.concatenate([codes, np.roll(codes[:, :7], 1, axis=0)], axis=1)
    sizes = (*own, *own[:7])
    picked = np.random.default_rng(5)
    features = [tuple(sorted(picked.choice(20, 2 + n % 2, replace=False))) for n in range(80)]
    features = [tuple(map(int, each)) for each in dict.fromkeys(features)]
    small = [each for each in features if np.prod([sizes[one] for one in each]) <= 1 << 16][:60]
    tables = combined([published(codes, each, sizes, 5, 5) for each in small])
    used = {one for each in small for one in each}
    start = time.process_time()
    fit = TableFit.of(tables, sizes, ROWS, RandomStream(6))
    rows_of_fit(fit, ROWS)
    spent = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(used)} features, {len(tables)} tables: {spent:.1f} s of processor time, ", end="")
    print(f"{memory:.2f} GiB at most in the whole run")


def coverage(runs: int) -> None:
    """Print how often intervals hold shares and pair cells of the population."""
    from scipy.stats import t

    schema = discharge_schema()
    everyone = encode(discharge(1_000_000, seed=7), schema)
    reach = float(t.ppf(0.975, REPLICATES))
    for subset in SUBSETS:
        people = everyone[:, subset]
        sizes = tuple(schema.category_counts[each] for each in subset)
        pairs = list(combinations(range(len(sizes)), 2))
        ones = [(each,) for each in range(len(sizes))]
        for base, below in KINDS:
            hits: dict[int, list[float]] = {1: [], 2: []}
            for run in range(runs):
                sample = people[np.random.default_rng(run).integers(0, len(people), SAMPLE)]
                tables = combined([published(sample, p, sizes, base, below) for p in pairs])
                stream = RandomStream(run + 1)
                fit = TableFit.of(tables, sizes, SAMPLE, stream)
                rows = rows_of_fit(fit, SAMPLE).T
                found = replicates_of_fit(
                    fit, rows, stream, count=REPLICATES, rows=SAMPLE, design_effect=1.0
                )
                weights = found.weights(rows, Signs(stream.substream(), REPLICATES).take(SAMPLE))
                for features in (*ones, *pairs):
                    truth = counted(people, features, sizes) / len(people)
                    hits[len(features)] += _held(rows, weights, features, sizes, truth, reach)
            shown = ", ".join(
                f"{name} {np.mean(hits[width]):.3f}"
                for width, name in ((1, "shares"), (2, "cells"))
            )
            print(f"table {subset}, base {base}, below {below}: {shown} ({runs} runs)", flush=True)


def _held(
    rows: np.ndarray,
    weights: Float64,
    features: tuple[int, ...],
    sizes: Sequence[int],
    truth: Float64,
    reach: float,
) -> list[float]:
    """Say of every cell that is not tiny whether its interval holds the truth."""
    keys = np.zeros(len(rows), dtype=np.int64)
    for each in features:
        keys = keys * sizes[each] + rows[:, each]
    share = np.bincount(keys, minlength=len(truth)) / len(rows)
    again = np.stack([np.bincount(keys, line, len(truth)) / line.sum() for line in weights])
    error = np.sqrt(np.mean((again - share) ** 2, axis=0)) / PART
    looked = truth * SAMPLE >= LEAST
    return list((np.abs(share - truth) <= reach * error)[looked].astype(float))


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--ipfn", action="store_true")
    parser.add_argument("--runs", type=int, default=200)
    told = parser.parse_args()
    if told.coverage:
        coverage(told.runs)
    elif told.many:
        many()
    else:
        accuracy(told.ipfn)


if __name__ == "__main__":
    main()
