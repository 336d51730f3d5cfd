"""Every measure of utility and risk of tables that have been read, as one `Evaluation`.

A new measure is a function that returns records, and a line in `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.evaluation.cell_problems import (
    IMPOSSIBLE_RULE,
    PAIR_RULE,
    SUBGROUP_RULE,
    CellTables,
    cell_problems,
)
from pegsynth.evaluation.evaluated_tables import Tables
from pegsynth.evaluation.figure_problems import (
    NUMBER_RULE,
    PREDICTION_RULE,
    REGRESSION_RULE,
    number_problems,
    prediction_problems,
    regression_problems,
)
from pegsynth.evaluation.problems import problem_records
from pegsynth.evaluation.records import (
    RISK_KEYS,
    SUMMARY_KEYS,
    Metrics,
    Record,
    headline,
    measured,
    not_computed,
)
from pegsynth.evaluation.risk.intruder import Attack, attacks_of, intruder_records
from pegsynth.evaluation.risk.matching import matching_records
from pegsynth.evaluation.risk.membership import membership_records
from pegsynth.evaluation.risk.reappearance import reappearance_records
from pegsynth.evaluation.risk.risk_tables import RiskTables, holdout_records, risk_tables
from pegsynth.evaluation.utility.distances import WEIGHTED, evaluate_codes
from pegsynth.evaluation.utility.number_records import NO_NUMBERS, Numbers, numbers_found
from pegsynth.evaluation.utility.panel_records import PANEL_KEYS
from pegsynth.evaluation.utility.regression_records import (
    Comparison,
    compare,
    has_values,
    not_fitted,
    regression_records,
)
from pegsynth.evaluation.utility.trained_models import prediction_records, propensity_records
from pegsynth.inference.combining_rules import effective_rows
from pegsynth.inference.formula import read_response
from pegsynth.inference.ledger_support import support_note
from pegsynth.inference.statistics import Estimate
from pegsynth.kernels.arrays import Codes
from pegsynth.progress import Progress, quiet
from pegsynth.schema import Schema

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.evaluation.evaluate import EvaluateOptions

ON_CODES = "_codes"
_LACKING = "column {name!r} could not be compared"


class Evaluation(Metrics, frozen=True, kw_only=True):
    """Metrics, and on request figures for every row of the original.

    Parameters
    ----------
    per_record
        A Polars frame with a line for each row of the original, in its order; None unless
        asked for. Confidential, and never part of ``metrics.json``.
    """

    per_record: Any = None


@dataclass(frozen=True)
class RiskResult:
    """What was measured.

    Parameters
    ----------
    records
        Every figure; those that could not be computed say why.
    per_record
        Figures for every row of the original, in its order, by name: the error of each
        attack, `group_size`, `released_matches`, `released_copies`, `match_probability`,
        `membership_score`. Confidential.
    """

    records: tuple[Record, ...]
    per_record: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Work:
    """Tables one feature a line, as most measures want them, and what several measures need."""

    tables: Tables
    schema: Schema
    original: Codes
    synthetic: tuple[Codes, ...]
    holdout: Codes | None
    options: EvaluateOptions

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of all tables."""
        return numbers_found(self.tables, self.schema, self.options.rule)

    @cached_property
    def regressions(self) -> tuple[list[Comparison], list[Comparison], list[Record]]:
        """Every formula fitted to the numbers of the tables and to their codes; some to neither.

        Where a formula has no numeric feature, or a table no numbers of one, codes are all there
        is, and stand in the place of numbers.
        """
        by_values, by_codes, left_out = list[Comparison](), list[Comparison](), list[Record]()
        options, values = self.options, self.tables.values
        codes = [self.original, *(table.T for table in self.tables.synthetic)]
        replicated = any(each.replicates is not None for each in values[1:])
        for formula in options.formulas:
            if lacking := _lacking(formula.features, self.tables):
                left_out += not_fitted(formula.text, lacking)
                continue
            support = ""
            if options.ledger is not None:
                # Nothing is said where the ledger publishes no feature of the formula.
                with suppress(ParameterError):
                    support = support_note(options.ledger, " + ".join(formula.features))
            fitted = partial(
                compare,
                formula,
                schema=self.schema,
                rule=options.rule,
                support=support,
                threads=options.threads,
            )
            if replicated:
                on_codes = fitted(codes, values=[replace(each, columns={}) for each in values])
            else:
                on_codes = fitted((self.original, *self.synthetic))
            if has_values(formula, self.schema, values):
                by_codes.append(on_codes)
                by_values.append(fitted(codes, values=values))
            else:
                by_values.append(on_codes)
        return by_values, by_codes, left_out

    @cached_property
    def prediction(self) -> list[Record]:
        """How well a model trained on the release predicts."""
        target = self.options.target
        if target is None:
            return [not_computed("auc_synthetic", "", "no target was given (--target F)")]
        try:
            read_response(target, self.schema)
        except ParameterError:
            return [not_computed("auc_synthetic", target, _LACKING.format(name=target))]
        return prediction_records(
            target, self.original, self.synthetic, self.schema, holdout=self.holdout
        )

    @cached_property
    def risk(self) -> RiskResult:
        """What is disclosed; without a column that identifies or is inferred it means nothing."""
        options, tables = self.options, self.tables
        named = [name for pair in options.attacks for names in pair for name in names or ()]
        lacking = _lacking([*tables.roles, *named], tables)
        if lacking:
            names = ("uniqueness", *RISK_KEYS)
            return RiskResult(tuple(not_computed(name, "", lacking) for name in names))
        # The first attack takes the place of the roles; further ones are the intruder's alone.
        known, infer = options.attacks[0]
        checked = risk_tables(
            tables.original,
            tables.synthetic,
            self.schema,
            holdout=tables.holdout,
            known=known,
            infer=infer,
            threads=options.threads,
        )
        chosen = [each for names in options.attacks for each in attacks_of(self.schema, *names)]
        return risk_records(checked, chosen)


@dataclass(frozen=True)
class Measure:
    """One line of `MEASURES`.

    Parameters
    ----------
    stage
        What progress calls it.
    records
        From the tables to its figures.
    headlines
        Those of the table as a whole that the summary shows.
    turn
        Measures of a later turn come after all of an earlier one.
    """

    stage: str
    records: Callable[[Work], Sequence[Record]]
    headlines: tuple[str, ...] = ()
    turn: int = 0


def evaluate_tables(
    tables: Tables,
    options: EvaluateOptions,
    *,
    progress: Progress = quiet,
) -> Evaluation:
    """Measure all that can be measured of tables that have been read."""
    if tables.schema is None or not tables.synthetic:
        return _nothing(tables)
    work = Work(
        tables,
        tables.schema,
        np.ascontiguousarray(tables.original.T),
        tuple(np.ascontiguousarray(table.T) for table in tables.counted),
        None if tables.holdout is None else np.ascontiguousarray(tables.holdout.T),
        options,
    )
    progress("tables", 0, None)
    base = evaluate_codes(
        tables.original,
        [table.T for table in work.synthetic],
        tables.schema,
        threads=options.threads,
        released=tables.synthetic if tables.weighted else None,
    )
    found: list[Record] = []
    for measure in sorted(MEASURES, key=lambda each: each.turn):
        progress(measure.stage, 0, None)
        found += measure.records(work)
    records = (
        *_merged(base.records, found, tables),
        *holdout_records(work.original, work.holdout, work.schema.category_counts),
    )
    return Evaluation(
        summary=_summary(records),
        records=records,
        marginals=base.marginals,
        distributions=work.numbers.distributions(tables.schema),
        per_record=_per_record(work) if options.per_record else None,
    )


def _per_record(work: Work) -> pl.DataFrame:
    """Return the figures of every row of the original."""
    import polars as pl

    rows = work.original.shape[1]
    columns = {name: each for name, each in work.risk.per_record.items() if len(each) == rows}
    return pl.DataFrame({"row": np.arange(1, rows + 1), **columns})


def _regressions(work: Work) -> list[Record]:
    by_values, by_codes, left_out = work.regressions
    found = [*regression_records(by_values), *left_out]
    return [*found, *(regression_records(by_codes, suffix=ON_CODES) if by_codes else [])]


def _problems(work: Work) -> list[Record]:
    """Check by every rule: what is off, and the records that belong to it."""
    tables = CellTables(
        work.schema, work.original, work.synthetic, work.options.noise, work.options.threads
    )
    cells, records = cell_problems(tables)
    numbers = work.numbers
    problems = [
        *cells,
        *regression_problems(work.regressions[0]),
        *prediction_problems(work.prediction),
        *number_problems(numbers.sides, numbers.pairs, numbers.moments),
    ]
    rules = (
        SUBGROUP_RULE,
        IMPOSSIBLE_RULE,
        REGRESSION_RULE,
        PREDICTION_RULE,
        NUMBER_RULE
        if numbers.sides or numbers.moments
        else f"Numbers were not judged: {NO_NUMBERS}.",
        PAIR_RULE,
    )
    return [*problem_records(problems, rules, n=tables.released), *records]


def _effective(work: Work) -> list[Record]:
    """Say of weighted tables how many rows of equal weight they are worth."""
    note = (
        "(sum w)^2 / sum w^2 of the weights (Kish 1965, Survey Sampling); baseline: rows of the "
        "table; what chance explains is worked out for these rows"
    )
    return [
        measured(
            "effective_rows",
            "" if len(work.synthetic) == 1 else f"synthetic table {number}",
            Estimate(effective_rows(each.weights), n=len(each.weights)),
            baseline=float(len(each.weights)),
            note=note,
        )
        for number, each in enumerate(work.tables.values[1:], start=1)
        if each.weights is not None
    ]


def _lacking(names: Sequence[str], tables: Tables) -> str:
    found = [name for name in names if name in tables.missing]
    return _LACKING.format(name=found[0]) if found else ""


def risk_records(tables: RiskTables, attacks: Sequence[Attack]) -> RiskResult:
    """Measure every risk of tables; the attacks are those of the intruder."""
    found: list[tuple[list[Record], Mapping[str, NDArray[Any]]]] = [
        intruder_records(tables, attacks),
        reappearance_records(tables),
        matching_records(tables),
        membership_records(tables),
    ]
    return RiskResult(
        tuple(record for records, _ in found for record in records),
        {name: values for _, per_record in found for name, values in per_record.items()},
    )


def _merged(base: Sequence[Record], found: Sequence[Record], tables: Tables) -> tuple[Record, ...]:
    """Put all records together; what is measured later takes the place of its stand-in."""
    later = {(record.name, record.subject): record for record in found}
    headlines = [later.pop((record.name, record.subject), record) for record in base]
    records = [*headlines, *later.values()]
    if tables.missing:
        without = f"; without {', '.join(tables.missing)}, which could not be compared"
        for place, record in enumerate(records):
            if not record.subject and record.value is not None:
                records[place] = msgspec.structs.replace(record, note=record.note + without)
    return (*records, *tables.records)


def _summary(records: Sequence[Record]) -> dict[str, float | None]:
    """Return the headline figures; those of people where a panel has them (R24)."""
    chosen = {name: headline(records, name) for name in HEADLINES}
    summary = {name: None if each is None else each.value for name, each in chosen.items()}
    people = (each for each in records if each.name in PANEL_KEYS and not each.subject)
    return summary | {each.name: each.value for each in people}


def _nothing(tables: Tables) -> Evaluation:
    """Return an evaluation of tables without rows."""
    real = len(tables.original)
    reason = "no synthetic table has a row" if real else "the original has no rows"
    records = (*(not_computed(name, "", reason) for name in HEADLINES), *tables.records)
    return Evaluation(summary=dict.fromkeys(HEADLINES), records=records)


MEASURES = (
    Measure("regressions", _regressions, ("interval_overlap",)),
    Measure(
        "numbers",
        lambda work: work.numbers.records(),
        ("kolmogorov_distance", "wasserstein_distance", "pearson_distance", "spearman_distance"),
    ),
    Measure("faults", _problems, ("utility_faults",), turn=1),
    Measure(
        "propensity",
        lambda work: propensity_records(
            work.original,
            work.synthetic,
            work.schema.category_counts,
            threads=work.options.threads,
        ),
        ("pmse", "pmse_ratio"),
    ),
    Measure("prediction", lambda work: work.prediction, ("auc_synthetic",)),
    Measure("weights", _effective, turn=1),
    Measure("risk", lambda work: work.risk.records, RISK_KEYS, turn=2),
)
"""What is measured beside the one-, two- and three-way tables, in the order of the summary."""

HEADLINES = (*SUMMARY_KEYS, WEIGHTED, *(name for each in MEASURES for name in each.headlines))
