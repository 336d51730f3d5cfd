"""A regression by formula of the values of a weighted table, with the regressions of `evaluation`.

The table says what its columns are: numbers, or categories in the order of the codebook where one
is known and of their text elsewhere. Numbers of few values can be taken by category, too.

One call for a formula, a statistic or a function of a table with replicate weights (R28).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import polars as pl

from pegsynth.errors import ParameterError
from pegsynth.inference.choice import (
    check_rule,
    design_of,
    from_released_blocks,
    weights_in,
    weights_of,
)
from pegsynth.inference.combine import Combined, combine
from pegsynth.inference.combining_rules import Floor, Numbers
from pegsynth.inference.formula import Formula, Interaction, Kind, is_declared, read_formula
from pegsynth.inference.ledger_support import (
    LEDGER_NEEDED,
    NO_ANALYSIS,
    NOT_ASKED,
    floor_of_shares,
    names_features,
    status_of,
    support_note,
)
from pegsynth.inference.model_matrix import columns_of, sample_of
from pegsynth.inference.pooled import estimates_of
from pegsynth.inference.pooled_result import Pooled
from pegsynth.inference.procedures.weighted_statistics import (
    Estimates,
    Prepared,
    Statistic,
    column_of,
    numbers,
)
from pegsynth.inference.regression_fit import fit
from pegsynth.inference.release_views import ReleaseViews
from pegsynth.inference.shared_bias import Asked, with_shared_bias
from pegsynth.inference.value_columns import TableValues
from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.privacy import Ledger
from pegsynth.schema import Feature, Schema
from pegsynth.schema.feature import number_text
from pegsynth.tables.caller_frames import frame_kind, from_frame, to_kind, with_index

Family: TypeAlias = Literal["gaussian", "binomial", "poisson"]

_KINDS: Final[dict[str, Kind]] = {
    "gaussian": "linear",
    "binomial": "logistic",
    "poisson": "poisson",
}
_MOST_LISTED: Final = 256
"""Distinct numbers of a column that can be taken by category."""


def regression(
    formula: str, *, family: Family | None = None, exposure: str | None = None
) -> Statistic:
    """Return a regression by formula.

    Parameters
    ----------
    formula
        As ``los ~ age + C(sev) + I(age^2)``: `pegsynth.inference.formula` says what it may hold.
    family
        "gaussian", "binomial" (the second of two values is explained) or "poisson"; by default
        binomial for a comparison and for a response of two values, and else gaussian.
    exposure
        For poisson: the column that counts are to be divided by.
    """
    if family is not None and family not in _KINDS:
        raise ParameterError(f"family is one of {', '.join(_KINDS)}, not {family!r}")
    if exposure is not None and family != "poisson":
        raise ParameterError('exposure is for counts: state family="poisson", or remove exposure')

    def prepare(frame: pl.DataFrame, _: object, book: Schema | None) -> Prepared:
        return _prepared(formula, frame, book, _KINDS.get(family or ""), exposure)

    return Statistic(prepare, formula)


def _prepared(
    text: str, frame: pl.DataFrame, book: Schema | None, kind: Kind | None, exposure: str | None
) -> Prepared:
    named = [
        name for name in frame.columns if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text)
    ]
    described = {name: _described(frame, name, book) for name in named}
    if not described:
        raise ParameterError(f"formula {text!r} names no column of the table")
    schema = Schema(tuple(feature for feature, _, _ in described.values()))
    formula = read_formula(text, schema, kind=kind)
    for part in (formula.response, *formula.parts):
        if part.categorical and schema[part.feature].binned:
            raise ParameterError(
                f"formula {text!r}: {part.feature!r} has more than {_MOST_LISTED} values; take it "
                f"as a number, or compare it, as I({part.feature} > 5)"
            )
    codes = np.stack([codes for _, codes, _ in described.values()])
    columns = {name: found for name, (_, _, found) in described.items() if found is not None}
    times = None if exposure is None else numbers(frame, exposure, least=0.0)
    if formula.kind == "poisson" and np.nanmin(columns[formula.response.feature]) < 0:
        raise ParameterError(f"formula {text!r}: counts of a poisson regression are at least 0")
    values = TableValues(columns)
    plain = sample_of(formula, codes, schema, values, exposures=times)
    design = columns_of(formula, [plain], schema)

    def estimates(weights: Float64) -> Estimates:
        weighted = replace(values, weights=weights)
        found = fit(
            sample_of(formula, codes, schema, weighted, exposures=times), design, formula.kind
        )
        if found.reason:
            raise ParameterError(f"formula {text!r}: {found.reason}")
        return {name: each.value for name, each in found.estimates.items()}

    terms: dict[str, tuple[str, ...]] = {}
    for column in design:
        terms[column.term] = (*terms.get(column.term, ()), column.name)
    return Prepared(estimates, terms, _joint(formula, terms), formula.response.text)


def _joint(formula: Formula, terms: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return what one table must hold for the coefficients of an interaction."""
    return {
        name: f"{formula.response.label} ~ {'*'.join(part.label for part in term.parts)}"
        for term in formula.terms
        if isinstance(term, Interaction)
        for name in terms.get(term.label, ())
    }


def _described(
    frame: pl.DataFrame, name: str, book: Schema | None
) -> tuple[Feature, Codes, Float64 | None]:
    """Return what a column is, its codes, and its numbers where it has some."""
    values = column_of(frame, name)
    known = book[name] if book is not None and name in book.names else None
    if values.dtype.is_numeric() or values.dtype == pl.Boolean or (known and known.binned):
        return _number(name, numbers(frame, name))
    text = values.cast(pl.String)
    found = set(text.drop_nulls().unique().to_list()) - {""}
    order = [label for label in known.labels if label in found] if known else []
    labels = [*order, *sorted(found - set(order))]
    feature = Feature(name, categories=tuple(labels), missing=("",))
    numbered = text.replace_strict(
        labels, list(range(len(labels))), default=len(labels), return_dtype=pl.UInt32
    )
    return feature, numbered.to_numpy(), None


def _number(name: str, found: Float64) -> tuple[Feature, Codes, Float64]:
    inside = np.isfinite(found)
    distinct, place = np.unique(found[inside], return_inverse=True)
    codes = np.zeros(len(found), dtype=np.uint32)
    if 0 < len(distinct) <= _MOST_LISTED:
        labels = tuple(map(number_text, distinct.tolist()))
        feature = Feature(name, kind="ordinal", categories=labels, missing=("",))
        codes[inside] = place
    else:
        low, high = (distinct[0], distinct[-1]) if len(distinct) else (0.0, 1.0)
        feature = Feature(name, kind="numeric", edges=(float(low), float(high)), missing=("",))
    codes[~inside] = feature.bin_count
    return feature, codes, np.where(inside, found, np.nan)


def replicated(
    fit: str | Statistic | Callable[[Any, Numbers], Any],
    frame: Any,
    *,
    family: Family | None = None,
    exposure: str | None = None,
    names: Sequence[str] | None = None,
    weight: str | None = None,
    ledger: Ledger | None = None,
    schema: Schema | None = None,
    floor: Floor | None = None,
    analysis: str | None = None,
) -> Pooled:
    """Analyse a table with its weights and with each of its replicates.

    Parameters
    ----------
    fit
        A formula, such as ``los ~ age + C(sev)``; a statistic of `pegsynth.procedures`; or a
        function that takes the table and an array of weights, and returns a result with `params`,
        as statsmodels does, or estimates: a number, an array or a mapping. Standard errors are
        not looked at.
    frame
        A dataframe with the columns `pegs_weight`, `pegs_weight_1`, `pegs_weight_2`, ..; or the
        release that holds it, whose ledger and codebook are then taken.
    family, exposure
        Of a formula: "gaussian", "binomial" or "poisson", and for counts the column that they are
        to be divided by.
    names
        Coefficients to keep, or names for those that have none.
    weight
        The name of the first column of weights; None: as the ledger says, or by its name.
    schema
        The codebook, for the order of categories.
    ledger, floor, analysis
        As for `combine`; the analysis is by default the formula itself, and the floor of
        `procedures.shares` without groups that of the ledger.

    Returns
    -------
    Pooled
        `params`, `bse`, `conf_int()`, `cov_params()`, `pvalues`, `summary()`, `t_test`,
        `wald_test` and others; printing it shows 95 % intervals.
    """
    if isinstance(frame, ReleaseViews):
        ledger = frame.ledger if ledger is None else ledger
        schema = getattr(frame, "schema", None) if schema is None else schema
        frame = _only_table(frame)
    if isinstance(fit, str):
        fit = regression(fit, family=family, exposure=exposure)
    elif family is not None or exposure is not None:
        raise ParameterError("family and exposure are for a formula; remove them")
    if analysis is not None and ledger is None:
        raise ParameterError(LEDGER_NEEDED)
    if weight is None and ledger is not None:
        weight = next(iter(weights_of(ledger)), None)
    weights = weights_in(frame, weight)
    if isinstance(fit, Statistic):
        rows = from_frame(frame).lazy().collect()
    else:
        fit, rows = _of_function(fit), frame
    prepared = fit.prepare(rows, weights[0], schema)
    if names is not None and prepared.finished is not None:
        raise ParameterError("quantiles are chosen by their probabilities; remove names")

    def estimates(weights: Numbers) -> Estimates:
        return estimates_of(prepared.estimates(weights), names)

    def again(table: pl.DataFrame) -> Estimates:
        like = with_index(to_kind(table, frame_kind(rows), like=rows), rows)
        changed = fit.prepare(like, weights[0], schema)
        return estimates_of(changed.estimates(weights[0]), names)

    main, *rest = map(estimates, weights)
    if fit.counted and ledger is not None and floor is None:
        floor = floor_of_shares(ledger, fit.counted, weights[0], main)
    part = None if ledger is None else _part(ledger)
    combined = combine(rest, rule="replicate-weights", main=main, floor=floor, part=part)
    combined = replace(combined, link=fit.link)
    if ledger is not None and (analysis or names_features(ledger, fit.analysis)):
        asked = analysis or fit.analysis
        combined = _with_note(combined, _note(ledger, fit, asked, schema))
        combined = replace(combined, statuses=_statuses(combined, prepared, ledger, schema))
        told = Asked(frame, weights[0], estimates, again, asked, schema)
        combined = with_shared_bias(combined, told, ledger)
    elif ledger is not None:
        combined = combined.with_status(NO_ANALYSIS)
    if prepared.finished is not None:
        combined = prepared.finished(combined)
    terms = _kept(prepared.terms, combined.names)
    return Pooled(combined, frame_kind(frame), terms, prepared.response)


def _only_table(release: ReleaseViews) -> Any:
    if len(release.frames) != 1:
        raise ParameterError(
            f"this release has {len(release.frames)} tables and no replicate weights; use pooled"
        )
    return release.weighted[0]


def _of_function(fit: Callable[[Any, Numbers], Any]) -> Statistic:
    """Return what a function of a table and weights computes; its columns are not known."""
    return Statistic(lambda table, *_: Prepared(partial(fit, table)), "")


def _part(ledger: Ledger) -> float | None:
    """Return the part of sampling error and noise that replicates have, as a ledger records it."""
    if not from_released_blocks(ledger):
        check_rule("replicate-weights", ledger)
    # The ledger of a model says nothing of weights that were drawn from it; the columns do.
    design = design_of(ledger)
    return None if design is None else design.part


def _with_note(found: Combined, note: str) -> Combined:
    """Say of all quantities what published tables hold of them."""
    kept = tuple(each for each in found.notes if each != NOT_ASKED)
    if not note:
        return replace(found, notes=kept, statuses=())
    return replace(found, notes=(*kept, note)).with_status(status_of(note))


def _kept(terms: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the terms with those coefficients that could be estimated."""
    found = {term: tuple(name for name in each if name in names) for term, each in terms.items()}
    return {term: each for term, each in found.items() if each}


def _note(ledger: Ledger, fit: Statistic, analysis: str, schema: Schema | None) -> str:
    """Say whether published tables support an analysis.

    What was measured for a declared regression serves that regression; without a codebook, and
    for a function of which nothing else is known, any of the same features.
    """
    formula = "~" in analysis and (schema is None or is_declared(analysis, schema))
    return support_note(ledger, analysis, declared=formula or not fit.analysis, schema=schema)


def _statuses(
    combined: Combined, prepared: Prepared, ledger: Ledger, schema: Schema | None
) -> tuple[str, ...]:
    """Return the status of every estimate; an interaction needs one table of all its features."""
    found = dict(zip(combined.names, combined.statuses, strict=False))
    for name, formula in prepared.joint.items():
        if name in found and not (schema is not None and is_declared(formula, schema)):
            own = support_note(ledger, formula, declared=False, schema=schema, joint=True)
            found[name] = status_of(own)
    return tuple(found.values())
