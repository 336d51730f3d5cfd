"""Share of rows that are alone with their values of the quasi-identifiers.

Two tables of different size cannot be compared directly: the smaller one has more unique
rows by its size alone. The larger is therefore judged by the share expected in a random
part of it, as large as the smaller one; the expectation is exact, nothing is drawn.

Uniques of the original that reappear in what is released.

A row of the original that is alone with its values (of the identifying features, or of all
of them) can be recognised where these values are seen again; more so where they are again
alone. Some reappear by chance, as the population has such people. The control are rows of
a hold-out whose values do not occur in the original at all: they are as rare, and a
synthesizer that tells nothing of its original meets both alike. Without a hold-out there are
two stand-ins: fresh rows of the population, which have the values of a unique row as often as
the number of values that occur twice says; and values that nobody has, which a release that
scatters some of its rows holds as often. A release that tells nothing has either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.tabulation import CELL_LIMIT, group_rows
from pegsynth.errors import ParameterError
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.evaluation.risk.risk_tables import (
    NO_IDENTIFIER,
    RiskTables,
    power_reason,
    with_references,
)
from pegsynth.inference.statistics import (
    NOTHING,
    Estimate,
    jackknife,
    lumped_share,
    quantile,
    share,
)
from pegsynth.kernels.arrays import Float64, Int64

TOO_FEW = "no power: of so few rows nearly all would be counted in the original as well"


def expected_uniqueness(group_sizes: NDArray[np.int64], *, rows: int) -> float:
    """Share of unique rows expected in a random part of a table.

    Parameters
    ----------
    group_sizes
        Rows of every combination of quasi-identifiers that occurs in the table, sum N.
    rows
        Rows n of the part, drawn without replacement; N gives the table's own share.

    Notes
    -----
    A row whose combination has c rows is unique in the part when none of the other c - 1 is
    drawn: the product over t < c - 1 of (N - n - t)/(N - 1 - t).
    """
    total = int(group_sizes.sum())
    if not 1 <= rows <= total:
        raise ParameterError(f"uniqueness at {rows} rows needs a table of at least as many")
    groups = np.bincount(group_sizes)
    sizes = np.flatnonzero(groups)
    return float(np.sum(groups[sizes] * sizes * _alone(sizes, total, rows)) / total)


def uniqueness_variance(group_sizes: NDArray[np.int64], *, rows: int) -> float:
    """Jackknife variance of `expected_uniqueness` over draws of the table.

    Without one of its rows a group of c rows has c - 1; the chances to be alone stay.
    """
    total = int(group_sizes.sum())
    groups = np.bincount(group_sizes)
    sizes = np.flatnonzero(groups)
    sizes = sizes[sizes > 0]
    change = (sizes - 1) * _alone(np.maximum(sizes - 1, 1), total, rows)
    change -= sizes * _alone(sizes, total, rows)
    found = zip(change.tolist(), (groups[sizes] * sizes).tolist(), strict=True)
    return jackknife(found, rows=total) / total**2


def crowded(original: float, rows: int, *, lump: float, level: float) -> str:
    """Say that a share of the original is so near 1 that nothing could lie clearly above it.

    Parameters
    ----------
    original
        Share of its rows that are counted.
    rows, lump
        Released rows, and how many of them change sides together.
    """
    most = lumped_share(1.0, rows, 0.0, lump=lump, level=level).low
    return "" if original < most else TOO_FEW


def _alone(sizes: NDArray[np.int64], total: int, rows: int) -> Float64:
    """Return the chance of a row to be alone in the part, by the rows of its group."""
    others = np.arange(min(int(sizes.max()) - 1, total - rows), dtype=np.float64)
    alone = np.cumprod((total - rows - others) / (total - 1 - others))
    # Groups so large that another of their rows is always drawn are never unique.
    chances = np.concatenate(([1.0], alone, [0.0]))
    return np.asarray(chances[np.minimum(sizes - 1, len(alone) + 1)], dtype=np.float64)


NAMES = {
    "reappearing_uniques": "at all",
    "reappearing_as_unique": "exactly once in a released table",
}
ALL_FEATURES = "all features"


class Reappearance(NamedTuple):
    """How many targets reappear, and reappear alone.

    Parameters
    ----------
    reappearing
        Share of the targets whose values occur in a released table.
    as_unique
        Share of the targets whose values occur exactly once in at least one of them.
    """

    reappearing: Estimate
    as_unique: Estimate


@dataclass(frozen=True)
class Reappeared:
    """Original and released rows by combination of some features.

    Parameters
    ----------
    original
        Rows of the original with the values of each of its rows.
    released
        Released rows with the values of each row of the original.
    uniques
        Reappearance of the original's unique rows.
    population
        The same expected of fresh rows of the population.
    nobody
        The same of all values that the original lacks.
    control
        The same of the hold-out's rows whose values the original lacks; None without one.
    """

    original: Int64
    released: Int64
    uniques: Reappearance
    population: Reappearance
    nobody: Reappearance
    control: Reappearance | None


def seen_again(tables: RiskTables, features: Sequence[int]) -> Reappeared:
    """Match the original, and the hold-out if there is one, with the released rows."""
    every = tables.with_holdout(tables.original, *tables.tables)
    groups = group_rows(every, features, tables.sizes)
    original = groups.sizes(0)
    released = [groups.sizes(1 + number) for number in range(len(tables.tables))]
    together: Int64 = np.sum(np.stack(released), axis=0)
    alone = np.any([sizes == 1 for sizes in released], axis=0)

    def counted(targets: Int64) -> Reappearance:
        found, again = together[targets] > 0, alone[targets]
        return Reappearance(_share(found, tables.level), _share(again, tables.level))

    mine = groups.ids[0]
    control = None
    if tables.holdout is not None:
        others = groups.ids[-1]
        control = counted(others[original[others] == 0])
    possible = min(math.prod(tables.sizes[i] for i in features), CELL_LIMIT)
    lacking = possible - int(np.count_nonzero(original))

    def occurring(hits: NDArray[np.bool_]) -> Estimate:
        found = np.count_nonzero(hits & (original == 0))
        return share(found / lacking, lacking, level=tables.level) if lacking else NOTHING

    return Reappeared(
        original[mine],
        together[mine],
        counted(mine[original[mine] == 1]),
        population_expectation(
            original, [table.shape[1] for table in tables.tables], level=tables.level
        ),
        Reappearance(occurring(together > 0), occurring(alone)),
        control,
    )


def expectation(chance: float, released: Sequence[int]) -> tuple[float, float]:
    """Chance that values reappear, and reappear alone, in tables of so many rows.

    A row has them with probability `chance`, which in a bootstrap of N rows is 1/N; they occur
    Binomial(n, chance) times in a table of n rows: exact.
    """
    never = (1 - chance) ** sum(released)
    once = [n * chance * (1 - chance) ** (n - 1) for n in released]
    return 1 - never, float(1 - np.prod([1 - each for each in once]))


def population_expectation(groups: Int64, released: Sequence[int], *, level: float) -> Reappearance:
    """Share of unique rows expected to reappear in fresh rows of the population.

    Parameters
    ----------
    groups
        Rows of every combination in the original.
    released
        Rows of every table.

    Notes
    -----
    Of N rows with a values that occur once and b that occur twice, a value that occurs once has
    the probability 2b/(aN) in the population, on average (Good 1953, The population frequencies of
    species, Biometrika 40, 237-264, doi:10.1093/biomet/40.3-4.237). The limits are those for the
    score limits of a Poisson number b, and Wilson's for a rows.
    """
    once, twice = (int(np.count_nonzero(groups == size)) for size in (1, 2))
    if not once:
        return Reappearance(NOTHING, NOTHING)
    z, rows = quantile(level), int(groups.sum())
    half = z * math.sqrt(twice + z * z / 4)
    numbers = (twice, max(twice + z * z / 2 - half, 0.0), twice + z * z / 2 + half)
    # More than once a table, values are alone there less often again.
    chances = [min(2 * each / (once * rows), 1 / max(released)) for each in numbers]
    again = [min(2 * each / (once * rows), 1.0) for each in numbers]
    found = []
    for place, tried in enumerate((again, chances)):
        value, low, high = (
            share(expectation(chance, released)[place], once, level=level) for chance in tried
        )
        found.append(Estimate(value.value, low.low, high.high, once))
    return Reappearance(*found)


def reappearance_records(
    tables: RiskTables,
) -> tuple[list[Record], dict[str, Int64]]:
    """Uniques on the identifying features and on all features.

    Returns
    -------
    records, per_record
        Shares with their baselines; for every row of the original the rows that share its
        identifying features, the released rows that do, and the released copies of all of it.
    """
    records: list[Record] = []
    per_record: dict[str, Int64] = {}
    everything = tuple(range(len(tables.names)))
    if tables.identifiers:
        seen = seen_again(tables, tables.identifiers)
        records += _records(tables, tables.listed(tables.identifiers), seen)
        per_record |= {"group_size": seen.original, "released_matches": seen.released}
    else:
        records += [not_computed(name, "", NO_IDENTIFIER) for name in NAMES]
    whole = seen_again(tables, everything)
    return [*records, *_records(tables, ALL_FEATURES, whole)], {
        **per_record,
        "released_copies": whole.released,
    }


def _share(hits: NDArray[np.bool_], level: float) -> Estimate:
    return share(float(hits.mean()), len(hits), level=level) if len(hits) else NOTHING


def _records(tables: RiskTables, subject: str, seen: Reappeared) -> list[Record]:
    if not seen.uniques.reappearing.n:
        reason = "no row of the original is alone with these values"
        return [not_computed(name, subject, reason) for name in NAMES]
    expected = expectation(1 / tables.rows, [t.shape[1] for t in tables.tables])
    records: list[Record] = []
    for place, (name, how) in enumerate(NAMES.items()):
        value, population, nobody = (
            each[place] for each in (seen.uniques, seen.population, seen.nobody)
        )
        control = None if seen.control is None else seen.control[place]
        reference = control if control is not None and control.n else None
        note = (
            f"share of the original's {value.n} unique rows whose values are released {how}: "
            f"{round(value.value * value.n)}; a bootstrap would give {expected[place]:.6g} "
            f"(exact); baseline: {_baseline(tables, control)}; {tables.limits}"
        )
        real = share(expected[place], value.n, level=tables.level)
        record = measured(
            name,
            subject,
            value,
            baseline=expected[place] if reference is None else reference.value,
            note=note,
            no_power=power_reason(real, reference or population),
        )
        about = (
            f"of fresh rows of the population {population.value:.6g} is expected, by the numbers "
            "of values that occur once and twice in the original (score limits); of all values "
            f"that the original lacks {nobody.value:.6g} are released {how}; this is the chance of "
            "either"
        )
        references = {"others": (_either(population, nobody), about)}
        if reference is not None:
            held = (
                f"the same for {reference.n} rows of the hold-out whose values the original lacks: "
                "people as rare who were never given"
            )
            references["control"] = (reference, held)
        records += with_references(record, references)
    return records


def _either(first: Estimate, second: Estimate) -> Estimate:
    """Chance of one or the other of two things that do not know of each other."""
    if not second.known:
        return first
    value, low, high = (
        1 - (1 - getattr(first, each)) * (1 - getattr(second, each))
        for each in ("value", "low", "high")
    )
    return Estimate(value, low, high, first.n)


def _baseline(tables: RiskTables, control: Estimate | None) -> str:
    if control is None:
        return f"the bootstrap, as {tables.no_holdout}"
    if not control.n:
        return "the bootstrap, as the original holds the values of every row of the hold-out"
    return f"{control.n} rows of the hold-out whose values the original lacks"
