"""What is wrong with tables of codes: groups lost, rows that cannot be, pairs torn apart.

Goes in: codes of the original and of the synthetic tables, one feature a line. Comes out: faults
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
from pegsynth.evaluation.faults.fault_kinds import (
    KIND_ALARMS,
    Fault,
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
    f"{APART:.0%}, are out of place in its table; it is torn apart where, in the cells that the "
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


@dataclass(frozen=True)
class CellFindings:
    """Faults, and records that belong to them."""

    faults: tuple[Fault, ...]
    records: tuple[Record, ...]


def cell_findings(tables: CellTables, *, level: float = KIND_ALARMS) -> CellFindings:
    """Judge all tables of codes; `level` is the chance of a false alarm of each kind."""
    pairs = list(combinations(range(len(tables.schema.features)), 2))
    with ThreadPoolExecutor(tables.threads) as pool:
        met = list(pool.map(lambda pair: _meet(tables, pair), pairs))
    cells = max(1, sum(len(each.keys) for each in met))
    found = [_impossible(tables, each, level / cells) for each in met]
    groups = list(_groups(tables, level))
    apart = [fault for each in met for fault in _apart(tables, each, level / (2 * len(met)))]
    return CellFindings(
        (*groups, *(each.fault for each in found if each.fault), *apart),
        tuple(_records(tables, found)),
    )


@dataclass(frozen=True)
class _Group:
    """Groups of one or more features, and their counts."""

    features: tuple[int, ...]
    original: Int64
    released: Float64


def _groups(tables: CellTables, level: float) -> Iterable[Fault]:
    """Judge categories, and combinations of two quasi-identifiers and of all of them."""
    quasi = [i for i, f in enumerate(tables.schema.features) if f.role == "quasi-identifier"]
    sets = [*((i,) for i in range(len(tables.schema.features))), *combinations(quasi, 2)]
    if len(quasi) > 2:
        sets.append(tuple(quasi))
    kinds = [_counted(tables, features) for features in sets]
    tested = sum(np.count_nonzero((g.original > 0) | (g.released > 0)) for g in kinds)
    for group in kinds:
        yield from _judged_group(tables, group, level / max(1, tested))


def _counted(tables: CellTables, features: tuple[int, ...]) -> _Group:
    groups = group_rows(tables.every, features, tables.schema.category_counts)
    shares = [
        groups.sizes(number) / table.shape[1]
        for number, table in enumerate(tables.synthetic, start=1)
    ]
    released = np.asarray(np.mean(shares, axis=0) * tables.released, dtype=np.float64)
    return _Group(features, groups.sizes(0), released)


def _group_name(tables: CellTables, features: tuple[int, ...], group: int) -> str:
    # Counted again, as the groups of all rows are too large to be kept for the few that are named.
    groups = group_rows(tables.every, features, tables.schema.category_counts)
    table = next(t for t, each in enumerate(groups.ids) if (each == group).any())
    row = int(np.argmax(groups.ids[table] == group))
    codes = [int(tables.every[table][i, row]) for i in features]
    return _named(tables.schema, features, codes)


def _judged_group(tables: CellTables, group: _Group, alpha: float) -> Iterable[Fault]:
    rows = tables.rows
    expected = group.original * (rows[1] / rows[0])
    low, high = np.minimum(expected, group.released), np.maximum(expected, group.released)
    changed = []
    for code in np.flatnonzero(TIMES * low <= high):
        before, after = float(group.original[code]), float(group.released[code])
        if before + after and not counts_explained(before, after, rows, alpha):
            changed.append((_evidence(before, after, rows), int(code)))
    if not changed:
        return
    weight, worst = max(changed)
    before, after = float(group.original[worst]), float(group.released[worst])
    names = [tables.schema.names[i] for i in group.features]
    more = len(changed) - 1
    one, many = ("category", "categories") if len(names) == 1 else ("group", "groups")
    which = f"{more:,} more {one if more == 1 else many} of {', '.join(names)}"
    others = f", and {which} {'changes' if more == 1 else 'change'} so" if more else ""
    noise = tables.noise.get(frozenset(names))
    explained = "" if noise is None else f"; noise explains about {2 * noise:,.0f} of these"
    yield Fault(
        "subgroups",
        ", ".join(names),
        f"{_group_name(tables, group.features, worst)} "
        f"{_fate(before / rows[0], after / rows[1])} ({after:,.0f} of {rows[1]:,.0f} rows, "
        f"originally {before:,.0f} of {rows[0]:,.0f}{explained}){others}",
        min(max(after / rows[1], 1 / rows[1]) / max(before / rows[0], 1 / rows[0]), rows[0])
        if after / rows[1] > before / rows[0]
        else before / rows[0] / max(after / rows[1], 1 / rows[1]),
        weight,
    )


def _evidence(before: float, after: float, rows: tuple[float, float]) -> float:
    """Return how little chance explains two counts: the exponent of Chernoff's bound."""
    both, share = before + after, rows[1] / (rows[0] + rows[1])
    parts = ((after / both, share), (before / both, 1 - share))
    return both * sum(q * math.log(q / p) for q, p in parts if q > 0)


@dataclass(frozen=True)
class _Met:
    """The table of two features: the cells that occur in either table, and their counts."""

    pair: tuple[int, int]
    keys: Int64
    original: Float64
    released: Float64
    distance: float


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
    return _Met(pair, keys, counts, shares[1:].mean(axis=0) * tables.released, distance)


@dataclass(frozen=True)
class _Unseen:
    """What is new in the table of a pair: its share, and what cannot be among it."""

    pair: tuple[int, int]
    share: float
    expected: float
    fault: Fault | None = None
    drafts: tuple[tuple[float, Rule], ...] = ()


def _impossible(tables: CellTables, met: _Met, alpha: float) -> _Unseen:
    """Look for combinations that only the release has."""
    rows, size = tables.rows, tables.schema.category_counts[met.pair[1]]
    left, right = met.keys // size, met.keys % size
    sides = [np.bincount(side, met.original) for side in (left, right)]
    new = met.original == 0
    # A category that is itself new is a matter of subgroups.
    known = new & (sides[0][left] > 0) & (sides[1][right] > 0)
    share = float(met.released[new].sum() / rows[1])
    once = float(np.count_nonzero(met.original == 1) / rows[0])
    expected = sides[0][left] * sides[1][right] / rows[0]
    surprising = known & (expected >= math.log(2 / alpha))
    bad = [
        place
        for place in np.flatnonzero(surprising).tolist()
        if not counts_explained(0.0, float(met.released[place]), rows, alpha)
    ]
    if not bad:
        return _Unseen(met.pair, share, once)
    bad.sort(key=lambda place: -met.released[place])
    first, total = bad[0], float(met.released[bad].sum())
    names = [tables.schema.names[i] for i in met.pair]
    one, other = (
        _named(tables.schema, (i,), (int(side[first]),))
        for i, side in zip(met.pair, (left, right), strict=True)
    )
    more = len(bad) - 1
    others = (
        f", and {more:,} more combination{'s' if more > 1 else ''} of {names[0]} and {names[1]}, "
        f"{total:,.0f} rows in all"
        if more
        else ""
    )
    fault = Fault(
        "impossible rows",
        ", ".join(names),
        f"{one} with {other} never occurs in the original and now does in "
        f"{met.released[first]:,.0f} of {rows[1]:,.0f} rows (independent features would have had "
        f"{expected[first]:,.0f} original rows){others}",
        max(1.0, total),
    )
    return _Unseen(met.pair, share, once, fault, tuple(_drafts(met, left, right, bad)))


def _drafts(
    met: _Met, left: Int64, right: Int64, bad: Sequence[int]
) -> Iterable[tuple[float, Rule]]:
    """Draft one rule for each category of the side that has fewer among the impossible ones."""
    sides = (left, right) if len(set(left[bad])) <= len(set(right[bad])) else (right, left)
    pair = met.pair if sides[0] is left else met.pair[::-1]
    for code in dict.fromkeys(int(sides[0][place]) for place in bad):
        places = [place for place in bad if sides[0][place] == code]
        partners = sorted({int(sides[1][place]) for place in places})
        rule = Rule.of({pair[0]: [code], pair[1]: partners}, drafted=True)
        yield float(met.released[places].sum()), rule


def _apart(tables: CellTables, met: _Met, alpha: float) -> Iterable[Fault]:
    """Judge how far two features are apart together, and what is left of their dependence."""
    n = rows_judged(*tables.rows)
    names = [tables.schema.names[i] for i in met.pair]
    floor = total_variation_floor(met.original, max(1, int(n)))
    excess = met.distance - floor
    if excess > APART and excess > distance_allowance(n, alpha):
        yield Fault(
            "feature pairs",
            f"{', '.join(names)}{SEPARATOR}distance",
            f"{names[0]} and {names[1]} are far apart together ({met.distance:.1%} of the rows out "
            f"of place, {floor:.1%} in a fresh sample)",
            excess / APART,
        )
    bound = _dependence(met, tables.schema.category_counts[met.pair[1]])
    lost = bound.original - bound.released
    if (
        lost > DEPENDENT
        and bound.released < KEPT * bound.original
        and lost > bernstein(bound.variance, bound.largest, n, alpha)
    ):
        yield Fault(
            "feature pairs",
            f"{', '.join(names)}{SEPARATOR}dependence",
            f"{names[0]} and {names[1]} are torn apart ({max(0.0, bound.released):.1%} of the rows "
            f"are where independence would not put them, originally {bound.original:.1%})",
            lost / DEPENDENT,
        )


@dataclass(frozen=True)
class _Dependence:
    """Rows beyond independence in the cells where the original has more than it.

    Parameters
    ----------
    original, released
        Share of rows in these cells, less what independence would put there.
    variance, largest
        Of the influence of a row on the original's figure, and its largest size.
    """

    original: float
    released: float
    variance: float
    largest: float


def _dependence(met: _Met, size: int) -> _Dependence:
    """Measure the dependence of two features; in the original it is the distance from independence.

    The cells are those of the original, so that a release is not credited for noise elsewhere.
    """
    left, right = met.keys // size, met.keys % size
    shares, released = (counts / counts.sum() for counts in (met.original, met.released))
    first, second = (np.bincount(side, shares) for side in (left, right))
    more = shares > first[left] * second[right]
    apart = []
    for law in (shares, released):
        sides = [np.bincount(side, law) for side in (left, right)]
        apart.append(float((law - sides[0][left] * sides[1][right])[more].sum()))
    influence = (
        more.astype(np.float64)
        - np.bincount(left, second[right] * more)[left]
        - np.bincount(right, first[left] * more)[right]
    )
    middle = float(shares @ influence)
    seen = np.abs(influence - middle)[shares > 0]
    variance = float(shares @ np.square(influence - middle))
    return _Dependence(apart[0], apart[1], variance, float(seen.max()))


def _records(tables: CellTables, found: Sequence[_Unseen]) -> Iterable[Record]:
    names, n = tables.schema.names, tables.released
    note = (
        "share of the synthetic rows in combinations that no original row has; baseline: expected "
        "of a fresh sample, the share of original rows that are alone in their cell (Good 1953)"
    )
    for each in found:
        subject = ", ".join(names[i] for i in each.pair)
        value = Estimate(each.share, n=n)
        yield measured(NEW, subject, value, baseline=each.expected, note=note)
    drafts = sorted(((rows, rule) for each in found for rows, rule in each.drafts), key=_worst)
    for rows, rule in drafts[:_MOST_DRAFTED]:
        features = ", ".join(names[i] for i, _ in rule.forbidden)
        code = "; ".join(_named(tables.schema, (i,), sorted(c)[:1]) for i, c in rule.forbidden)
        text = rule_text(rule, tables.schema.features)
        yield measured(
            DRAFT, f"{features}{SEPARATOR}{code}", Estimate(rows, n=n), baseline=0.0, note=text
        )


def _worst(draft: tuple[float, Rule]) -> float:
    return -draft[0]


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
