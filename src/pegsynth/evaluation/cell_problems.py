"""What is wrong with tables of codes: groups lost, impossible rows, pairs without dependence.

Goes in: codes of the original and of the synthetic tables, one feature a line. Comes out: problems
of three kinds, drafts of rules against rows that cannot be, and the share of rows in combinations
that the original lacks. A group is a category, or a combination of quasi-identifiers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from pegsynth.codec.tabulation import count_cells, group_rows
from pegsynth.evaluation.problems import (
    KIND_ALARMS,
    Problem,
    bernstein,
    counts_explained,
    distance_allowance,
    rows_judged,
)
from pegsynth.evaluation.records import SEPARATOR, Record, measured
from pegsynth.evaluation.utility.distances import total_variation_floor
from pegsynth.inference.statistics import Estimate
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.schema import Schema
from pegsynth.schema.rules import Rule
from pegsynth.schema.toml_text import rule_text

TIMES, NEARLY = 2.0, 0.1
APART, KEPT, DEPENDENT = 0.10, 0.5, 0.02
DRAFT = "drafted_rule"
NEW = "new_combinations"
SUBGROUP_RULE = (
    "Subgroups change where the share of a category, or of a combination of two or of all "
    f"quasi-identifiers, is at most 1/{TIMES:g} or at least {TIMES:g} times the original's, and "
    "chance does not explain it; “all but vanishes” is less than a tenth. The noise that is named "
    "is two standard deviations of the best count that the release published of the group."
)
IMPOSSIBLE_RULE = (
    "Rows are impossible where two categories that never meet in the original meet in more rows of "
    "the release than chance explains, and would have met in the original by chance if the "
    "features were independent. A draft of a rule against them is marked drafted_from_data: "
    "it may be used only if somebody knows, from elsewhere, that it holds for everybody."
)
PAIR_RULE = (
    "A pair of features is far apart where more rows than a fresh sample has, plus "
    f"{APART:.0%}, would have to change; it has lost its dependence where, in the cells that the "
    "original fills more than independence would, less than "
    f"{KEPT:.0%} of that surplus is left and {DEPENDENT:.0%} of the rows are missing; and chance "
    "explains neither."
)
_MOST_DRAFTED = 20


@dataclass(frozen=True)
class CellTables:
    """All tables, one feature a line, and what is known of their noise.

    Parameters
    ----------
    original, synthetic
        The codes; weighted rows repeated as often as they weigh.
    noise
        Features to the standard deviation of their best published counts, empty where unknown.
    """

    schema: Schema
    original: Codes
    synthetic: tuple[Codes, ...]
    noise: Mapping[frozenset[str], float] = field(default_factory=dict)
    threads: int = 1

    @property
    def released(self) -> int:
        """Rows of the smallest synthetic table: uneven weights make no fewer of them."""
        return min(int(table.shape[1]) for table in self.synthetic)

    @property
    def rows(self) -> tuple[float, float]:
        """Rows of the original, and of the synthetic table to judge by."""
        return float(self.original.shape[1]), float(self.released)

    @property
    def every(self) -> tuple[Codes, ...]:
        """All tables, the original first."""
        return (self.original, *self.synthetic)


def cell_problems(
    tables: CellTables, *, level: float = KIND_ALARMS
) -> tuple[list[Problem], list[Record]]:
    """Check all tables of codes; `level` is the chance of a false alarm of each kind.

    Returns
    -------
    problems, records
        What is wrong, and records that belong to it.
    """
    pairs = list(combinations(range(len(tables.schema.features)), 2))
    with ThreadPoolExecutor(tables.threads) as pool:
        met = list(pool.map(lambda pair: _meet(tables, pair), pairs))
    cells = max(1, sum(len(each.keys) for each in met))
    bad = [(each, _impossible(tables, each, level / cells)) for each in met]
    problems = [
        *_changed_groups(tables, level),
        *(_impossible_rows(tables, each, places) for each, places in bad if places),
        *(problem for each in met for problem in _apart(tables, each, level / (2 * len(met)))),
    ]
    return problems, [*_new_shares(tables, met), *_drafts(tables, bad)]


def _changed_groups(tables: CellTables, level: float) -> Iterable[Problem]:
    """Check categories, and combinations of two quasi-identifiers and of all of them."""
    features = tables.schema.features
    quasi = [i for i, feature in enumerate(features) if feature.role == "quasi-identifier"]
    sets: list[tuple[int, ...]] = [(i,) for i in range(len(features))]
    sets += combinations(quasi, 2)
    if len(quasi) > 2:
        sets.append(tuple(quasi))
    counts = []
    for each in sets:
        groups = group_rows(tables.every, each, tables.schema.category_counts)
        shares = [
            groups.sizes(number) / table.shape[1]
            for number, table in enumerate(tables.synthetic, start=1)
        ]
        released = np.asarray(np.mean(shares, axis=0) * tables.released, dtype=np.float64)
        counts.append((groups.sizes(0), released))
    tested = sum(np.count_nonzero((before > 0) | (after > 0)) for before, after in counts)
    for each, (before, after) in zip(sets, counts, strict=True):
        yield from _changed_group(tables, each, before, after, level / max(1, tested))


def _changed_group(
    tables: CellTables, features: tuple[int, ...], original: Int64, released: Float64, alpha: float
) -> Iterable[Problem]:
    """Name the group of some features that changes most, and how many others do."""
    rows = tables.rows
    expected = original * (rows[1] / rows[0])
    low, high = np.minimum(expected, released), np.maximum(expected, released)
    changed = []
    for code in np.flatnonzero(TIMES * low <= high):
        before, after = float(original[code]), float(released[code])
        if before + after and not counts_explained(before, after, rows, alpha):
            changed.append((_evidence(before, after, rows), int(code)))
    if not changed:
        return
    weight, worst = max(changed)
    before, after = float(original[worst]), float(released[worst])
    names = [tables.schema.names[i] for i in features]
    more = len(changed) - 1
    one, many = ("category", "categories") if len(names) == 1 else ("group", "groups")
    which = f"{more:,} more {one if more == 1 else many} of {', '.join(names)}"
    others = f"; {which} {'is' if more == 1 else 'are'} flagged as well" if more else ""
    noise = tables.noise.get(frozenset(names))
    explained = (
        "" if noise is None else f"; noise alone moves this count by up to {2 * noise:,.0f} rows"
    )
    # Counted again, as the groups of all rows are too large to be kept for the few that are named.
    groups = group_rows(tables.every, features, tables.schema.category_counts)
    table = next(t for t, each in enumerate(groups.ids) if (each == worst).any())
    row = int(np.argmax(groups.ids[table] == worst))
    name = _named(tables.schema, features, [int(tables.every[table][i, row]) for i in features])
    share, left = before / rows[0], max(after / rows[1], 1 / rows[1])
    yield Problem(
        "subgroups",
        ", ".join(names),
        f"{name} {_fate(share, after / rows[1])} ({after:,.0f} of {rows[1]:,.0f} rows, "
        f"originally {before:,.0f} of {rows[0]:,.0f}{explained}){others}",
        min(left / max(share, 1 / rows[0]), rows[0]) if after / rows[1] > share else share / left,
        weight,
    )


def _evidence(before: float, after: float, rows: tuple[float, float]) -> float:
    """Return how little chance explains two counts: the exponent of Chernoff's bound."""
    both, share = before + after, rows[1] / (rows[0] + rows[1])
    parts = ((after / both, share), (before / both, 1 - share))
    return both * sum(q * math.log(q / p) for q, p in parts if q > 0)


@dataclass(frozen=True)
class _Met:
    """The table of two features: the cells that occur in either table, and their counts.

    Parameters
    ----------
    pair
        The features.
    keys, sides
        The cells that occur, and of each the categories of both features.
    original, released
        Rows of the original, and of the smallest synthetic table, in each.
    distance
        Mean total variation distance of the synthetic tables.
    """

    pair: tuple[int, int]
    keys: Int64
    sides: tuple[Int64, Int64]
    original: Float64
    released: Float64
    distance: float

    def product(self, counts: Float64) -> Float64:
        """Return for every cell the product of the sums of both of its categories."""
        left, right = self.sides
        return np.asarray(np.bincount(left, counts)[left] * np.bincount(right, counts)[right])


def _meet(tables: CellTables, pair: tuple[int, int]) -> _Met:
    sizes = [tables.schema.category_counts[i] for i in pair]
    parts = [count_cells(table[list(pair)], sizes) for table in tables.every]
    keys = parts[0].keys
    for part in parts[1:]:
        keys = np.union1d(keys, part.keys)
    shares = np.zeros((len(parts), len(keys)))
    for row, part in enumerate(parts):
        shares[row, np.searchsorted(keys, part.keys)] = part.counts / part.counts.sum()
    distance = float(np.abs(shares[1:] - shares[0]).sum(axis=1).mean() / 2)
    counts = np.rint(shares[0] * tables.original.shape[1])
    released = shares[1:].mean(axis=0) * tables.released
    return _Met(pair, keys, (keys // sizes[1], keys % sizes[1]), counts, released, distance)


def _impossible(tables: CellTables, met: _Met, alpha: float) -> list[int]:
    """Return the cells that only the release has and chance does not explain, largest first."""
    left, right = (np.bincount(side, met.original)[side] > 0 for side in met.sides)
    # A category that is itself new is a matter of subgroups.
    known = (met.original == 0) & left & right
    surprising = known & (met.product(met.original) / tables.rows[0] >= math.log(2 / alpha))
    bad = [
        place
        for place in np.flatnonzero(surprising).tolist()
        if not counts_explained(0.0, float(met.released[place]), tables.rows, alpha)
    ]
    return sorted(bad, key=lambda place: -met.released[place])


def _impossible_rows(tables: CellTables, met: _Met, bad: Sequence[int]) -> Problem:
    rows, names = tables.rows, [tables.schema.names[i] for i in met.pair]
    first, total, more = bad[0], float(met.released[bad].sum()), len(bad) - 1
    one, other = (
        _named(tables.schema, (i,), (int(side[first]),))
        for i, side in zip(met.pair, met.sides, strict=True)
    )
    others = (
        f", and {more:,} more combination{'s' if more > 1 else ''} of {names[0]} and {names[1]}, "
        f"{total:,.0f} rows in all"
    )
    return Problem(
        "impossible rows",
        ", ".join(names),
        f"{one} with {other} never occurs in the original and now does in "
        f"{met.released[first]:,.0f} of {rows[1]:,.0f} rows (independent features would have had "
        f"{met.product(met.original)[first] / rows[0]:,.0f} original rows){others if more else ''}",
        max(1.0, total),
    )


def _new_shares(tables: CellTables, met: Sequence[_Met]) -> Iterable[Record]:
    """Say of every pair how many synthetic rows are in combinations that the original lacks."""
    note = (
        "share of the synthetic rows in combinations that no original row has; baseline: expected "
        "of a fresh sample, the share of original rows that are alone in their cell (Good 1953)"
    )
    for each in met:
        share = float(each.released[each.original == 0].sum() / tables.rows[1])
        once = float(np.count_nonzero(each.original == 1) / tables.rows[0])
        subject = ", ".join(tables.schema.names[i] for i in each.pair)
        yield measured(NEW, subject, Estimate(share, n=tables.released), baseline=once, note=note)


def _drafts(tables: CellTables, bad: Iterable[tuple[_Met, Sequence[int]]]) -> Iterable[Record]:
    """Draft one rule for each category of the side that has fewer among the impossible cells."""
    drafts: list[tuple[float, Rule]] = []
    for met, places in bad:
        turn = 1 if len(set(met.sides[0][places])) <= len(set(met.sides[1][places])) else -1
        (near, far), pair = met.sides[::turn], met.pair[::turn]
        for code in dict.fromkeys(int(near[place]) for place in places):
            ours = [place for place in places if near[place] == code]
            partners = sorted({int(far[place]) for place in ours})
            rule = Rule.of({pair[0]: [code], pair[1]: partners}, drafted=True)
            drafts.append((float(met.released[ours].sum()), rule))
    drafts.sort(key=lambda draft: -draft[0])
    for rows, rule in drafts[:_MOST_DRAFTED]:
        features = ", ".join(tables.schema.names[i] for i, _ in rule.forbidden)
        cell = "; ".join(_named(tables.schema, (i,), sorted(c)[:1]) for i, c in rule.forbidden)
        text = rule_text(rule, tables.schema.features)
        found = Estimate(rows, n=tables.released)
        yield measured(DRAFT, f"{features}{SEPARATOR}{cell}", found, baseline=0.0, note=text)


def _apart(tables: CellTables, met: _Met, alpha: float) -> Iterable[Problem]:
    """Check how far two features are apart together, and what is left of their dependence.

    Dependence is the share of rows beyond independence in the cells where the original has more
    than it; of the original that is its distance from independence. The cells are those of the
    original, so that a release is not credited for noise elsewhere.
    """
    n = rows_judged(*tables.rows)
    names = [tables.schema.names[i] for i in met.pair]
    floor = total_variation_floor(met.original, max(1, int(n)))
    excess = met.distance - floor
    if excess > APART and excess > distance_allowance(n, alpha):
        yield Problem(
            "feature pairs",
            f"{', '.join(names)}{SEPARATOR}distance",
            f"{names[0]} and {names[1]} are far apart together ({met.distance:.1%} of the rows out "
            f"of place, {floor:.1%} in a fresh sample)",
            excess / APART,
        )
    left, right = met.sides
    shares, released = (counts / counts.sum() for counts in (met.original, met.released))
    more = shares > met.product(shares)
    kept, now = (float((each - met.product(each))[more].sum()) for each in (shares, released))
    lost = kept - now
    if not (lost > DEPENDENT and now < KEPT * kept):
        return
    # How much each row moves the figure of the original.
    influence = (
        more.astype(np.float64)
        - np.bincount(left, np.bincount(right, shares)[right] * more)[left]
        - np.bincount(right, np.bincount(left, shares)[left] * more)[right]
    )
    influence -= float(shares @ influence)
    variance = float(shares @ np.square(influence))
    if lost > bernstein(variance, float(np.abs(influence)[shares > 0].max()), n, alpha):
        yield Problem(
            "feature pairs",
            f"{', '.join(names)}{SEPARATOR}dependence",
            f"{names[0]} and {names[1]} depend less on each other ({max(0.0, now):.1%} of the rows "
            f"are where independence would not put them, originally {kept:.1%})",
            lost / DEPENDENT,
        )


def _named(schema: Schema, features: Sequence[int], codes: Sequence[int]) -> str:
    return ", ".join(
        f"{schema.names[i]} = {schema.features[i].labels[code]}"
        for i, code in zip(features, codes, strict=True)
    )


def _fate(share: float, released: float) -> str:
    if released == 0:
        return "vanishes"
    if share == 0:
        return "appears"
    if released < NEARLY * share:
        return "all but vanishes"
    return "becomes rarer" if released < share else "becomes more common"
