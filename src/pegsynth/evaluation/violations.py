"""Rows that violate k-anonymity or l-diversity.

A row violates k-anonymity when fewer than k rows of its table share its identifying
features. It violates l-diversity of a sensitive feature when the rows that share its
identifying features hold too few different values of that feature: fewer than l of them
(*distinct*), or of an entropy below log l (*entropy*; natural logarithm, missing is a value
like any other). Both are counted over every row, so that the figures are exact.

A synthetic row does not belong to a person. A small group is a warning only where the rows
of the release may be taken for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Int64
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.evaluation.risk_tables import NO_IDENTIFIER, NO_SENSITIVE, SEED, RiskTables
from pegsynth.evaluation.statistics import Estimate
from pegsynth.evaluation.tabulation import Crossing, Groups, cross, group_rows

NAMES = ("k_anonymity_violations", "l_diversity_violations")
SIZES = (5, 2, 3)
DEFAULT_L = 2.0
DRAWS = 20
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Diversity:
    """Whether the group of each cell is too poor in values, in two senses."""

    entropy: NDArray[np.bool_]
    distinct: NDArray[np.bool_]


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


def diversity(crossing: Crossing, counts: Int64, l: float) -> Diversity:  # noqa: E741
    """Judge the group of each cell from the rows in its cells."""
    starts, position = crossing.starts()
    total = np.maximum(np.add.reduceat(counts, starts), 1)
    shares = counts / total[position]
    terms = -shares * np.log(shares, where=shares > 0, out=np.zeros(len(shares)))
    entropy = np.add.reduceat(terms, starts)
    distinct = np.add.reduceat((counts > 0).astype(np.int64), starts)
    return Diversity(
        (entropy < np.log(l) - _ROUNDING)[position], (distinct < l - _ROUNDING)[position]
    )


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
    violating = [int(each[each < k].sum()) for each in sizes[1:]]
    original = [
        below_size(sizes[0], k, rows=min(table.shape[1], tables.rows)) for table in tables.tables
    ]
    what = f"fewer than {k} rows of their table share their {tables.listed(tables.identifiers)}"
    return _record(tables, NAMES[0], f"k = {k}", violating, original, what, "in exact expectation")


def _l_diversity(tables: RiskTables, groups: Groups, feature: int, l: float) -> list[Record]:  # noqa: E741
    columns = [table[feature] for table in (tables.original, *tables.tables)]
    crossing = cross(groups, columns, tables.sizes[feature])
    judged = [_violating(crossing, crossing.counts(cells), l) for cells in crossing.cells[1:]]
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
            [each[number] for each in judged],
            [float(each[number]) for each in originals],
            f"the rows that share their {tables.listed(tables.identifiers)} hold {whats[number]}",
            f"mean over {DRAWS} seeded draws",
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
    violating: list[int],
    original: list[float],
    what: str,
    how: str,
) -> Record:
    rows = [table.shape[1] for table in tables.tables]
    shares = [count / n for count, n in zip(violating, rows, strict=True)]
    larger = max(rows) > tables.rows
    baseline = (
        f"the original with all its {tables.rows} rows, fewer than are released"
        if larger
        else f"the original with all its {tables.rows} rows"
        if min(rows) == tables.rows
        else f"the original thinned to as many rows, {how}"
    )
    note = (
        f"share of released rows that violate: {what}; {sum(violating)} of {sum(rows)} rows; "
        f"exact, so that the interval is the range over the released tables; baseline: {baseline}"
    )
    estimate = Estimate(sum(violating) / sum(rows), min(shares), max(shares), sum(rows))
    return measured(name, subject, estimate, baseline=float(np.mean(original)), note=note)
