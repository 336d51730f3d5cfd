"""Every measure of utility and risk of tables that have been read, as one `Evaluation`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.evaluation.evaluate_options import EvaluateOptions
from pegsynth.evaluation.faults.cell_faults import (
    IMPOSSIBLE_RULE,
    PAIR_RULE,
    SUBGROUP_RULE,
    CellTables,
    cell_findings,
)
from pegsynth.evaluation.faults.fault_kinds import fault_records
from pegsynth.evaluation.faults.figure_faults import (
    PREDICTION_RULE,
    REGRESSION_RULE,
    CoefficientSides,
    coefficient_sides,
    prediction_faults,
    regression_faults,
)
from pegsynth.evaluation.judged_tables import Tables
from pegsynth.evaluation.records import (
    RISK_KEYS,
    SUMMARY_KEYS,
    Metrics,
    Record,
    headline,
    measured,
    not_computed,
)
from pegsynth.evaluation.risk.risk_tables import holdout_records
from pegsynth.evaluation.risk.risks import RiskResult, risk_records
from pegsynth.evaluation.utility.panel_records import PANEL_KEYS
from pegsynth.evaluation.utility.predictive_accuracy import prediction_records
from pegsynth.evaluation.utility.propensity import propensity_records
from pegsynth.evaluation.utility.regression_records import (
    compare,
    has_values,
    not_fitted,
    regression_records,
)
from pegsynth.evaluation.utility.table_distances import evaluate_codes
from pegsynth.evaluation.utility.value_records import Numbers, numbers_found
from pegsynth.inference.combining_rules import effective_rows
from pegsynth.inference.formula import Formula, read_response
from pegsynth.inference.ledger_support import support_note
from pegsynth.inference.statistics import Estimate
from pegsynth.kernels.arrays import Codes
from pegsynth.privacy import Ledger
from pegsynth.progress import Progress, quiet
from pegsynth.schema import Schema

UTILITY_KEYS = (
    "tvd2_weighted",
    "interval_overlap",
    "kolmogorov_distance",
    "wasserstein_distance",
    "pearson_distance",
    "spearman_distance",
    "utility_faults",
    "pmse",
    "pmse_ratio",
    "auc_synthetic",
)
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
class _Work:
    """The tables one feature a line, as most measures want them."""

    tables: Tables
    schema: Schema
    original: Codes
    synthetic: tuple[Codes, ...]
    holdout: Codes | None
    options: EvaluateOptions


def evaluate_tables(
    tables: Tables,
    options: EvaluateOptions,
    *,
    progress: Progress = quiet,
) -> Evaluation:
    """Measure all that can be measured of tables that have been read."""
    if tables.schema is None or not tables.synthetic:
        return _nothing(tables)
    work = _Work(
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
    progress("numbers", 0, None)
    numbers = numbers_found(tables, tables.schema, options.rule)
    progress("regressions", 0, None)
    found, coefficients = _regressions(work)
    found += numbers.records()
    progress("propensity", 0, None)
    found += propensity_records(
        work.original, work.synthetic, work.schema.category_counts, threads=options.threads
    )
    progress("prediction", 0, None)
    found += _prediction(work)
    found += _judged(work, numbers, coefficients, found)
    found += _effective(tables)
    progress("risk", 0, None)
    risk = _risk(work)
    records = (
        *_merged(base.records, [*found, *risk.records], tables),
        *holdout_records(work.original, work.holdout, work.schema.category_counts),
    )
    return Evaluation(
        summary=_summary(records),
        records=records,
        marginals=base.marginals,
        distributions=numbers.distributions(tables.schema),
        per_record=_frame(risk, len(tables.original)) if options.per_record else None,
    )


def _regressions(work: _Work) -> tuple[list[Record], list[CoefficientSides]]:
    """Fit every formula to the numbers of the tables, and to their codes.

    Where a formula has no numeric feature, or a table no numbers of one, codes are all there is.
    """
    by_codes, by_values, left_out = [], [], []
    options, values = work.options, work.tables.values
    codes = [work.original, *(table.T for table in work.tables.synthetic)]
    counted = (work.original, *work.synthetic)
    plain = [replace(each, columns={}) for each in values]
    replicated = any(each.replicates is not None for each in values[1:])
    for formula in options.formulas:
        lacking = _lacking(formula.features, work.tables)
        if lacking:
            left_out += not_fitted(formula.text, lacking)
            continue
        fitted = partial(
            compare,
            formula,
            schema=work.schema,
            rule=options.rule,
            support="" if options.ledger is None else _support(options.ledger, formula),
            threads=options.threads,
        )
        on_codes = fitted(codes, values=plain) if replicated else fitted(counted)
        if not has_values(formula, work.schema, values):
            by_values.append(on_codes)
            continue
        by_codes.append(on_codes)
        by_values.append(fitted(codes, values=values))
    coefficients = [side for each in by_values for side in coefficient_sides(each)]
    found = [*regression_records(by_values), *left_out]
    if by_codes:
        found += regression_records(by_codes, suffix=ON_CODES)
    return found, coefficients


def _support(ledger: Ledger, formula: Formula) -> str:
    """Say whether published tables hold a formula, where its features are published at all."""
    try:
        return support_note(ledger, " + ".join(formula.features))
    except ParameterError:
        return ""


def _judged(
    work: _Work,
    numbers: Numbers,
    coefficients: Sequence[CoefficientSides],
    found: Sequence[Record],
) -> list[Record]:
    """Judge by every rule: what is off, and the records that belong to it."""
    tables = CellTables(
        work.schema, work.original, work.synthetic, work.options.noise, work.options.threads
    )
    cells = cell_findings(tables)
    faults = [
        *cells.faults,
        *regression_faults(coefficients),
        *prediction_faults(found),
        *numbers.faults(),
    ]
    rules = (
        SUBGROUP_RULE,
        IMPOSSIBLE_RULE,
        REGRESSION_RULE,
        PREDICTION_RULE,
        numbers.rule,
        PAIR_RULE,
    )
    return [*fault_records(faults, rules, n=tables.released), *cells.records]


def _effective(tables: Tables) -> list[Record]:
    """Say of weighted tables how many rows of equal weight they are worth."""
    named = [
        ("" if len(tables.synthetic) == 1 else f"synthetic table {number}", each.weights)
        for number, each in enumerate(tables.values[1:], start=1)
        if each.weights is not None
    ]
    return [
        measured(
            "effective_rows",
            subject,
            Estimate(effective_rows(weights), n=len(weights)),
            baseline=float(len(weights)),
            note="(sum w)^2 / sum w^2 of the weights (Kish 1965, Survey Sampling); baseline: rows "
            "of the table; what chance explains is worked out for these rows",
        )
        for subject, weights in named
    ]


def _prediction(work: _Work) -> list[Record]:
    target = work.options.target
    if target is None:
        return [not_computed("auc_synthetic", "", "no target was given (--target F)")]
    try:
        read_response(target, work.schema)
    except ParameterError:
        return [not_computed("auc_synthetic", target, _LACKING.format(name=target))]
    return prediction_records(
        target,
        work.original,
        work.synthetic,
        work.schema,
        holdout=work.holdout,
    )


def _lacking(names: Sequence[str], tables: Tables) -> str:
    found = [name for name in names if name in tables.missing]
    return _LACKING.format(name=found[0]) if found else ""


def _risk(work: _Work) -> RiskResult:
    """Measure the risks; without a column that identifies or is inferred they mean nothing."""
    options, tables = work.options, work.tables
    named = [name for pair in options.attacks for names in pair for name in names or ()]
    lacking = _lacking([*tables.roles, *named], tables)
    if lacking:
        names = ("uniqueness", *RISK_KEYS)
        return RiskResult(tuple(not_computed(name, "", lacking) for name in names))
    return risk_records(
        tables.original,
        tables.synthetic,
        work.schema,
        holdout=tables.holdout,
        attacks=options.attacks,
        threads=options.threads,
    )


def _merged(base: Sequence[Record], found: Sequence[Record], tables: Tables) -> tuple[Record, ...]:
    """Put all records together; what is measured later takes the place of its stand-in."""
    later = {(record.name, record.subject): record for record in found}
    headlines = [later.pop((record.name, record.subject), record) for record in base]
    records = (*headlines, *later.values())
    if tables.missing:
        without = f"; without {', '.join(tables.missing)}, which could not be compared"
        records = tuple(
            record
            if record.subject or record.value is None
            else msgspec.structs.replace(record, note=record.note + without)
            for record in records
        )
    return (*records, *tables.records)


def _summary(records: Sequence[Record]) -> dict[str, float | None]:
    """Return the headline figures."""
    summary: dict[str, float | None] = {}
    for name in (*SUMMARY_KEYS, *UTILITY_KEYS, *RISK_KEYS):
        chosen = headline(records, name)
        summary[name] = None if chosen is None else chosen.value
    for record in records:
        # Only panels have these (R24).
        if record.name in PANEL_KEYS and not record.subject:
            summary[record.name] = record.value
    return summary


def _nothing(tables: Tables) -> Evaluation:
    """Return an evaluation of tables without rows."""
    real = len(tables.original)
    reason = "no synthetic table has a row" if real else "the original has no rows"
    names = (*SUMMARY_KEYS, *UTILITY_KEYS, *RISK_KEYS)
    records = (*(not_computed(name, "", reason) for name in names), *tables.records)
    return Evaluation(summary=dict.fromkeys(names), records=records)


def _frame(risk: RiskResult, rows: int) -> Any:
    import polars as pl

    columns = {name: values for name, values in risk.per_record.items() if len(values) == rows}
    return pl.DataFrame({"row": np.arange(1, rows + 1), **columns})
