"""One-, two- and three-way tables of an original and its synthetic copies, compared.

Goes in: code matrices and the schema that made them. Comes out: `Metrics` with the paper's squared
distances, total variation, and for each its *floor*: the value expected when the synthetic table
is a bootstrap of the original, n rows drawn with replacement. A distance at its floor cannot be
told from sampling error.

Nothing is subsampled. Which three-way tables are compared is a fixed public choice, the same for
any data (`triples`). Who made the synthetic tables does not matter here.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations, count
from typing import TypeAlias

import msgspec
import numpy as np

from pegsynth.codec.tabulation import (
    CELL_LIMIT,
    Cells,
    align,
    column_major,
    count_cells,
    group_sizes,
    one_way,
)
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
from pegsynth.inference.statistics import LEVEL, lumped_share, spread
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.schema.schema import Schema

Counts: TypeAlias = Int64 | Float64

WEIGHTED = "tvd2_weighted"
_LARGE_MEAN = 500.0


def shares(counts: Counts) -> Float64:
    """Return counts as shares of their sum."""
    total = counts.sum()
    if not total > 0:
        raise ParameterError("a table of counts is empty, so it has no shares")
    return np.asarray(counts / total, dtype=np.float64)


def total_variation(p_counts: Counts, q_counts: Counts) -> float:
    """Total variation distance of two tables: half the sum of absolute differences of shares.

    Parameters
    ----------
    p_counts, q_counts
        Int64 of the same cells in both tables; the totals may differ.

    Returns
    -------
    float
        Between 0 and 1: the share of rows that must change cell to make the tables equal.
    """
    if p_counts.shape != q_counts.shape:
        raise ParameterError("the two tables of counts have different cells; align them first")
    # Sums of shares are rounded, and may come to a little more than all.
    return min(float(np.abs(shares(p_counts) - shares(q_counts)).sum() / 2), 1.0)


def total_variation_floor(counts: Counts, rows: int) -> float:
    """Total variation expected of `rows` rows drawn from these counts.

    Exact: half the sum over cells of E|X/n - p| for X ~ Binomial(n, p), by de Moivre's
    formula E|X - np| = 2 v (1-p) P(X = v) with v = floor(np) + 1. (For large np it is the
    familiar sqrt(2np(1-p)/pi).)
    """
    from scipy.special import gammaln, xlogy

    p = shares(counts[counts > 0])
    p = p[p < 1]
    v = np.minimum(np.floor(rows * p) + 1, rows)
    log_probability = (
        gammaln(rows + 1.0)
        - gammaln(v + 1)
        - gammaln(rows - v + 1)
        + xlogy(v, p)
        + (rows - v) * np.log1p(-p)
    )
    return float(np.sum(v * (1 - p) * np.exp(log_probability)) / rows)


def marginal_distance(original: Counts, synthetic: Counts) -> float:
    """Return the paper's marginal distance: sum over x of (p_synth(x) - p_orig(x))^2."""
    return float(np.square(shares(synthetic) - shares(original)).sum())


def marginal_floor(counts: Counts, rows: int) -> float:
    """Marginal distance expected of a bootstrap: (1 - sum p^2)/n, exact."""
    return float((1 - np.square(shares(counts)).sum()) / rows)


def conditional_distance(given: Int64, original: Int64, synthetic: Int64) -> float:
    """Return the paper's conditional distance of x_i given x_j, every x_j with weight one.

    The sum over x_j and x_i of (p_synth(x_i|x_j) - p_orig(x_i|x_j))^2. Where a value x_j
    occurs in one table only, the other's conditional counts as all zeros, so that x_j adds
    the sum of squares of the one that exists; where it occurs in neither it adds nothing.

    Parameters
    ----------
    given
        Code of x_j in every cell.
    original, synthetic
        Int64 of the cells.
    """
    difference = _conditional(given, synthetic) - _conditional(given, original)
    return float(np.square(difference).sum())


def conditional_floor(given: Int64, counts: Int64, rows: int) -> float:
    """Conditional distance expected of a bootstrap.

    A value x_j of share p_j is drawn about Poisson(n p_j) times. Drawn k > 0 times it adds
    (1 - s_j)/k on average, s_j the sum of p(x_i|x_j)^2; not drawn at all it adds s_j. The
    Poisson law in place of the binomial is the only approximation.
    """
    squares = np.bincount(given, np.square(_conditional(given, counts)))
    totals = np.bincount(given, counts)
    seen = totals > 0
    mean = rows * totals[seen] / totals.sum()
    one_over, squares = _mean_of_reciprocal(mean), squares[seen]
    return float(np.sum((1 - squares) * one_over + np.exp(-mean) * squares))


def _conditional(given: Int64, counts: Int64) -> Float64:
    totals = np.bincount(given, counts)
    return np.asarray(counts / np.maximum(totals, 1)[given], dtype=np.float64)


def _mean_of_reciprocal(mean: Float64) -> Float64:
    """E[1/X; X > 0] for X ~ Poisson(mean): exp(-mean) (Ei(mean) - gamma - log mean)."""
    from scipy.special import expi

    small = np.minimum(mean, _LARGE_MEAN)
    exact = np.exp(-small) * (expi(small) - np.euler_gamma - np.log(small))
    # Beyond that exp and Ei leave the range of doubles; the asymptotic series is exact there.
    series = (1 + (1 + (2 + 6 / mean) / mean) / mean) / mean
    return np.asarray(np.where(mean < _LARGE_MEAN, exact, series), dtype=np.float64)


Triple = tuple[int, int, int]

MOST_TRIPLES = 100
RULE = (
    f"all triples of features, or {MOST_TRIPLES} of them drawn by a fixed public rule: draw d = 0, "
    '1, .. is the SHA-256 of "pegsynth triple d", whose first three 8-byte numbers modulo the '
    "number of features name a triple; draws with a repeated feature or an earlier triple are "
    "passed over, and so are triples of 2^63 cells or more"
)
_WORD = 8
# Only triples that are too large to number can exhaust the draws; then fewer are compared.
_MOST_DRAWS = 10_000


def triples(category_counts: Sequence[int]) -> list[Triple]:
    """Choose the triples of features whose tables are compared, by `RULE`."""
    features = len(category_counts)
    source = (
        iter(combinations(range(features), 3))
        if math.comb(features, 3) <= MOST_TRIPLES
        else _drawn(features)
    )
    chosen: dict[Triple, None] = {}
    for triple in source:
        if math.prod(category_counts[i] for i in triple) < CELL_LIMIT:
            chosen[triple] = None
        if len(chosen) == MOST_TRIPLES:
            break
    return sorted(chosen)


def _drawn(features: int) -> Iterator[Triple]:
    for draw in count():
        if draw == _MOST_DRAWS:
            return
        digest = hashlib.sha256(f"pegsynth triple {draw}".encode()).digest()
        words = (digest[start : start + _WORD] for start in range(0, 3 * _WORD, _WORD))
        first, second, third = sorted(int.from_bytes(word, "big") % features for word in words)
        if first < second < third:
            yield first, second, third


_FLOOR = "baseline: expected of a bootstrap of the original with as many rows"
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
    WEIGHTED: "mean total variation distance of all two-way tables, every pair weighted by the "
    "smaller of its two entropies in the original, so that columns that hardly vary do not dilute "
    f"it; {_FLOOR}, exact (binomial)",
}


@dataclass(frozen=True)
class _Figure:
    """One measure of one subject: value and floor for each synthetic table."""

    name: str
    subject: str
    values: Sequence[float]
    floors: Sequence[float]


@dataclass(frozen=True)
class _Tables:
    """The original and the synthetic tables, one feature a row."""

    names: tuple[str, ...]
    category_counts: tuple[int, ...]
    original: Codes
    synthetic: tuple[Codes, ...]

    @classmethod
    def of(
        cls,
        original: Codes,
        synthetic: Sequence[Codes],
        category_counts: Sequence[int],
        names: tuple[str, ...] = (),
    ) -> _Tables:
        """Check code matrices, rows by features."""
        return cls(
            names or tuple(f"feature {i + 1}" for i in range(len(category_counts))),
            tuple(category_counts),
            column_major(original, category_counts, what="original"),
            tuple(
                column_major(codes, category_counts, what=f"synthetic table {number}")
                for number, codes in enumerate(synthetic, start=1)
            ),
        )

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows of each synthetic table."""
        return tuple(table.shape[1] for table in self.synthetic)

    def cells(self, table: Codes, subset: Sequence[int]) -> Cells:
        """Count the cells of some features of a table."""
        sizes = [self.category_counts[i] for i in subset]
        if len(subset) == 1:
            return Cells(np.arange(sizes[0]), one_way(table[subset[0]], sizes[0]))
        return count_cells(table[list(subset)], sizes)

    def figures(self, subset: Sequence[int]) -> list[_Figure]:
        """Compare the table of one, two or three features in every measure that it has."""
        names = [self.names[i] for i in subset]
        cells = self.cells(self.original, subset)
        pairs = [align(cells, self.cells(table, subset)) for table in self.synthetic]
        floor = partial(total_variation_floor, cells.counts)
        distances = [total_variation(*both) for _, *both in pairs]
        found = [(f"tvd{len(subset)}", ", ".join(names), distances, floor)]
        if len(subset) == 1:
            floor = partial(marginal_floor, cells.counts)
            distances = [marginal_distance(*both) for _, *both in pairs]
            found.append(("marginal_distance", names[0], distances, floor))
        if len(subset) == 2:
            size = self.category_counts[subset[1]]
            subjects = f"{names[0]} | {names[1]}", f"{names[1]} | {names[0]}"
            for subject, given in zip(subjects, (np.remainder, np.floor_divide), strict=True):
                floor = partial(conditional_floor, given(cells.keys, size), cells.counts)
                distances = [conditional_distance(given(keys, size), *c) for keys, *c in pairs]
                found.append(("conditional_distance", subject, distances, floor))
        # A floor is worked out once for each number of rows.
        floors = [{rows: each[3](rows) for rows in set(self.rows)} for each in found]
        return [
            _Figure(name, subject, values, [known[rows] for rows in self.rows])
            for (name, subject, values, _), known in zip(found, floors, strict=True)
        ]


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
    tables = _Tables.of(original, synthetic, schema.category_counts, schema.names)
    published = tables
    if released is not None:
        published = _Tables.of(original, released, schema.category_counts, schema.names)
    features = range(len(schema.features))
    subsets = (
        combinations(features, 1),
        combinations(features, 2),
        triples(tables.category_counts),
    )
    if threads < 1:
        raise ParameterError("threads must be at least 1")
    with ThreadPoolExecutor(threads) as pool:
        figures = [f for some in subsets for part in pool.map(tables.figures, some) for f in part]
    headlines = [
        _uniqueness(published, schema) if name == "uniqueness" else _headline(name, figures, tables)
        for name in SUMMARY_KEYS
    ]
    return Metrics(
        summary={record.name: record.value for record in headlines},
        records=(
            *headlines,
            _weighted(figures, tables),
            *(_record(figure, tables) for figure in figures),
        ),
        marginals=tuple(_marginal(tables, schema, index) for index in features),
    )


def _record(figure: _Figure, tables: _Tables, *, note: str = "") -> Record:
    found = spread(figure.values, n=min(tables.rows))
    baseline = float(np.mean(figure.floors))
    return measured(figure.name, figure.subject, found, baseline=baseline, note=note)


def _headline(
    name: str, figures: Sequence[_Figure], tables: _Tables, weights: Float64 | None = None
) -> Record:
    """Return the mean over all subjects of a measure."""
    of = "tvd2" if name == WEIGHTED else name
    ours = [figure for figure in figures if figure.name == of]
    values, floors = ([math.nan] * len(tables.synthetic) for _ in range(2))
    if ours:
        values, floors = (
            [np.average(column, weights=weights) for column in zip(*both, strict=True)]
            for both in ([each.values for each in ours], [each.floors for each in ours])
        )
    computed = ours or name == "regression_distance"
    note = _NOTES[name] if computed else "not computed: too few features"
    return _record(_Figure(name, "", values, floors), tables, note=note)


def _weighted(figures: Sequence[_Figure], tables: _Tables) -> Record:
    """Mean over pairs, each counted by the information that its features can share."""
    entropies = []
    for column, size in zip(tables.original, tables.category_counts, strict=True):
        counts = one_way(column, size)
        p = shares(counts[counts > 0])
        entropies.append(float(-(p * np.log(p)).sum()))
    weights = np.array([min(pair) for pair in combinations(entropies, 2)])
    if weights.sum() > 0:
        return _headline(WEIGHTED, figures, tables, weights)
    reason = "no two features vary in the original"
    return not_computed(WEIGHTED, "", reason, n=min(tables.rows))


def _uniqueness(tables: _Tables, schema: Schema) -> Record:
    quasi = [i for i, f in enumerate(schema.features) if f.role == "quasi-identifier"]
    if not quasi:
        reason = "the schema marks no feature as a quasi-identifier"
        return not_computed("uniqueness", "", reason, n=min(tables.rows))
    sizes = [tables.category_counts[i] for i in quasi]
    original = group_sizes(tables.original[quasi], sizes)
    groups = [group_sizes(table[quasi], sizes) for table in tables.synthetic]
    smaller = [min(tables.original.shape[1], rows) for rows in tables.rows]
    values = [expected_uniqueness(g, rows=n) for g, n in zip(groups, smaller, strict=True)]
    floors = [expected_uniqueness(original, rows=n) for n in smaller]
    names = ", ".join(tables.names[i] for i in quasi)
    note = _NOTES["uniqueness"].format(features=names, rows=min(smaller))
    record = _record(_Figure("uniqueness", "", values, floors), tables, note=note)
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
