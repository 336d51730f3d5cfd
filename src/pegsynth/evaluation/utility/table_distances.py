"""One-, two- and three-way tables of an original and its synthetic copies, compared.

Goes in: code matrices and the schema that made them. Comes out: `Metrics`. Nothing is
subsampled; which three-way tables are compared is public and fixed (`triples`). Who made
the synthetic tables does not matter here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TypeVar

import msgspec
import numpy as np

from pegsynth.codec.tabulation import Cells, align, column_major, count_cells, group_sizes, one_way
from pegsynth.errors import ParameterError
from pegsynth.evaluation.records import (
    SUMMARY_KEYS,
    Marginal,
    Metrics,
    Record,
    measured,
    not_computed,
)
from pegsynth.evaluation.risk.reappearance import crowded, expected_uniqueness, uniqueness_variance
from pegsynth.evaluation.utility.distances import (
    RULE,
    conditional_distance,
    conditional_floor,
    marginal_distance,
    marginal_floor,
    shares,
    total_variation,
    total_variation_floor,
    triples,
)
from pegsynth.inference.statistics import LEVEL, lumped_share, spread
from pegsynth.kernels.arrays import Codes
from pegsynth.schema.schema import Schema

T = TypeVar("T")
WEIGHTED = "tvd2_weighted"

_FLOOR = "baseline: expected of a bootstrap of the original with as many rows"
_WEIGHTED_NOTE = (
    "mean total variation distance of all two-way tables, every pair weighted by the smaller of "
    "its two entropies in the original, so that columns that hardly vary do not dilute it; "
    f"{_FLOOR}, exact (binomial)"
)
_NOTES = {
    "tvd1": f"mean total variation distance of all one-way tables; {_FLOOR}, exact (binomial)",
    "tvd2": f"mean total variation distance of all two-way tables; {_FLOOR}, exact (binomial)",
    "tvd3": f"mean total variation distance of three-way tables: {RULE}; {_FLOOR}, exact",
    "marginal_distance": "mean over features of the sum of squared differences of shares; "
    f"{_FLOOR}, (1 - sum p^2)/n",
    "conditional_distance": "mean over ordered pairs of the sum over x_j and x_i of squared "
    "differences of p(x_i|x_j), every x_j with weight one; where x_j occurs in one table only, "
    "the other's conditional counts as zeros; where it occurs in neither it adds nothing; "
    f"{_FLOOR}, by a Poisson approximation",
    "regression_distance": "not computed: no regression formula was given",
    "uniqueness": "share of rows that are alone with their quasi-identifiers ({features}), at "
    "{rows} rows, the larger table by its exact expectation; interval: 95 %, for fresh draws of as "
    "many rows of either table (jackknife, score limits); baseline: the original's share",
}


@dataclass(frozen=True)
class _Figure:
    """One measure of one subject: value and floor for each synthetic table."""

    name: str
    subject: str
    values: tuple[float, ...]
    floors: tuple[float, ...]


@dataclass(frozen=True)
class _Tables:
    """The original and the synthetic tables, one feature a row."""

    names: tuple[str, ...]
    category_counts: tuple[int, ...]
    original: Codes
    synthetic: tuple[Codes, ...]

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows of each synthetic table."""
        return tuple(table.shape[1] for table in self.synthetic)

    def figure(
        self, name: str, subject: str, values: Iterable[float], floor: Callable[[int], float]
    ) -> _Figure:
        """Return a figure; the floor is worked out once for each number of rows."""
        known = {rows: floor(rows) for rows in set(self.rows)}
        return _Figure(name, subject, tuple(values), tuple(known[rows] for rows in self.rows))

    def part(self, table: Codes, subset: tuple[int, ...]) -> Cells:
        """Count the cells of some features of a table."""
        return count_cells(table[list(subset)], [self.category_counts[i] for i in subset])


def evaluate_codes(
    original: Codes,
    synthetic: Sequence[Codes],
    schema: Schema,
    *,
    threads: int = 2,
    released: Sequence[Codes] | None = None,
) -> Metrics:
    """Compare synthetic tables with their original.

    Parameters
    ----------
    original, synthetic
        Code matrices, rows by features, all encoded with `schema`. Several synthetic tables
        give the mean of their values, with the smallest and largest as `low` and `high`.
    schema
        The public codebook; its quasi-identifiers are those of the uniqueness.
    threads
        Tables counted at a time; the result does not depend on it.
    released
        The tables as they are published, where `synthetic` repeats weighted rows: a row is
        unique or not as it is published.
    """
    if not synthetic:
        raise ParameterError("there is no synthetic table to compare with the original")
    tables = _tables(original, synthetic, schema.category_counts, schema.names)
    features = range(len(schema.features))
    ones, pairs, threes = (
        [f for part in _map(work, todo, tables, threads) for f in part]
        for work, todo in (
            (_feature_figures, [(i,) for i in features]),
            (_pair_figures, list(combinations(features, 2))),
            (_triple_figures, triples(schema.category_counts)),
        )
    )
    figures = [*ones, *pairs, *threes]
    published = tables
    if released is not None:
        published = _tables(original, released, schema.category_counts, schema.names)
    headlines = [
        _uniqueness(published, schema) if name == "uniqueness" else _headline(name, figures, tables)
        for name in SUMMARY_KEYS
    ]
    return Metrics(
        summary={record.name: record.value for record in headlines},
        records=(
            *headlines,
            _weighted(pairs, tables),
            *(_record(figure, tables) for figure in figures),
        ),
        marginals=tuple(_marginal(tables, schema, index) for index in features),
    )


def tvd1(original: Codes, synthetic: Codes, category_counts: Sequence[int]) -> float:
    """Mean total variation distance over all features."""
    tables = _tables(original, [synthetic], category_counts)
    one_ways = ((i,) for i in range(len(category_counts)))
    return _mean(_feature_figures(tables, subset)[0].values[0] for subset in one_ways)


def tvd2(
    original: Codes, synthetic: Codes, category_counts: Sequence[int], *, threads: int = 2
) -> float:
    """Mean total variation distance over all pairs of features; NaN when there is none."""
    tables = _tables(original, [synthetic], category_counts)
    todo = list(combinations(range(len(category_counts)), 2))
    return _mean(_map(_distance_alone, todo, tables, threads))


def tvd3(
    original: Codes, synthetic: Codes, category_counts: Sequence[int], *, threads: int = 2
) -> float:
    """Mean total variation distance over the triples of `triples`; NaN when there is none."""
    tables = _tables(original, [synthetic], category_counts)
    return _mean(_map(_distance_alone, triples(category_counts), tables, threads))


def _tables(
    original: Codes,
    synthetic: Sequence[Codes],
    category_counts: Sequence[int],
    names: tuple[str, ...] = (),
) -> _Tables:
    return _Tables(
        names or tuple(f"feature {i + 1}" for i in range(len(category_counts))),
        tuple(category_counts),
        column_major(original, category_counts, what="original"),
        tuple(
            column_major(codes, category_counts, what=f"synthetic table {number}")
            for number, codes in enumerate(synthetic, start=1)
        ),
    )


def _map(
    work: Callable[[_Tables, tuple[int, ...]], T],
    todo: Sequence[tuple[int, ...]],
    tables: _Tables,
    threads: int,
) -> list[T]:
    if threads < 1:
        raise ParameterError("threads must be at least 1")
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda subset: work(tables, subset), todo))


def _feature_figures(tables: _Tables, subset: tuple[int, ...]) -> list[_Figure]:
    (index,) = subset
    name, size = tables.names[index], tables.category_counts[index]
    original = one_way(tables.original[index], size)
    counts = [one_way(table[index], size) for table in tables.synthetic]
    return [
        tables.figure(
            "tvd1",
            name,
            (total_variation(original, other) for other in counts),
            partial(total_variation_floor, original),
        ),
        tables.figure(
            "marginal_distance",
            name,
            (marginal_distance(original, other) for other in counts),
            partial(marginal_floor, original),
        ),
    ]


def _pair_figures(tables: _Tables, subset: tuple[int, ...]) -> list[_Figure]:
    left, right = (tables.names[i] for i in subset)
    size = tables.category_counts[subset[1]]
    cells = tables.part(tables.original, subset)
    pairs = [align(cells, tables.part(table, subset)) for table in tables.synthetic]
    return [
        tables.figure(
            "tvd2",
            f"{left}, {right}",
            (total_variation(original, synthetic) for _, original, synthetic in pairs),
            partial(total_variation_floor, cells.counts),
        ),
        *(
            tables.figure(
                "conditional_distance",
                subject,
                (conditional_distance(given(keys, size), *counts) for keys, *counts in pairs),
                partial(conditional_floor, given(cells.keys, size), cells.counts),
            )
            for subject, given in (
                (f"{left} | {right}", np.remainder),
                (f"{right} | {left}", np.floor_divide),
            )
        ),
    ]


def _triple_figures(tables: _Tables, subset: tuple[int, ...]) -> list[_Figure]:
    cells = tables.part(tables.original, subset)
    return [
        tables.figure(
            "tvd3",
            ", ".join(tables.names[i] for i in subset),
            (
                total_variation(*align(cells, tables.part(table, subset))[1:])
                for table in tables.synthetic
            ),
            partial(total_variation_floor, cells.counts),
        )
    ]


def _distance_alone(tables: _Tables, subset: tuple[int, ...]) -> float:
    first, second = (tables.part(t, subset) for t in (tables.original, tables.synthetic[0]))
    return total_variation(*align(first, second)[1:])


def _record(figure: _Figure, tables: _Tables, *, note: str = "") -> Record:
    found = spread(figure.values, n=min(tables.rows))
    baseline = _mean(figure.floors)
    return measured(figure.name, figure.subject, found, baseline=baseline, note=note)


def _headline(name: str, figures: list[_Figure], tables: _Tables) -> Record:
    ours = [figure for figure in figures if figure.name == name]
    count = len(tables.synthetic)
    values, floors = (
        tuple(_mean(getattr(figure, field)[k] for figure in ours) for k in range(count))
        for field in ("values", "floors")
    )
    computed = ours or name == "regression_distance"
    note = _NOTES[name] if computed else "not computed: too few features"
    return _record(_Figure(name, "", values, floors), tables, note=note)


def _weighted(pairs: list[_Figure], tables: _Tables) -> Record:
    """Mean over pairs, each counted by the information that its features can share."""
    ours = [figure for figure in pairs if figure.name == "tvd2"]
    entropies = []
    for column, size in zip(tables.original, tables.category_counts, strict=True):
        counts = one_way(column, size)
        p = shares(counts[counts > 0])
        entropies.append(float(-(p * np.log(p)).sum()))
    weights = np.array([min(pair) for pair in combinations(entropies, 2)])
    if not weights.sum() > 0:
        reason = "no two features vary in the original"
        return not_computed(WEIGHTED, "", reason, n=min(tables.rows))
    values, floors = (
        np.average([getattr(figure, field) for figure in ours], axis=0, weights=weights)
        for field in ("values", "floors")
    )
    means = _Figure(WEIGHTED, "", tuple(values.tolist()), tuple(floors.tolist()))
    return _record(means, tables, note=_WEIGHTED_NOTE)


def _uniqueness(tables: _Tables, schema: Schema) -> Record:
    quasi = [i for i, f in enumerate(schema.features) if f.role == "quasi-identifier"]
    if not quasi:
        reason = "the schema marks no feature as a quasi-identifier"
        return not_computed("uniqueness", "", reason, n=min(tables.rows))
    sizes = [tables.category_counts[i] for i in quasi]
    original = group_sizes(tables.original[quasi], sizes)
    groups = [group_sizes(table[quasi], sizes) for table in tables.synthetic]
    smaller = [min(tables.original.shape[1], rows) for rows in tables.rows]
    figure = _Figure(
        "uniqueness",
        "",
        tuple(expected_uniqueness(g, rows=n) for g, n in zip(groups, smaller, strict=True)),
        tuple(expected_uniqueness(original, rows=n) for n in smaller),
    )
    names = ", ".join(tables.names[i] for i in quasi)
    note = _NOTES["uniqueness"].format(features=names, rows=min(smaller))
    record = _record(figure, tables, note=note)
    varied = [uniqueness_variance(g, rows=n) for g, n in zip(groups, smaller, strict=True)]
    theirs = float(np.mean([uniqueness_variance(original, rows=n) for n in set(smaller)]))
    variance, every = sum(varied) / len(groups) ** 2 + theirs, sum(smaller)
    value, baseline = record.value or 0.0, record.baseline or 0.0
    # A row stops being alone together with the one that joins it.
    found = lumped_share(value, every, variance * every**2, lump=2, level=LEVEL)
    no_power = crowded(baseline, every, lump=2, level=LEVEL)
    return msgspec.structs.replace(record, low=found.low, high=found.high, no_power=no_power)


def _marginal(tables: _Tables, schema: Schema, index: int) -> Marginal:
    feature = schema.features[index]
    size = feature.category_count
    synthetic = [shares(one_way(table[index], size)) for table in tables.synthetic]
    return Marginal(
        feature=feature.name,
        label=feature.label,
        categories=feature.labels,
        original=tuple(shares(one_way(tables.original[index], size)).tolist()),
        synthetic=tuple(np.mean(synthetic, axis=0).tolist()),
    )


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return float(np.mean(found)) if found else float("nan")
