"""One model fitted to every synthetic dataset, and one table of pooled coefficients.

The fit function is the caller's: nothing of statsmodels or scikit-learn is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.inference.combine import combine
from pegsynth.inference.combining_rules import Numbers, Rule
from pegsynth.inference.estimates import check_same
from pegsynth.inference.pooled_result import Pooled
from pegsynth.inference.release_views import ReleaseViews
from pegsynth.privacy import Ledger
from pegsynth.tables.caller_frames import frame_kind

_ONE_EACH: Final = (
    "a fit must give one estimate and one variance (or standard error) per coefficient"
)
Uncertainty: TypeAlias = Literal["variance", "std_error"]


@dataclass(frozen=True, eq=False)
class _Fit:
    """Coefficients of one dataset; `given` says whether the fit itself named them."""

    labels: tuple[str, ...]
    estimates: Numbers
    variances: Numbers
    given: bool

    def by_label(self, values: Numbers) -> dict[str, float]:
        return dict(zip(self.labels, values.tolist(), strict=True))


def pooled(
    fit: Callable[[Any], Any],
    frames: Sequence[Any] | ReleaseViews,
    *,
    names: Sequence[str] | None = None,
    uncertainty: Uncertainty = "variance",
    rule: Rule | None = None,
    rows: int | None = None,
    rows_in: int | None = None,
    ledger: Ledger | None = None,
    imputations: int | None = None,
    analysis: str | None = None,
) -> Pooled:
    """Fit a model to K >= 2 datasets and pool its coefficients.

    Parameters
    ----------
    fit
        Takes one dataset; returns a result with `params` and `bse`, as statsmodels does,
        or a pair: estimates and their variances, each a number, an array or a mapping.
    frames
        The K synthetic datasets, or the `Release` that holds them; of a release with
        completed tables, these are taken.
    names
        Names of the coefficients in their order; where the fit names them itself, the
        ones to keep.
    uncertainty
        What the second member of a pair is: "variance", or "std_error".
    rule, rows, rows_in, ledger, analysis
        As for `combine`; `rows` is by default the number of rows of a frame, and `ledger`
        that of the release.
    imputations
        r, where `frames` are K datasets completed r times each (R23), those of a dataset
        one after the other.

    Returns
    -------
    Pooled
        One line per coefficient; `to_frame()` gives a dataframe.
    """
    if uncertainty not in ("variance", "std_error"):
        raise ParameterError("uncertainty is variance or std_error: the second member of a pair")
    if isinstance(frames, ReleaseViews):
        ledger = frames.ledger if ledger is None else ledger
        if frames.completed:
            imputations = len(frames.completed[0])
        frames = [each for of_one in frames.completed for each in of_one] or frames.frames
    tables = list(frames)
    fits = [_coefficients(fit(table), uncertainty) for table in tables]
    if names is not None:
        fits = [_relabelled(found, names, number) for number, found in enumerate(fits, start=1)]
    result = combine(
        [found.by_label(found.estimates) for found in fits],
        [found.by_label(found.variances) for found in fits],
        rule=rule,
        rows=_rows(tables) if rows is None else rows,
        rows_in=rows_in,
        ledger=ledger,
        imputations=imputations,
        analysis=analysis,
    )
    return Pooled(result, frame_kind(tables[0]) if tables else None)


def estimates_of(result: object, names: Sequence[str] | None = None) -> dict[str, float]:
    """Return the coefficients of a fit whose standard errors are not needed, by name."""
    estimates = getattr(result, "params", result)
    keys = list(estimates.keys()) if hasattr(estimates, "keys") else None
    values = _flat(estimates, keys)
    labels = tuple(map(str, keys or _made_up(result, len(values))))
    found = _Fit(labels, values, np.zeros(len(values)), keys is not None)
    if names is not None:
        found = _relabelled(found, names, 1)
    return found.by_label(found.estimates)


def _rows(tables: Sequence[object]) -> int | None:
    """Return the number of rows that all frames have."""
    counts = {len(table) if hasattr(table, "__len__") else None for table in tables}
    return counts.pop() if len(counts) == 1 else None


def _coefficients(result: object, uncertainty: Uncertainty) -> _Fit:
    """Read what a fit function returned."""
    squared = uncertainty == "std_error"
    if hasattr(result, "params") and hasattr(result, "bse"):
        estimates, second, squared = result.params, result.bse, True
    elif isinstance(result, tuple) and len(result) == 2:
        estimates, second = result
    else:
        raise ParameterError(
            "the fit function must return a result with params and bse, or a pair of estimates "
            "and variances; scikit-learn models have no standard errors of their own"
        )
    keys = list(estimates.keys()) if hasattr(estimates, "keys") else None
    first, spread = _flat(estimates, keys), _flat(second, keys)
    if first.shape != spread.shape:
        raise ParameterError(_ONE_EACH)
    labels = keys or _made_up(result, len(first))
    if squared:
        spread = np.copysign(spread**2, spread)
    return _Fit(tuple(map(str, labels)), first, spread, keys is not None)


def _flat(values: Any, keys: list[Any] | None) -> Numbers:
    """Return the numbers of a fit, in the order of the keys if there are any."""
    if keys is not None and hasattr(values, "keys"):
        check_same(list(values.keys()), keys, "a fit")
        values = [values[key] for key in keys]
    try:
        flat = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        flat = np.empty((0, 0))
    if flat.ndim != 1:
        raise ParameterError(_ONE_EACH)
    return flat


def _made_up(result: object, count: int) -> list[str]:
    """Return the names that statsmodels gives to columns of an array, or numbers."""
    own = getattr(getattr(result, "model", None), "exog_names", None)
    if isinstance(own, list) and len(own) == count:
        return own
    return [f"quantity {place}" for place in range(1, count + 1)]


def _relabelled(found: _Fit, names: Sequence[str], number: int) -> _Fit:
    """Keep the coefficients asked for, or name those that have no names of their own."""
    if set(names) <= set(found.labels):
        places = [found.labels.index(name) for name in names]
        kept = found.estimates[places], found.variances[places]
        return _Fit(tuple(names), *kept, found.given)
    if found.given:
        missing = next(name for name in names if name not in found.labels)
        raise ParameterError(f"dataset {number} gives no coefficient {missing!r}")
    if len(names) != len(found.labels) or len(set(names)) != len(names):
        raise ParameterError(
            f"dataset {number} gives {len(found.labels)} coefficients; state as many names, each "
            "once"
        )
    return _Fit(tuple(names), found.estimates, found.variances, given=True)
