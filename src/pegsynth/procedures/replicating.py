"""One call for a formula, a statistic or a function of a table with replicate weights (R28)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pegsynth.errors import ParameterError
from pegsynth.evaluation.formula import is_declared
from pegsynth.inference.choice import weights_of
from pegsynth.inference.combine import Combined, Floor
from pegsynth.inference.combining_rules import Numbers
from pegsynth.inference.ledger_support import names_features, status_of, support_note
from pegsynth.inference.pooled_result import Pooled
from pegsynth.inference.replicated import replicated as of_a_function
from pegsynth.inference.replicated import weights_in, with_note
from pegsynth.inference.shared_bias import floor_of_shares, with_shared_bias
from pegsynth.io.caller_frames import from_frame
from pegsynth.privacy import Ledger
from pegsynth.procedures.weighted_regression import Family, regression
from pegsynth.procedures.weighted_statistics import Prepared, Statistic
from pegsynth.release_views import ReleaseViews
from pegsynth.schema import Schema


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
        if len(frame.frames) != 1:
            raise ParameterError(
                f"this release has {len(frame.frames)} tables and no replicate weights; use pooled"
            )
        (frame,) = frame.weighted
    if isinstance(fit, str):
        fit = regression(fit, family=family, exposure=exposure)
    elif family is not None or exposure is not None:
        raise ParameterError("family and exposure are for a formula; remove them")
    options: dict[str, Any] = {"names": names, "ledger": ledger, "floor": floor}
    if not isinstance(fit, Statistic):
        return of_a_function(fit, frame, weight=weight, analysis=analysis, schema=schema, **options)
    if weight is None and ledger is not None:
        weight = next(iter(weights_of(ledger)), None)
    main = weights_in(frame, weight)[0]
    prepared = fit.prepare(from_frame(frame).lazy().collect(), main, schema)
    if names is not None and prepared.finished is not None:
        raise ParameterError("quantiles are chosen by their probabilities; remove names")
    if fit.counted and ledger is not None and floor is None:
        shown = prepared.estimates(main) if names is None else names
        options["floor"] = floor_of_shares(ledger, fit.counted, main, shown)
    found = of_a_function(
        lambda _, weights: prepared.estimates(weights), frame, weight=weight, **options
    )
    combined = replace(found.combined, link=fit.link)
    if ledger is not None and (analysis or names_features(ledger, fit.analysis)):
        asked = analysis or fit.analysis
        combined = with_note(combined, _note(ledger, asked, schema))
        combined = replace(combined, statuses=_statuses(combined, prepared, ledger, schema))
        combined = with_shared_bias(combined, prepared.estimates, frame, main, ledger, asked)
    if prepared.finished is not None:
        combined = prepared.finished(combined)
    return replace(
        found,
        combined=combined,
        terms=_kept(prepared.terms, found.names),
        response=prepared.response,
    )


def _kept(terms: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the terms with those coefficients that could be estimated."""
    found = {term: tuple(name for name in each if name in names) for term, each in terms.items()}
    return {term: each for term, each in found.items() if each}


def _note(ledger: Ledger, analysis: str, schema: Schema | None) -> str:
    """Say whether published tables support an analysis.

    What was measured for a declared regression serves that regression; without a codebook, any
    of the same features.
    """
    formula = "~" in analysis and (schema is None or is_declared(analysis, schema))
    return support_note(ledger, analysis, declared=formula, schema=schema)


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
