"""How often intervals from replicates of released blocks hold the truth (R28).

A population of invented discharges is sampled again and again; every sample is released by
`pegs-once` at a total epsilon and a delta of 1e-9 and analysed by replicate weights, by
tables with noise of their own, and by the plug-in rule on tables that share their noise.
The truth is that of a sample a hundred times as large. ``python -m benchmarks.coverage
--released`` prints the table of docs/inference.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from benchmarks.foundation import THREADS
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.inference import Combined, Floor, combine
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream
from pegsynth.released import PrivacyFilter, Released, draw_rows, release_blocks
from pegsynth.released.draw import released_total
from pegsynth.released.held import cell_deviation, merged_categories, missing_pairs
from pegsynth.released.replicates import Source, own_noise_tables, replicate_weights
from pegsynth.schema import Schema
from pegsynth.schema.codec import encode

Array = NDArray[np.float64]
Codes = NDArray[np.unsignedinteger]

DELTA = 1e-9
TRUTH_ROWS = 2_000_000
NORMAL = 1.959964
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
        whole = max(float((shares * bottom).sum()), 1e-300)
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


def held(released: Released, statistic: Statistic | Slope) -> bool:
    """Whether published tables have every pair that a statistic is made of, unmerged."""
    features = statistic.features
    merged = any(merged_categories(released, feature) for feature in features)
    return len(features) == 1 or not (merged or missing_pairs(released, features))


@dataclass(frozen=True)
class Setting:
    """Which releases are made, and how they are analysed.

    Parameters
    ----------
    replicates
        Replicate weights.
    tables
        Tables with noise of their own, and as many that share it; 0 for none.
    """

    rows: int
    epsilon: float
    releases: int
    replicates: int
    tables: int
    pure: bool = False


@dataclass(frozen=True)
class Population:
    """What is sampled, and what is true of it."""

    schema: Schema
    wanted: list[Statistic | Slope]
    true: list[float]

    @classmethod
    def invented(cls, rows: int = TRUTH_ROWS) -> Population:
        """Take a large sample for the population."""
        schema = discharge_schema()
        truth = encode(discharge(rows, seed=987_654), schema)
        ordered = [feature.kind != "nominal" for feature in schema.features]
        wanted = statistics(truth, schema.category_counts, ordered)
        return cls(schema, wanted, [each.of(each.counted(truth)) for each in wanted])


@dataclass(frozen=True)
class Analysed:
    """One release as analysts get it."""

    original: Codes
    released: Released
    rows: Codes
    weights: Array
    own: list[Codes]
    shared: list[Codes]

    def intervals(self, statistic: Statistic | Slope) -> Iterator[tuple[str, Combined]]:
        """Yield what every rule says about a statistic."""
        lines = [statistic.of(statistic.counted(self.rows, line)) for line in self.weights]
        weighted = {"rule": "replicate-weights", "main": lines[0]}
        floor = self.floor(statistic)
        yield "replicate-weights", combine(lines[1:], **weighted, floor=floor)
        if len(statistic.cell) == 1:
            yield "without floor", combine(lines[1:], **weighted)
        if self.own:
            cells = [statistic.counted(codes) for codes in self.own]
            yield (
                "own-noise",
                combine(list(map(statistic.of, cells)), rule="own-noise", floor=floor),
            )
        if self.shared:
            cells, rows = [statistic.counted(codes) for codes in self.shared], len(self.original)
            variances = [statistic.variance(table, rows) for table in cells]
            yield (
                "plug-in",
                combine(list(map(statistic.of, cells)), variances, rows=rows, rows_in=rows),
            )

    def floor(self, statistic: Statistic | Slope) -> Floor | None:
        """Return the published noise on a share."""
        if not statistic.cell:
            return None
        cell = dict(zip(statistic.features, statistic.cell, strict=True))
        deviation, total = cell_deviation(self.released, cell), released_total(self.released)
        return Floor(deviation / total, total) if np.isfinite(deviation) else None


def release(setting: Setting, schema: Schema, seed: int) -> Analysed:
    """Sample the population, release the sample and draw from what was published."""
    codes = encode(discharge(setting.rows, seed=seed), schema)
    stream = RandomStream(seed)
    budget = Budget(epsilon=setting.epsilon, delta=None if setting.pure else DELTA)
    budget_filter = PrivacyFilter(
        budget.whole("pure" if setting.pure else "zcdp"), stream, threads=THREADS
    )
    ruled = {feature for rule in schema.rules for feature, _ in rule.forbidden}
    released, _ = release_blocks(
        codes,
        schema.category_counts,
        budget_filter,
        stream,
        ordered=[feature.kind != "nominal" for feature in schema.features],
        rules=schema.rules,
        whole=[feature in ruled for feature in range(len(schema.features))],
        threads=THREADS,
    )
    source, rows = Source(released, budget_filter.events, rules=schema.rules), len(codes)
    lots = list(replicate_weights(source, rows, stream, count=setting.replicates, threads=THREADS))
    own = (
        own_noise_tables(source, rows, stream, count=setting.tables, threads=THREADS)
        if setting.tables
        else ()
    )
    shared = (
        draw_rows(released, rows, stream, rules=schema.rules, threads=THREADS)
        for _ in range(setting.tables)
    )
    return Analysed(
        codes,
        released,
        np.concatenate([lot.codes for lot in lots]),
        np.concatenate([lot.weights for lot in lots], axis=1),
        [np.concatenate(list(table)) for table in own],
        [np.concatenate(list(table)) for table in shared],
    )


def measure(
    setting: Setting, population: Population, seed: int
) -> Iterator[tuple[str, str, bool, float]]:
    """Yield kind of statistic, rule, whether the truth was covered, and width.

    Widths are multiples of that of the original's own interval.
    """
    for number in range(setting.releases):
        found = release(setting, population.schema, seed + number)
        for statistic, value in zip(population.wanted, population.true, strict=True):
            group = statistic.group
            if not held(found.released, statistic):
                group = f"not held: {group}"
            table = statistic.counted(found.original)
            usual = 2 * NORMAL * np.sqrt(statistic.variance(table, setting.rows))
            for rule, result in found.intervals(statistic):
                low, high = result.interval(0.95)
                yield group, rule, bool(low <= value <= high), (high - low) / max(usual, 1e-12)


HEADER = ("epsilon", "statistic", "rule", "coverage", "median width", "intervals")


def lines(setting: Setting, population: Population, seed: int) -> Iterator[tuple[str, ...]]:
    """Yield the table of docs/inference.md for one epsilon."""
    found: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    for group, rule, covered, width in measure(setting, population, seed):
        found.setdefault((group, rule), []).append((covered, width))
    for (group, rule), each in sorted(found.items()):
        coverage, width = fmean(hit for hit, _ in each), median(width for _, width in each)
        figures = (f"{coverage:.3f}", f"{width:.2f}", str(len(each)))
        yield (f"{setting.epsilon:g}", group, rule, *figures)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--truth", type=int, default=TRUTH_ROWS)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    population = Population.invented(chosen.truth)
    print("| " + " | ".join(HEADER) + " |\n" + "|---" * len(HEADER) + "|")
    for epsilon in chosen.epsilon:
        setting = Setting(
            chosen.rows, epsilon, chosen.releases, chosen.replicates, chosen.tables, chosen.pure
        )
        for line in lines(setting, population, chosen.seed):
            print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
