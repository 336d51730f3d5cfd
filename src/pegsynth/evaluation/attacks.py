"""Attacks by the paper's intruder, beside what an intruder achieves without the release.

Each scenario gives the error of the attack with the released rows and three references:

- *bootstrap*: as many rows drawn from the original with replacement, the mean over
  `DRAWS` seeded draws. It is what releasing real rows would betray.
- *hold-out*: real rows never given to the synthesizer, in the place of the released ones
  and thinned to as many, the mean over `DRAWS` seeded draws without replacement. It is
  what an intruder learns from the population alone.
- *control*: the released rows against the rows of the hold-out as targets. They were never
  given, so an error clearly above that of the original's rows is a disclosure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegsynth.evaluation.cells import Int64
from pegsynth.evaluation.groups import Crossing
from pegsynth.evaluation.intervals import NOTHING, Estimate, hull, share
from pegsynth.evaluation.intruder import cells_of, guess
from pegsynth.evaluation.records import Record
from pegsynth.evaluation.risk_tables import (
    NO_IDENTIFIER,
    NO_SENSITIVE,
    SEED,
    RiskTables,
    not_computed,
    record,
)
from pegsynth.evaluation.scenarios import Scenario

Floats = NDArray[np.float64]

DRAWS = 20


class _Reach(NamedTuple):
    """How far an attack gets: its error, and the share of targets with a match."""

    error: Estimate
    matched: float


@dataclass(frozen=True)
class _Outside:
    """References from a hold-out: in the place of the release, and as targets.

    `fewer` is the attack with the released rows thinned to the hold-out's, where it has
    fewer.
    """

    rows: int
    instead: _Reach
    control: _Reach
    fewer: _Reach | None


@dataclass(frozen=True)
class _Outcome:
    """One attack, its references, and the error of every target."""

    scenario: Scenario
    attack: _Reach
    bootstrap: _Reach
    outside: _Outside | None
    per_row: Floats

    @property
    def reference(self) -> _Reach:
        """The hold-out where there is one, else the bootstrap."""
        return self.bootstrap if self.outside is None else self.outside.instead


def intruder_records(
    tables: RiskTables, chosen: Sequence[Scenario]
) -> tuple[list[Record], dict[str, Floats]]:
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
    elif not all(scenario.known for scenario in chosen):
        reason = NO_IDENTIFIER
    if reason:
        return [
            not_computed("intruder_error", "", reason, better="higher"),
            not_computed("intruder_matched", "", reason),
        ], {}
    outcomes = [_run(tables, scenario) for scenario in chosen]
    records = [_overall(outcomes), *(r for each in outcomes for r in _records(tables, each))]
    return records, {f"intruder_error: {o.scenario.subject}": o.per_row for o in outcomes}


def _run(tables: RiskTables, scenario: Scenario) -> _Outcome:
    every = tables.with_holdout(tables.original, tables.released)
    crossing = cells_of(every, scenario.known, scenario.sensitive, tables.sizes)
    original, released, *holdout = crossing.cells
    targets = crossing.counts(original)
    generator = np.random.default_rng([SEED, 1])

    def reach(draws: Iterable[Int64], on: Int64 = targets) -> _Reach:
        estimates, matched = [], []
        for counts in draws:
            found = guess(crossing, counts, scenario.values)
            amounts = scenario.values is not None
            estimates.append(found.estimate(on, amounts=amounts, level=tables.level))
            matched.append(found.matched_share(on))
        return _Reach(hull(estimates), float(np.mean(matched)))

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
        scenario,
        reach([counts]),
        reach(_bootstraps(crossing, original, rows, generator)),
        outside,
        guess(crossing, counts, scenario.values).errors[original],
    )


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
    subject, attack = outcome.scenario.subject, outcome.attack
    if not attack.error.n:
        reason = "no target or no released row has a number where the attack needs one"
        return [
            not_computed("intruder_error", subject, reason, better="higher"),
            not_computed("intruder_matched", subject, reason),
        ]
    bootstrap = (
        f"the same attack with {tables.released_rows} rows drawn from the original with "
        f"replacement: mean over {DRAWS} seeded draws, from the lowest to the highest limit"
    )
    matched = (
        "share of the targets with a released row that agrees on all known features; baseline: "
        f"{_baseline(tables, outcome)}; {tables.limits}"
    )
    return [
        record(
            "intruder_error",
            subject,
            attack.error,
            baseline=outcome.reference.error.value,
            better="higher",
            note=_note(tables, outcome),
        ),
        record(
            "intruder_error_bootstrap",
            subject,
            outcome.bootstrap.error,
            baseline=attack.error.value,
            better="higher",
            note=f"{bootstrap}; baseline: the error with what is released",
        ),
        *_outside_records(tables, outcome),
        record(
            "intruder_matched",
            subject,
            share(attack.matched, attack.error.n, level=tables.level),
            baseline=outcome.reference.matched,
            note=matched,
        ),
    ]


def _outside_records(tables: RiskTables, outcome: _Outcome) -> list[Record]:
    subject, value = outcome.scenario.subject, outcome.attack.error.value
    outside = outcome.outside
    if outside is None:
        name = "intruder_error_holdout"
        return [not_computed(name, subject, tables.no_holdout, better="higher")]
    instead = (
        "the same attack with real rows never given to the synthesizer, which is what the "
        f"population alone betrays; {_size(tables, outside)}; baseline: the error with what is "
        "released"
    )
    control = (
        "the released rows against the hold-out's rows as targets, who were never given; "
        "baseline: the error for the original's rows, which tells of a disclosure where it is "
        "clearly lower"
    )
    return [
        record(name, subject, estimate, baseline=value, better="higher", note=note)
        for name, estimate, note in (
            ("intruder_error_holdout", outside.instead.error, instead),
            ("intruder_error_control", outside.control.error, control),
        )
    ]


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
    attack = outcome.attack
    if outcome.scenario.values is None:
        what = "share of wrong guesses; guess: the most frequent category among released rows that "
        what += "agree on all known features; ties by their exact expectation"
        fallback, interval = "most frequent category", "Wilson"
    else:
        what = "mean absolute error; guess: the mean among released rows that agree on all known "
        what += "features, numbers of the codes (bin midpoints), missing values left out"
        fallback, interval = "mean", "normal"
    left_out = tables.rows - attack.error.n
    unmatched = round((1 - attack.matched) * attack.error.n)
    return (
        f"{what}; {unmatched} of {attack.error.n} targets have no such row and get the {fallback} "
        f"of all released rows; {left_out} targets left out as their own value is missing"
        f"{tables.stacked}; baseline: {_baseline(tables, outcome)}; interval: {interval} "
        f"{100 * tables.level:g} % over the targets, given what is released"
    )


def _baseline(tables: RiskTables, outcome: _Outcome) -> str:
    if outcome.outside is None:
        return f"the bootstrap, as {tables.no_holdout}"
    return f"the hold-out, {_size(tables, outcome.outside)}"


def _overall(outcomes: Sequence[_Outcome]) -> Record:
    guesses = [o for o in outcomes if o.scenario.values is None]
    alone = guesses or (list(outcomes) if len(outcomes) == 1 else [])
    references = [o.reference.error.value for o in alone]
    if not alone:
        reason = "amounts of several features have no common unit; see the attack of each"
        return not_computed("intruder_error", "", reason, better="higher")
    values = [o.attack.error for o in alone]
    if any(each.n == 0 for each in values):
        return record("intruder_error", "", NOTHING, better="higher", note="see each attack")
    middle, low, high = np.mean([(e.value, e.low, e.high) for e in values], axis=0).tolist()
    estimate = Estimate(middle, low, high, values[0].n)
    note = "mean over the attacks on categories, limits likewise: "
    note += "; ".join(o.scenario.subject for o in alone)
    return record(
        "intruder_error",
        "",
        estimate,
        baseline=float(np.mean(references)),
        better="higher",
        note=note,
    )
