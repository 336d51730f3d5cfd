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

from pegsynth.datasets import discharge, discharge_schema
from pegsynth.inference import combine
from pegsynth.inference.combine import Floor
from pegsynth.once import Purse, Released, draw_rows, release_blocks
from pegsynth.once.draw import released_total
from pegsynth.once.held import cell_deviation
from pegsynth.once.replicates import Source, own_noise_tables, replicate_weights
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream
from pegsynth.schema.codec import encode

Array = NDArray[np.float64]
Codes = NDArray[np.unsignedinteger]

DELTA = 1e-9
TRUTH_ROWS = 2_000_000
NAMES = ("sex", "ethncty", "race", "agegrp", "los", "mdc", "sev")
RARE = 0.01


@dataclass(frozen=True)
class Statistic:
    """A sum over cells of a pair, or its ratio to another: all that is measured here.

    Parameters
    ----------
    group
        What kind of statistic it is.
    features
        The features of its table.
    top, bottom
        Weights of the cells in the numerator and in the denominator; a second ratio may be
        subtracted.
    cell
        The categories of a share, for its floor; empty for anything else.
    """

    group: str
    features: tuple[int, ...]
    top: Array
    bottom: Array | None = None
    less: tuple[Array, Array] | None = None
    cell: tuple[int, ...] = ()

    def of(self, table: Array) -> float:
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


def statistics(truth: Codes, sizes: tuple[int, ...], ordered: list[bool]) -> list[Statistic]:
    """Return what is estimated; chosen by the population, not by any sample."""
    found = []
    for feature, size in enumerate(sizes):
        shares = np.bincount(truth[:, feature], minlength=size) / len(truth)
        for code in np.flatnonzero(shares > 0):
            group = "shares below 1 %" if shares[code] < RARE else "shares above 1 %"
            found.append(Statistic(group, (feature,), _cell((size,), (code,)), cell=(int(code),)))
        if ordered[feature]:
            found.append(Statistic("means of codes", (feature,), np.arange(size, dtype=float)))
    for pair in combinations(range(len(sizes)), 2):
        found += _of_pair(truth, pair, (sizes[pair[0]], sizes[pair[1]]))
    return found


def _of_pair(truth: Codes, pair: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[Statistic]:
    table = counted(truth, pair, shape) / len(truth)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    away = np.where(table >= RARE, np.abs(table - np.outer(rows, columns)), -1.0)
    for place, group in (
        (-1, "most dependent cell"),
        (len(away.ravel()) * 3 // 4, "ordinary cell"),
    ):
        cell = np.unravel_index(np.argsort(away, axis=None)[place], shape)
        if table[cell] >= RARE:
            code = tuple(int(each) for each in cell)
            yield Statistic(group, pair, _cell(shape, cell), cell=code)
    first, second = np.argsort(-rows)[:2]
    top = int(np.argmax(columns))
    ones = [np.zeros(shape), np.zeros(shape)]
    ones[0][first, :], ones[1][second, :] = 1.0, 1.0
    yield Statistic(
        "differences of shares",
        pair,
        _cell(shape, (first, top)),
        ones[0],
        (_cell(shape, (second, top)), ones[1]),
    )


def _cell(shape: tuple[int, ...], code: tuple[object, ...]) -> Array:
    cell = np.zeros(shape)
    cell[code] = 1.0
    return cell


def counted(
    codes: Codes, features: tuple[int, ...], shape: tuple[int, ...], weights: Array | None = None
) -> Array:
    """Count rows, or add up their weights, by the cells of a table."""
    keys = np.ravel_multi_index(tuple(codes[:, feature] for feature in features), shape)
    return np.bincount(keys, weights, int(np.prod(shape))).astype(float).reshape(shape)


def held(released: Released, statistic: Statistic) -> bool:
    """Whether a published table has the cells that a statistic is made of."""
    if len(statistic.features) == 1:
        return True
    tables = (*released.blocks, *released.extra)
    within = any(set(statistic.features) <= set(table.features) for table in tables)
    apart = all(len(set(levels)) == len(levels) for levels in _levels(released, statistic))
    return within and apart


def _levels(released: Released, statistic: Statistic) -> list[list[int]]:
    return [released.levels[feature].tolist() for feature in statistic.features]


@dataclass(frozen=True)
class Setting:
    """Which releases are made."""

    rows: int
    epsilon: float
    releases: int
    replicates: int
    tables: int
    features: int
    pure: bool = False


def measure(setting: Setting, seed: int) -> Iterator[tuple[str, str, str, bool, float]]:
    """Yield statistic group, held or not, rule, whether the truth was covered, and width."""
    schema = discharge_schema()
    kept = list(range(len(schema.features)))
    if setting.features < len(kept):
        kept = [2, 4, 5, 7, 8, 11, 12][: setting.features]
    truth = encode(discharge(TRUTH_ROWS, seed=987_654), schema)[:, kept]
    sizes = tuple(schema.category_counts[i] for i in kept)
    ordered = [schema.features[i].kind != "nominal" for i in kept]
    rules = schema.rules if len(kept) == len(schema.features) else ()
    wanted = statistics(truth, sizes, ordered)
    true = [each.of(counted(truth, each.features, _shape(each, sizes))) for each in wanted]
    for number in range(setting.releases):
        codes = encode(discharge(setting.rows, seed=seed + number), schema)[:, kept]
        yield from _release(setting, codes, sizes, ordered, rules, wanted, true, seed + number)


def _shape(statistic: Statistic, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sizes[feature] for feature in statistic.features)


def _release(
    setting: Setting,
    codes: Codes,
    sizes: tuple[int, ...],
    ordered: list[bool],
    rules: object,
    wanted: list[Statistic],
    true: list[float],
    seed: int,
) -> Iterator[tuple[str, str, str, bool, float]]:
    stream = RandomStream(seed)
    budget = Budget(epsilon=setting.epsilon, delta=None if setting.pure else DELTA)
    purse = Purse(budget.whole("pure" if setting.pure else "zcdp"), stream, threads=2)
    ruled = {feature for rule in rules for feature, _ in rule.forbidden}
    released, _ = release_blocks(
        codes,
        sizes,
        purse,
        stream,
        ordered=ordered,
        rules=rules,
        whole=[feature in ruled for feature in range(len(sizes))],
        threads=2,
    )
    source, rows = Source(released, purse.events, rules=rules), len(codes)
    lots = list(replicate_weights(source, rows, stream, count=setting.replicates, threads=2))
    weighted = np.concatenate([lot.codes for lot in lots])
    weights = np.concatenate([lot.weights for lot in lots], axis=1)
    own = (
        [
            np.concatenate(list(table))
            for table in own_noise_tables(source, rows, stream, count=setting.tables, threads=2)
        ]
        if setting.tables
        else []
    )
    shared = [
        np.concatenate(list(draw_rows(released, rows, stream, rules=rules, threads=2)))
        for _ in range(setting.tables or 1)
    ]
    total = released_total(released)
    for statistic, value in zip(wanted, true, strict=True):
        shape = _shape(statistic, sizes)
        group = statistic.group if held(released, statistic) else f"not held: {statistic.group}"

        def estimates(tables: list[Codes]) -> tuple[list[float], list[float]]:
            cells = [counted(each, statistic.features, shape) for each in tables]
            return (
                [statistic.of(each) for each in cells],
                [statistic.variance(each, rows) for each in cells],
            )

        usual = (
            np.sqrt(statistic.variance(counted(codes, statistic.features, shape), rows)) * 2 * 1.96
        )
        floor = None
        if statistic.cell:
            deviation = cell_deviation(
                released, dict(zip(statistic.features, statistic.cell, strict=True))
            )
            floor = Floor(deviation / total, total) if np.isfinite(deviation) else None
        q = [statistic.of(counted(weighted, statistic.features, shape, line)) for line in weights]
        results = {
            "replicate-weights": combine(q[1:], rule="replicate-weights", main=q[0], floor=floor)
        }
        if floor and len(statistic.features) == 1:
            results["without floor"] = combine(q[1:], rule="replicate-weights", main=q[0])
        if own:
            results["own-noise"] = combine(estimates(own)[0], rule="own-noise", floor=floor)
        if len(shared) > 1:
            results["plug-in"] = combine(
                *estimates(shared), rule="plug-in", rows=rows, rows_in=rows
            )
        for rule, result in results.items():
            low, high = result.interval(0.95)
            yield group, rule, bool(low <= value <= high), (high - low) / max(usual, 1e-12)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--features", type=int, default=13)
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    header = ("epsilon", "statistic", "rule", "coverage", "median width", "intervals")
    print("| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    for epsilon in options.epsilon:
        setting = Setting(
            options.rows,
            epsilon,
            options.releases,
            options.replicates,
            options.tables,
            options.features,
            options.pure,
        )
        found: dict[tuple[str, str], list[tuple[bool, float]]] = {}
        for group, rule, covered, width in measure(setting, options.seed):
            found.setdefault((group, rule), []).append((covered, width))
        for (group, rule), each in sorted(found.items()):
            figures = (fmean(hit for hit, _ in each), median(width for _, width in each))
            cells = (f"{epsilon:g}", group, rule, f"{figures[0]:.3f}", f"{figures[1]:.2f}")
            print("| " + " | ".join((*cells, str(len(each)))) + " |", flush=True)


if __name__ == "__main__":
    main()
