"""Attacks by the paper's intruder, beside what an intruder achieves without the release.

Each scenario gives the error of the attack with the released rows and four references:

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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.codec.tabulation import Crossing
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.evaluation.risk.intruder import Attack, CellErrors, Reach, cells_of, guess
from pegsynth.evaluation.risk.risk_tables import (
    NO_IDENTIFIER,
    NO_SENSITIVE,
    SEED,
    RiskTables,
    with_references,
)
from pegsynth.inference.statistics import NOTHING, Estimate, hull, share
from pegsynth.kernels.arrays import Float64, Int64

DRAWS = 20
PARTS = 10
NOBODY = "no power: nobody can predict this value from what is known"
NO_MORE = "no power: real rows would tell no more of these people than the rows of other people do"
NAMES = ("intruder_error", "intruder_matched")
_CONTROL = (
    "the released rows against the hold-out's rows as targets, who were never given; baseline: the "
    "error for the original's rows, which tells of a disclosure where it is clearly lower"
)


@dataclass(frozen=True)
class _Outside:
    """References from a hold-out: in the place of the release, and as targets.

    `fewer` is the attack with the released rows thinned to the hold-out's, where it has
    fewer.
    """

    rows: int
    instead: Reach
    control: Reach
    fewer: Reach | None


@dataclass(frozen=True)
class _Outcome:
    """One attack, its references, and the error of every target."""

    attack: Attack
    reach: Reach
    bootstrap: Reach
    others: Estimate
    constant: Estimate
    outside: _Outside | None
    per_row: Float64

    @property
    def reference(self) -> Reach:
        """The hold-out where there is one, else the bootstrap."""
        return self.bootstrap if self.outside is None else self.outside.instead

    @property
    def no_power(self) -> str:
        """Why the error tells nothing; empty where it does."""
        if self.others.above(self.bootstrap.error.high):
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
    reason = ""
    if not chosen:
        reason = NO_SENSITIVE
    elif not all(attack.known for attack in chosen):
        reason = NO_IDENTIFIER
    if reason:
        return [not_computed(name, "", reason) for name in NAMES], {}
    outcomes = [_run(tables, attack) for attack in chosen]
    records = [_overall(outcomes), *(r for each in outcomes for r in _records(tables, each))]
    return records, {f"intruder_error: {o.attack.subject}": o.per_row for o in outcomes}


def _run(tables: RiskTables, attack: Attack) -> _Outcome:
    every = tables.with_holdout(tables.original, tables.released)
    known = [tables.names.index(name) for name in attack.known]
    crossing = cells_of(every, known, tables.names.index(attack.infer), tables.sizes)
    original, released, *holdout = crossing.cells
    targets = crossing.counts(original)
    generator = np.random.default_rng([SEED, 1])

    def reach(draws: Iterable[Int64], on: Int64 = targets) -> Reach:
        found = [
            guess(crossing, counts, attack.values).reach(
                on, amounts=attack.amounts, level=tables.level
            )
            for counts in draws
        ]
        return Reach(hull([r.error for r in found]), float(np.mean([r.matched for r in found])))

    rows, counts = len(released), crossing.counts(released)
    outside = None
    for cells in holdout:
        less = _thinned(crossing, released, len(cells), generator) if len(cells) < rows else None
        outside = _Outside(
            len(cells),
            reach(_thinned(crossing, cells, rows, generator)),
            reach([counts], crossing.counts(cells)),
            None if less is None else reach(less),
        )
    return _Outcome(
        attack,
        reach([counts]),
        reach(_bootstraps(crossing, original, rows, generator)),
        *_without_own_row(tables, attack),
        outside,
        guess(crossing, counts, attack.values).errors[original],
    )


def _without_own_row(tables: RiskTables, attack: Attack) -> tuple[Estimate, Estimate]:
    """Error of the better guess from other people's rows, and of the one that looks at nothing.

    Every row is guessed from the nine tenths of the original that it is not in, by all that is
    known and by nothing. Amounts are guessed by the median: no other constant errs less, so that
    a release whose means are off does not seem to know anything.
    """
    known = [tables.names.index(name) for name in attack.known]
    infer = tables.names.index(attack.infer)
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


def _bootstraps(
    crossing: Crossing, cells: Int64, rows: int, generator: np.random.Generator
) -> Iterator[Int64]:
    """Count the cells of so many rows drawn with replacement, again and again."""
    counts = crossing.counts(cells)
    for _ in range(DRAWS):
        # Cell by cell or row by row, whichever are fewer: the counts have the same law.
        if len(counts) < rows:
            yield generator.multinomial(rows, counts / len(cells))
        else:
            yield crossing.counts(cells[generator.integers(0, len(cells), rows)])


def _thinned(
    crossing: Crossing, cells: Int64, rows: int, generator: np.random.Generator
) -> Iterator[Int64]:
    """Count the cells of so many rows drawn without replacement; of all, if they are fewer."""
    counts = crossing.counts(cells)
    if rows >= len(cells):
        yield counts
        return
    for _ in range(DRAWS):
        if len(counts) < rows:
            yield generator.multivariate_hypergeometric(counts, rows, method="marginals")
        else:
            yield crossing.counts(generator.choice(cells, rows, replace=False, shuffle=False))


def _records(tables: RiskTables, outcome: _Outcome) -> list[Record]:
    subject, found = outcome.attack.subject, outcome.reach
    if not found.error.n:
        reason = "no target or no released row has a number where the attack needs one"
        return [not_computed(name, subject, reason) for name in NAMES]
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
    matched = (
        "share of the targets with a released row that agrees on all known features; baseline: "
        f"{_baseline(tables, outcome)}; {tables.limits}"
    )
    references = {
        "bootstrap": (outcome.bootstrap.error, bootstrap),
        "others": (outcome.others, others),
    }
    if outcome.outside is not None:
        instead = (
            "the same attack with real rows never given to the synthesizer, which is what the "
            f"population alone betrays; {_size(tables, outcome.outside)}; baseline: the error "
            "with what is released"
        )
        references["holdout"] = outcome.outside.instead.error, instead
        references["control"] = outcome.outside.control.error, _CONTROL
    error, reference = found.error, outcome.reference
    record = measured(
        NAMES[0],
        subject,
        error,
        baseline=reference.error.value,
        note=_note(tables, outcome),
        no_power=outcome.no_power,
    )
    records = [*with_references(record, references)]
    if outcome.outside is None:
        records.append(not_computed("intruder_error_holdout", subject, tables.no_holdout))
    matches = share(found.matched, error.n, level=tables.level)
    records.append(measured(NAMES[1], subject, matches, baseline=reference.matched, note=matched))
    return records


def _size(tables: RiskTables, outside: _Outside) -> str:
    if outside.fewer is not None:
        return (
            f"all {outside.rows} rows of it, fewer than the {tables.released_rows} released: what "
            f"compares is the error {outside.fewer.error.value:.6g} with released rows thinned to "
            "as many"
        )
    if outside.rows == tables.released_rows:
        return f"all {outside.rows} rows of it"
    return (
        f"{outside.rows} rows thinned to {tables.released_rows}: mean over {DRAWS} seeded draws "
        "without replacement, from the lowest to the highest limit"
    )


def _note(tables: RiskTables, outcome: _Outcome) -> str:
    found = outcome.reach
    if not outcome.attack.amounts:
        what = "share of wrong guesses; guess: the most frequent category among released rows that "
        what += "agree on all known features; ties by their exact expectation"
        fallback, interval = "most frequent category", "Wilson"
    else:
        what = "mean absolute error; guess: the mean among released rows that agree on all known "
        what += "features, numbers of the codes (bin midpoints), missing values left out"
        fallback, interval = "mean", "normal"
    left_out = tables.rows - found.error.n
    unmatched = round((1 - found.matched) * found.error.n)
    return (
        f"{what}; {unmatched} of {found.error.n} targets have no such row and get the {fallback} "
        f"of all released rows; {left_out} targets left out as their own value is missing"
        f"{tables.stacked}; baseline: {_baseline(tables, outcome)}; interval: {interval} "
        f"{100 * tables.level:g} % over the targets, given what is released"
    )


def _baseline(tables: RiskTables, outcome: _Outcome) -> str:
    if outcome.outside is None:
        return f"the bootstrap, as {tables.no_holdout}"
    return f"the hold-out, {_size(tables, outcome.outside)}"


def _overall(outcomes: Sequence[_Outcome]) -> Record:
    guesses = [o for o in outcomes if not o.attack.amounts]
    alone = guesses or (list(outcomes) if len(outcomes) == 1 else [])
    if not alone:
        reason = "amounts of several features have no common unit; see the attack of each"
        return not_computed(NAMES[0], "", reason)
    errors = [o.reach.error for o in alone]
    if any(each.n == 0 for each in errors):
        return measured(NAMES[0], "", NOTHING, note="see each attack")
    middle, low, high = np.mean([(e.value, e.low, e.high) for e in errors], axis=0).tolist()
    note = "mean over the attacks on categories, limits likewise: "
    note += "; ".join(o.attack.subject for o in alone)
    baseline = float(np.mean([o.reference.error.value for o in alone]))
    found = Estimate(middle, low, high, errors[0].n)
    return measured(NAMES[0], "", found, baseline=baseline, note=note)
