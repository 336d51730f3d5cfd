"""What fitting any imputation model shares: rows kept, targets allowed, targets in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Codes, Float64
from pegsynth.errors import DataError, ParameterError
from pegsynth.imputation.protocol import check_rows
from pegsynth.interruptible import Stop, run_each
from pegsynth.progress import Progress

if TYPE_CHECKING:
    from pegsynth.schema import Schema

_Fitted = TypeVar("_Fitted")

STAGE = "models"
MOST_CATEGORIES = 1_000


def kept_rows(
    codes: Codes, schema: Schema, sample_weight: Float64 | None, max_rows: int | None
) -> tuple[Codes, Float64]:
    """Return the rows to fit to and their weights, all 1 if there are none.

    Rows of weight 0 are left out; of the others at most `max_rows`, evenly spaced.
    """
    check_rows(codes, schema)
    if len(codes) == 0:
        raise DataError("an imputation model needs at least one row to be fitted to")
    weights = check_weights(sample_weight, len(codes))
    kept = np.flatnonzero(weights > 0)
    kept = kept[spaced_rows(len(kept), max_rows)]
    return codes[kept], weights[kept]


def check_weights(sample_weight: Float64 | None, rows: int) -> Float64:
    """Return weights as floating point numbers, 1 for every row if there are none."""
    if sample_weight is None:
        return np.ones(rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,):
        raise ParameterError("sample_weight must hold one number for each row")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise ParameterError("sample_weight must be finite, not negative, and not all zero")
    return weights


def check_targets(targets: Sequence[int] | None, schema: Schema) -> tuple[int, ...]:
    """Return the targets to fit, all features if none were named, without repetition."""
    features = len(schema.features)
    chosen = tuple(range(features)) if targets is None else tuple(dict.fromkeys(targets))
    if any(not 0 <= target < features for target in chosen):
        raise ParameterError(f"targets are feature numbers from 0 to {features - 1}")
    for target in chosen:
        count = schema.category_counts[target]
        if count > MOST_CATEGORIES:
            raise ParameterError(
                f"feature {schema.names[target]!r} has {count:,} categories; an imputation model "
                f"predicts at most {MOST_CATEGORIES:,}. Group its categories in the schema, or use "
                "a method of the pegs family"
            )
    return chosen


def spaced_rows(rows: int, most: int | None) -> NDArray[np.intp]:
    """Return at most `most` row numbers, evenly spaced: a public rule that needs no chance."""
    if most is not None and most < 1:
        raise ParameterError("a number of rows must be at least 1")
    if most is None or rows <= most:
        return np.arange(rows)
    return (np.arange(most) * rows) // most


def fit_each(
    targets: Sequence[int],
    fit: Callable[[int, Stop], _Fitted],
    *,
    threads: int,
    progress: Progress,
) -> dict[int, _Fitted]:
    """Fit all targets, several at a time, and tell of every one that is done.

    Ctrl-C ends it at once; fits look at the `Stop` they are given to end soon after.
    """
    fitted: dict[int, _Fitted] = {}
    progress(STAGE, 0, len(targets))
    for target, result in run_each(targets, fit, threads=threads):
        fitted[target] = result
        progress(STAGE, len(fitted), len(targets))
    return {target: fitted[target] for target in sorted(fitted)}
