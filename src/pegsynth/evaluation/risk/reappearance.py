"""Rows that are alone with their values, and whether these reappear in what is released.

*Uniqueness* is the share of rows that are alone with their quasi-identifiers. Two tables of
different size cannot be compared directly: the smaller one has more unique rows by its size
alone. The larger is therefore evaluated by the share expected in a random part of it, as large
as the smaller one; the expectation is exact, nothing is drawn.

*Reappearance* is about the unique rows of the original. A row that is alone with its values (of
the identifying features, or of all of them) can be recognised where these values are seen again;
more so where they are again alone. Some reappear by chance, as the population has such people.
The control are rows of a hold-out whose values do not occur in the original at all: they are as
rare, and a synthesizer that tells nothing of its original meets both alike. Without a hold-out
there are two stand-ins: fresh rows of the population, which have the values of a unique row as
often as the number of values that occur twice says; and values that nobody has, which a release
that scatters some of its rows holds as often. A release that tells nothing has either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    if tables.identifiers:
        subject = tables.listed(tables.identifiers)
        records, original, released = seen_again(tables, tables.identifiers, subject)
        per_record |= {"group_size": original, "released_matches": released}
    else:
        records = [not_computed(name, "", NO_IDENTIFIER) for name in NAMES]
    whole, _, copies = seen_again(tables, range(len(tables.names)), ALL_FEATURES)
    return [*records, *whole], {**per_record, "released_copies": copies}


def seen_again(
    tables: RiskTables, features: Sequence[int], subject: str
) -> tuple[list[Record], Int64, Int64]:
    """Match the original, and the hold-out if there is one, with the released rows.

    Returns
    -------
    records, original, released
        The shares; rows of the original, and released rows, with the values of each row of the
        original.
    """
    every, level = tables.with_holdout(tables.original, *tables.tables), tables.level
    groups = group_rows(every, features, tables.sizes)
    original, mine = groups.sizes(0), groups.ids[0]
    sizes = np.stack([groups.sizes(1 + number) for number in range(len(tables.tables))])
    together: Int64 = sizes.sum(axis=0)
    found = original[mine], together[mine]
    targets = mine[original[mine] == 1]
    if not len(targets):
        reason = "no row of the original is alone with these values"
        return [not_computed(name, subject, reason) for name in NAMES], *found
    strangers = None
    if tables.holdout is not None:
        strangers = groups.ids[-1][original[groups.ids[-1]] == 0]
    possible = min(math.prod(tables.sizes[i] for i in features), CELL_LIMIT)
    lacking = possible - int(np.count_nonzero(original))
    released = [table.shape[1] for table in tables.tables]
    fresh = population_expectation(original, released, level=level)
    bootstrap = expectation(1 / tables.rows, released)
    records: list[Record] = []
    hits = together > 0, np.any(sizes == 1, axis=0)
    for place, (name, how) in enumerate(NAMES.items()):
        hit, expected, population = hits[place], bootstrap[place], fresh[place]
        value = share(float(hit[targets].mean()), len(targets), level=level)
        # Values that nobody has, which a release that scatters some of its rows holds as often.
        new = np.count_nonzero(hit & (original == 0))
        nobody = share(new / lacking, lacking, level=level) if lacking else NOTHING
        control, against = None, f"the bootstrap, as {tables.no_holdout}"
        if strangers is not None and len(strangers):
            control = share(float(hit[strangers].mean()), len(strangers), level=level)
            against = f"{control.n} rows of the hold-out whose values the original lacks"
        elif strangers is not None:
            against = "the bootstrap, as the original holds the values of every row of the hold-out"
        note = (
            f"share of the original's {value.n} unique rows whose values are released {how}: "
            f"{round(value.value * value.n)}; a bootstrap would give {expected:.6g} "
            f"(exact); baseline: {against}; {tables.limits}"
        )
        record = measured(
            name,
            subject,
            value,
            baseline=expected if control is None else control.value,
            note=note,
            no_power=power_reason(share(expected, value.n, level=level), control or population),
        )
        about = (
            f"of fresh rows of the population {population.value:.6g} is expected, by the numbers "
            "of values that occur once and twice in the original (score limits); of all values "
            f"that the original lacks {nobody.value:.6g} are released {how}; this is the chance of "
            "either"
        )
        references = {"others": (_either(population, nobody), about)}
        if control is not None:
            held = (
                f"the same for {control.n} rows of the hold-out whose values the original lacks: "
                "people as rare who were never given"
            )
            references["control"] = (control, held)
        records += with_references(record, references)
    return records, *found


def _either(first: Estimate, second: Estimate) -> Estimate:
    """Chance of one or the other of two things that do not know of each other."""
    if not second.known:
        return first
    value, low, high = (
        1 - (1 - getattr(first, each)) * (1 - getattr(second, each))
        for each in ("value", "low", "high")
    )
    return Estimate(value, low, high, first.n)
