"""The paper's intruder: from what is known of a person to a sensitive value.

The intruder knows some features of a person and looks up the released rows that agree on
all of them. The guess is their most frequent category, or their mean where the sensitive
feature is numeric; the error is the share of wrong guesses, E[1(guess != truth) | known],
or the mean absolute error, E[|guess - truth| | known], over every row of the original.

Where the paper is silent:

- Ties between most frequent categories are broken at random; the figure is the exact
  expectation, nothing is drawn.
- A target without a matching row gets the public fallback: the most frequent category, or
  the mean, of the whole released table. The share of targets with a match is a record of
  its own.
- Numeric values are those of the codes (`numeric_values`); released rows whose value is
  missing do not enter a mean, and targets whose true value is missing are left out and
  counted.

All work is on counts of cells (known features, sensitive feature), so that it costs one
pass over the rows and a few over the cells. Each attack has four references:

- *bootstrap*: as many rows drawn from the original with replacement, the mean over
  `DRAWS` seeded draws. It is what releasing real rows would disclose.
- *hold-out*: real rows never given to the synthesizer, in the place of the released ones
  and thinned to as many, the mean over `DRAWS` seeded draws without replacement. It is
  what an intruder learns from the population alone.
- *control*: the released rows against the rows of the hold-out as targets. They were never
  given, so an error clearly above that of the original's rows is a disclosure.
- *others*: the rows of the other people of the original, by all that is known or by nothing,
  whichever errs less. It is what the population tells where there is no hold-out: only a release
  whose error is clearly lower tells something of the people themselves.

The attack has power where the error of the bootstrap is clearly lower than that of the others.
Where it is not, real rows would disclose nothing by it, and a release that is like them neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.tabulation import Crossing, cross, group_rows
from pegsynth.errors import ParameterError
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.evaluation.risk.risk_tables import (
    NO_IDENTIFIER,
    NO_SENSITIVE,
    SEED,
    RiskTables,
    with_references,
)
from pegsynth.inference.statistics import LEVEL, NOTHING, Estimate, hull, share, weighted_mean
from pegsynth.inference.value_columns import is_numeric, numeric_values
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.schema.schema import Schema

NAMES = ("intruder_error", "intruder_matched")
DRAWS = 20
PARTS = 10
NOBODY = "no power: nobody can predict this value from what is known"
NO_MORE = "no power: real rows would tell no more of these people than the rows of other people do"
_CONTROL = (
    "the released rows against the hold-out's rows as targets, who were never given; baseline: the "
    "error for the original's rows, which tells of a disclosure where it is clearly lower"
)

PAPER_ATTACKS = (
    ("MDC", ("age.yrs", "sex", "patzip")),
    ("charge", ("age.yrs", "los", "patzip")),
)


@dataclass(frozen=True)
class Attack:
    """What an intruder knows, and what is inferred from it.

    Parameters
    ----------
    infer, known
        Names of features.
    values
        One number per code of the inferred feature where its mean is guessed; None where its
        most frequent category is.
    """

    infer: str
    known: tuple[str, ...]
    values: Float64 | None = field(default=None, compare=False, repr=False)

    @classmethod
    def on(cls, schema: Schema, infer: str, known: Sequence[str]) -> Attack:
        """Return an attack on a feature; numbers are guessed by their mean."""
        feature = schema.features[schema.index(infer)]
        return cls(infer, tuple(known), numeric_values(feature) if is_numeric(feature) else None)

    @property
    def amounts(self) -> bool:
        """Whether a mean is guessed, and not a category."""
        return self.values is not None

    @property
    def subject(self) -> str:
        """The attack as results call it."""
        return f"{self.infer} | {', '.join(self.known)}"


def attacks_of(
    schema: Schema, known: Sequence[str] | None = None, infer: Sequence[str] | None = None
) -> tuple[Attack, ...]:
    """Choose the attacks: the user's choice, the paper's, or those of the roles.

    Without a choice: the paper's two where the schema has their features (the built-in
    discharge data), else every sensitive feature from all quasi-identifiers. With `known`
    or `infer`: those features, the other side from the roles.

    Raises
    ------
    ParameterError
        A name is not in the schema, or a feature is both known and inferred.
    """
    papers = {name for target, given in PAPER_ATTACKS for name in (target, *given)}
    if known is None and infer is None and papers <= set(schema.names):
        return tuple(Attack.on(schema, *each) for each in PAPER_ATTACKS)
    for name in (*(known or ()), *(infer or ())):
        if name not in schema.names:
            raise ParameterError(f"attack: {name!r} is not a feature of the schema")
    both = set(known or ()) & set(infer or ())
    if both:
        raise ParameterError(f"attack: feature {min(both)!r} is both known and to be inferred")
    given, targets = (
        [feature.name for feature in schema.features if feature.role == role]
        if names is None
        else names
        for names, role in ((known, "quasi-identifier"), (infer, "sensitive"))
    )
    targets = [name for name in dict.fromkeys(targets) if name not in (known or ())]
    given = [name for name in dict.fromkeys(given) if name not in targets]
    return tuple(Attack.on(schema, target, given) for target in targets)


class Reach(NamedTuple):
    """How far an attack gets: its error, and the share of targets with a match."""

    error: Estimate
    matched: float


@dataclass(frozen=True)
class CellErrors:
    """Error of a target in each cell, and whether a released row matches it."""

    errors: Float64
    matched: NDArray[np.bool_]

    def reach(self, targets: Int64, *, amounts: bool, level: float = LEVEL) -> Reach:
        """Mean error and share of matches over targets, counted by cell.

        The interval is over the targets, given the released rows: Wilson's for a share of
        wrong guesses, the normal one for a mean error. Both are NaN without a target.
        """
        counted = np.flatnonzero((targets > 0) & ~np.isnan(self.errors))
        errors, weights = self.errors[counted], targets[counted]
        count = int(weights.sum())
        if amounts or not count:
            error = weighted_mean(errors, weights, level=level)
        else:
            error = share(float(np.dot(errors, weights) / count), count, level=level)
        matched = float(np.dot(self.matched[counted], weights) / count) if count else math.nan
        return Reach(error, matched)


def cells_of(
    tables: Sequence[Codes], known: Sequence[int], sensitive: int, sizes: Sequence[int]
) -> Crossing:
    """Cells of the known features and the sensitive one; tables have one feature a row."""
    groups = group_rows(tables, known, sizes)
    return cross(groups, [table[sensitive] for table in tables], sizes[sensitive])


def guess(
    crossing: Crossing, released: Int64, values: Float64 | None, *, median: bool = False
) -> CellErrors:
    """Guess for every cell, from the counts of the released rows in each.

    Amounts are guessed by the mean, or by the `median`, of which the absolute error is least.
    """
    starts, position = crossing.starts()
    if values is None:
        most = np.maximum.reduceat(released, starts)[position]
        modal = released == most
        matched = most > 0
        right = modal / np.add.reduceat(modal.astype(np.int64), starts)[position]
        overall = np.bincount(crossing.category, weights=released)
        anywhere = overall == overall.max()
        right = np.where(matched, right, anywhere[crossing.category] / anywhere.sum())
        return CellErrors(1 - right, matched)
    amounts = values[crossing.category]
    counted = np.where(np.isnan(amounts), 0, released)
    rows = np.add.reduceat(counted, starts)[position]
    if median:
        order = np.lexsort((amounts, position))
        reached = np.cumsum(counted[order])
        reached -= (reached - counted[order])[starts][position]
        # Cells keep the place of their combination; in it they are in the order of the amounts.
        below = np.add.reduceat((2 * reached < rows).astype(np.int64), starts)
        guesses = amounts[order][starts + below][position]
        fallback = _median(amounts, counted)
    else:
        sums, total = counted * np.nan_to_num(amounts), int(counted.sum())
        guesses = np.add.reduceat(sums, starts)[position] / np.maximum(rows, 1)
        fallback = float(sums.sum()) / total if total else math.nan
    matched = rows > 0
    return CellErrors(np.abs(np.where(matched, guesses, fallback) - amounts), matched)


def _median(amounts: Float64, counts: Int64) -> float:
    order = np.argsort(amounts)
    reached = np.cumsum(counts[order])
    if not len(reached) or not reached[-1]:
        return math.nan
    return float(amounts[order][np.searchsorted(reached, reached[-1] / 2)])


@dataclass(frozen=True)
class _Outcome:
    """One attack, and the error of every target.

    `reached` has how far it gets with the rows that are *released*, with those of the *bootstrap*
    and, where there is a hold-out, with its rows (*holdout*), on them as targets (*control*) and
    with released rows thinned to as many (*fewer*), where it has fewer.
    """

    attack: Attack
    reached: Mapping[str, Reach]
    others: Estimate
    constant: Estimate
    per_row: Float64

    @property
    def reference(self) -> Reach:
        """The hold-out where there is one, else the bootstrap."""
        return self.reached.get("holdout", self.reached["bootstrap"])

    @property
    def no_power(self) -> str:
        """Why the error tells nothing; empty where it does."""
        if self.others.above(self.reached["bootstrap"].error.high):
            return ""
        return NO_MORE if self.others.below(self.constant.value) else NOBODY


def intruder_records(
    tables: RiskTables, chosen: Sequence[Attack]
) -> tuple[list[Record], dict[str, Float64]]:
    """Run the attacks.

    Returns
    -------
    records, per_record
        The mean over the attacks on categories, then every attack with its references; and
        the error of every row of the original, by attack.
    """
    reason = "" if chosen else NO_SENSITIVE
    if not all(attack.known for attack in chosen):
        reason = NO_IDENTIFIER
    if reason:
        return [not_computed(name, "", reason) for name in NAMES], {}
    outcomes = [_run(tables, attack) for attack in chosen]
    records = [_overall(outcomes), *(r for each in outcomes for r in _records(tables, each))]
    return records, {f"intruder_error: {o.attack.subject}": o.per_row for o in outcomes}


def _run(tables: RiskTables, attack: Attack) -> _Outcome:
    every = tables.with_holdout(tables.original, tables.released)
    known, infer = [tables.names.index(n) for n in attack.known], tables.names.index(attack.infer)
    crossing = cells_of(every, known, infer, tables.sizes)
    original, released, *holdout = crossing.cells
    targets, counts, rows = crossing.counts(original), crossing.counts(released), len(released)
    generator = np.random.default_rng([SEED, 1])

    def reach(draws: Iterable[Int64], on: Int64 = targets) -> Reach:
        found = [
            guess(crossing, drawn, attack.values).reach(
                on, amounts=attack.amounts, level=tables.level
            )
            for drawn in draws
        ]
        return Reach(hull([r.error for r in found]), float(np.mean([r.matched for r in found])))

    reached = {"released": reach([counts])}
    for cells in holdout:
        reached["holdout"] = reach(_draws(crossing, cells, rows, generator, replace=False))
        reached["control"] = reach([counts], crossing.counts(cells))
        if len(cells) < rows:
            fewer = _draws(crossing, released, len(cells), generator, replace=False)
            reached["fewer"] = reach(fewer)
    reached["bootstrap"] = reach(_draws(crossing, original, rows, generator, replace=True))
    others = _without_own_row(tables, attack, known, infer)
    per_row = guess(crossing, counts, attack.values).errors[original]
    return _Outcome(attack, reached, *others, per_row)


def _without_own_row(
    tables: RiskTables, attack: Attack, known: Sequence[int], infer: int
) -> tuple[Estimate, Estimate]:
    """Error of the better guess from other people's rows, and of the one that looks at nothing.

    Every row is guessed from the nine tenths of the original that it is not in, by all that is
    known and by nothing. Amounts are guessed by the median: no other constant errs less, so that
    a release whose means are off does not seem to know anything.
    """
    part = np.random.default_rng([SEED, 8]).integers(0, PARTS, tables.rows)
    found = []
    for features in ([], known):
        crossing = cells_of([tables.original], features, infer, tables.sizes)
        (cells,) = crossing.cells
        every = crossing.counts(cells)
        wrong = np.zeros(len(every))
        for number in range(PARTS):
            own = crossing.counts(cells[part == number])
            wrong += own * guess(crossing, every - own, attack.values, median=True).errors
        errors = CellErrors(wrong / np.maximum(every, 1), every > 0)
        found.append(errors.reach(every, amounts=attack.amounts, level=tables.level).error)
    return min(found, key=lambda error: error.value), found[0]


def _draws(
    crossing: Crossing, cells: Int64, rows: int, generator: np.random.Generator, *, replace: bool
) -> Iterator[Int64]:
    """Count the cells of so many rows drawn, again and again.

    Without replacement all are counted once if they are no more than that.
    """
    counts = crossing.counts(cells)
    if not replace and rows >= len(cells):
        yield counts
        return
    for _ in range(DRAWS):
        # Cell by cell or row by row, whichever are fewer: the counts have the same distribution.
        if len(counts) >= rows:
            yield crossing.counts(generator.choice(cells, rows, replace=replace, shuffle=False))
        elif replace:
            yield generator.multinomial(rows, counts / len(cells))
        else:
            yield generator.multivariate_hypergeometric(counts, rows, method="marginals")


def _records(tables: RiskTables, outcome: _Outcome) -> list[Record]:
    subject, reached = outcome.attack.subject, outcome.reached
    error, matched = reached["released"]
    if not error.n:
        reason = "no target or no released row has a number where the attack needs one"
        return [not_computed(name, subject, reason) for name in NAMES]
    held = "holdout" in reached
    size = _size(tables, reached.get("fewer"))
    against = f"the hold-out, {size}" if held else f"the bootstrap, as {tables.no_holdout}"
    bootstrap = (
        f"the same attack with {tables.released_rows} rows drawn from the original with "
        f"replacement: mean over {DRAWS} seeded draws, from the lowest to the highest limit; "
        "baseline: the error with what is released"
    )
    others = (
        f"the lowest error of guesses from other people of the original, {PARTS} parts (seeded) "
        "each from the rest of it, by all known features or by none: the "
        f"{'median' if outcome.attack.amounts else 'most frequent category'}; this is what the "
        "population tells; baseline: the error with what is released"
    )
    references = {
        "bootstrap": (reached["bootstrap"].error, bootstrap),
        "others": (outcome.others, others),
    }
    if held:
        instead = (
            "the same attack with real rows never given to the synthesizer, which is what the "
            f"population alone betrays; {size}; baseline: the error with what is released"
        )
        references["holdout"] = reached["holdout"].error, instead
        references["control"] = reached["control"].error, _CONTROL
    record = measured(
        NAMES[0],
        subject,
        error,
        baseline=outcome.reference.error.value,
        note=_note(tables, outcome, against),
        no_power=outcome.no_power,
    )
    records = [*with_references(record, references)]
    if not held:
        records.append(not_computed("intruder_error_holdout", subject, tables.no_holdout))
    note = (
        "share of the targets with a released row that agrees on all known features; baseline: "
        f"{against}; {tables.limits}"
    )
    found = share(matched, error.n, level=tables.level)
    return [
        *records,
        measured(NAMES[1], subject, found, baseline=outcome.reference.matched, note=note),
    ]


def _size(tables: RiskTables, fewer: Reach | None) -> str:
    """Say how many rows of the hold-out stand for those that are released."""
    rows = 0 if tables.holdout is None else tables.holdout.shape[1]
    if fewer is not None:
        return (
            f"all {rows} rows of it, fewer than the {tables.released_rows} released: what "
            f"compares is the error {fewer.error.value:.6g} with released rows thinned to as many"
        )
    if rows == tables.released_rows:
        return f"all {rows} rows of it"
    return (
        f"{rows} rows thinned to {tables.released_rows}: mean over {DRAWS} seeded draws "
        "without replacement, from the lowest to the highest limit"
    )


def _note(tables: RiskTables, outcome: _Outcome, against: str) -> str:
    error, matched = outcome.reached["released"]
    if not outcome.attack.amounts:
        what = "share of wrong guesses; guess: the most frequent category among released rows that "
        what += "agree on all known features; ties by their exact expectation"
        fallback, interval = "most frequent category", "Wilson"
    else:
        what = "mean absolute error; guess: the mean among released rows that agree on all known "
        what += "features, numbers of the codes (bin midpoints), missing values left out"
        fallback, interval = "mean", "normal"
    return (
        f"{what}; {round((1 - matched) * error.n)} of {error.n} targets have no such row and get "
        f"the {fallback} of all released rows; {tables.rows - error.n} targets left out as their "
        f"own value is missing{tables.stacked}; baseline: {against}; interval: {interval} "
        f"{100 * tables.level:g} % over the targets, given what is released"
    )


def _overall(outcomes: Sequence[_Outcome]) -> Record:
    guesses = [o for o in outcomes if not o.attack.amounts]
    alone = guesses or (list(outcomes) if len(outcomes) == 1 else [])
    if not alone:
        reason = "amounts of several features have no common unit; see the attack of each"
        return not_computed(NAMES[0], "", reason)
    errors = [o.reached["released"].error for o in alone]
    if any(each.n == 0 for each in errors):
        return measured(NAMES[0], "", NOTHING, note="see each attack")
    middle, low, high = np.mean([(e.value, e.low, e.high) for e in errors], axis=0).tolist()
    note = "mean over the attacks on categories, limits likewise: "
    note += "; ".join(o.attack.subject for o in alone)
    baseline = float(np.mean([o.reference.error.value for o in alone]))
    found = Estimate(middle, low, high, errors[0].n)
    return measured(NAMES[0], "", found, baseline=baseline, note=note)
