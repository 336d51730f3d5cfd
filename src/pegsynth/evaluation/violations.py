"""Rows that violate k-anonymity or l-diversity.

A row violates k-anonymity when fewer than k rows of its table share its identifying
features. It violates l-diversity of a sensitive feature when the rows that share its
identifying features hold too few different values of that feature: fewer than l of them
(*distinct*), or of an entropy below log l (*entropy*; natural logarithm, missing is a value
like any other). Both are counted over every row, so that the figures are exact. Their intervals
say how far a fresh draw of as many rows, of either table, may be off.

A synthetic row does not belong to a person. A small group is a warning only where the rows
of the release may be taken for people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Int64
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.evaluation.risk_tables import NO_IDENTIFIER, NO_SENSITIVE, SEED, RiskTables
from pegsynth.evaluation.statistics import jackknife, lumped_share
from pegsynth.evaluation.tabulation import Crossing, Groups, cross, group_rows
from pegsynth.evaluation.uniqueness import crowded

NAMES = ("k_anonymity_violations", "l_diversity_violations")
SIZES = (5, 2, 3)
DEFAULT_L = 2.0
DRAWS = 20
REDRAWN = 40
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Diversity:
    """Whether the group of each cell is too poor in values, in two senses."""

    entropy: NDArray[np.bool_]
    distinct: NDArray[np.bool_]


@dataclass(frozen=True)
class _Count:
    """Rows of a released table that violate, and the variance of their number."""

    rows: int
    variance: float


def below_size(sizes: Int64, k: int, *, rows: int) -> float:
    """Share of rows in groups of fewer than k, expected in a random part of a table.

    Parameters
    ----------
    sizes
        Rows of every group of the table, sum N.
    rows
        Rows n of the part, at most N, drawn without replacement; N gives the table's own.

    Notes
    -----
    A row of a group of c rows is in a group below k when at most k - 2 of the other c - 1
    are drawn: a hypergeometric probability, exact.
    """
    from scipy.special import gammaln

    def ways(total: Any, taken: int) -> Any:
        return gammaln(total + 1) - gammaln(taken + 1) - gammaln(total - taken + 1)

    total = int(sizes.sum())
    groups = np.bincount(sizes)
    groups[0] = 0
    found = np.flatnonzero(groups)
    others, chance = found - 1.0, np.zeros(len(found))
    all_ways = ways(total - 1, rows - 1)
    for taken in range(min(k - 1, rows)):
        possible = (others >= taken) & (total - 1 - others >= rows - 1 - taken)
        part = others[possible]
        chance[possible] += np.exp(
            ways(part, taken) + ways(total - 1 - part, rows - 1 - taken) - all_ways
        )
    return float(np.dot(groups[found] * found, np.minimum(chance, 1.0)) / total)


def small_groups_variance(sizes: Int64, k: int) -> float:
    """Variance of the number of rows in groups of fewer than k, over draws of all rows.

    Notes
    -----
    The jackknife: without one of its rows a group below k has one row fewer, and one of k rows
    joins with k - 1.
    """
    below, at = sizes[sizes < k].sum(), sizes[sizes == k].sum()
    return jackknife([(-1.0, float(below)), (k - 1.0, float(at))], rows=int(sizes.sum()))


def diversity(crossing: Crossing, counts: Int64, l: float) -> Diversity:  # noqa: E741
    """Judge the group of each cell from the rows in its cells."""
    starts, position = crossing.starts()
    groups = _Moments(
        np.add.reduceat(counts, starts),
        np.add.reduceat(_times_log(counts), starts),
        np.add.reduceat((counts > 0).astype(np.int64), starts),
    )
    entropy, distinct = groups.poor(l)
    return Diversity(entropy[position], distinct[position])


def diversity_variances(crossing: Crossing, counts: Int64, l: float) -> tuple[float, float]:  # noqa: E741
    """Variances of the rows in groups too poor by entropy, and by distinct values.

    A large group near the threshold crosses it together with all its rows, and hardly ever for
    want of a single one. So the variance is the larger of the jackknife's and of that of `REDRAWN`
    seeded redraws of the cells.
    """
    starts, position = crossing.starts()
    total = np.add.reduceat(counts, starts)[position]
    logs = np.add.reduceat(_times_log(counts), starts)[position]
    values = np.add.reduceat((counts > 0).astype(np.int64), starts)[position]
    filled = counts > 0
    total, values, ours = (each[filled] for each in (total, values, counts))
    logs = logs[filled]
    before = _Moments(total, logs, values).poor(l)
    fewer = _Moments(
        total - 1, logs - _times_log(ours) + _times_log(ours - 1), values - (ours == 1)
    ).poor(l)
    changes = (
        np.where(now, total - 1, 0) - np.where(was, total, 0)
        for was, now in zip(before, fewer, strict=True)
    )
    found = [
        jackknife(zip(change.tolist(), ours.tolist(), strict=True), rows=int(counts.sum()))
        for change in changes
    ]
    generator = np.random.default_rng([SEED, 5])
    shares = counts / counts.sum()
    redrawn = np.var(
        [
            _violating(crossing, generator.multinomial(counts.sum(), shares), l)
            for _ in range(REDRAWN)
        ],
        axis=0,
        ddof=1,
    )
    return max(found[0], float(redrawn[0])), max(found[1], float(redrawn[1]))


@dataclass(frozen=True)
class _Moments:
    """Rows of groups, their sums of c log c over values, and how many values they have."""

    total: Int64
    logs: NDArray[np.float64]
    values: Int64

    def poor(self, l: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:  # noqa: E741
        """Say which are too poor, by entropy and by distinct values; empty groups are."""
        rows = np.maximum(self.total, 1)
        entropy = np.log(rows) - self.logs / rows
        return entropy < np.log(l) - _ROUNDING, self.values < l - _ROUNDING


def _times_log(counts: Int64) -> NDArray[np.float64]:
    return np.asarray(counts * np.log(np.maximum(counts, 1)), dtype=np.float64)


def violation_records(tables: RiskTables, wanted: Mapping[int, float]) -> list[Record]:
    """Count violations in the released tables, and in the original as their baseline.

    Parameters
    ----------
    wanted
        l of each sensitive feature that has one; the others get `DEFAULT_L`.
    """
    if not tables.identifiers:
        return [not_computed(name, "", NO_IDENTIFIER) for name in NAMES]
    groups = group_rows([tables.original, *tables.tables], tables.identifiers, tables.sizes)
    records = [_k_anonymity(tables, groups, k) for k in SIZES]
    if not tables.sensitive:
        return [*records, not_computed(NAMES[1], "", NO_SENSITIVE)]
    for feature in tables.sensitive:
        records += _l_diversity(tables, groups, feature, wanted.get(feature, DEFAULT_L))
    return records


def _k_anonymity(tables: RiskTables, groups: Groups, k: int) -> Record:
    sizes = [groups.sizes(number) for number in range(1 + len(tables.tables))]
    violating = [
        _Count(int(each[each < k].sum()), small_groups_variance(each, k)) for each in sizes[1:]
    ]
    original = [
        below_size(sizes[0], k, rows=min(table.shape[1], tables.rows)) for table in tables.tables
    ]
    what = f"fewer than {k} rows of their table share their {tables.listed(tables.identifiers)}"
    how = "in exact expectation"
    return _record(tables, NAMES[0], f"k = {k}", violating, original, what, how, k)


def _l_diversity(tables: RiskTables, groups: Groups, feature: int, l: float) -> list[Record]:  # noqa: E741
    columns = [table[feature] for table in (tables.original, *tables.tables)]
    crossing = cross(groups, columns, tables.sizes[feature])
    counted = [crossing.counts(cells) for cells in crossing.cells[1:]]
    judged = [_violating(crossing, counts, l) for counts in counted]
    varied = [diversity_variances(crossing, counts, l) for counts in counted]
    originals = [_thinned(crossing, table.shape[1], l) for table in tables.tables]
    name = tables.names[feature]
    whats = (
        f"values of {name} of entropy below log {l:g}",
        f"fewer than {l:g} different values of {name}",
    )
    return [
        _record(
            tables,
            NAMES[1],
            f"{name}, {kind} l = {l:g}",
            [_Count(j[number], v[number]) for j, v in zip(judged, varied, strict=True)],
            [float(each[number]) for each in originals],
            f"the rows that share their {tables.listed(tables.identifiers)} hold {whats[number]}",
            f"mean over {DRAWS} seeded draws",
            math.ceil(l),
        )
        for number, kind in enumerate(("entropy", "distinct"))
    ]


def _violating(crossing: Crossing, counts: Int64, l: float) -> tuple[int, int]:  # noqa: E741
    poor = diversity(crossing, counts, l)
    return int(counts[poor.entropy].sum()), int(counts[poor.distinct].sum())


def _thinned(crossing: Crossing, rows: int, l: float) -> NDArray[np.float64]:  # noqa: E741
    """Shares of the original's rows that violate, at as many rows as a released table."""
    cells = crossing.cells[0]
    if rows >= len(cells):
        return np.array(_violating(crossing, crossing.counts(cells), l)) / len(cells)
    generator = np.random.default_rng([SEED, 4])
    parts = (generator.choice(cells, rows, replace=False, shuffle=False) for _ in range(DRAWS))
    violating = [_violating(crossing, crossing.counts(part), l) for part in parts]
    return np.asarray(np.mean(violating, axis=0) / rows, dtype=np.float64)


def _record(
    tables: RiskTables,
    name: str,
    subject: str,
    violating: list[_Count],
    original: list[float],
    what: str,
    how: str,
    lump: float,
) -> Record:
    rows = [table.shape[1] for table in tables.tables]
    larger = max(rows) > tables.rows
    baseline = (
        f"the original with all its {tables.rows} rows, fewer than are released"
        if larger
        else f"the original with all its {tables.rows} rows"
        if min(rows) == tables.rows
        else f"the original thinned to as many rows, {how}"
    )
    count, every = sum(each.rows for each in violating), sum(rows)
    note = (
        f"share of released rows that violate: {what}; {count} of {every} rows, exact; interval: "
        f"{100 * tables.level:g} %, for fresh draws of as many rows of either table (jackknife "
        f"and redraws, score limits); baseline: {baseline}"
    )
    # The original's share varies by at most n/N of what a sample of n rows of it does.
    variance = sum(each.variance for each in violating) * (1 + every / len(rows) / tables.rows)
    found = lumped_share(count / every, every, variance, lump=lump, level=tables.level)
    share = float(np.mean(original))
    no_power = crowded(share, every, lump=lump, level=tables.level)
    return measured(name, subject, found, baseline=share, note=note, no_power=no_power)
