"""The rule for tables whose missing values were imputed after synthesis (R23).

In go estimates and variances from K synthetic datasets with r imputations each, those of a
dataset one after the other. Out comes the variance of their mean, or one estimate for every
dataset where another rule takes over.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.inference.combining_rules import Numbers, Rule, Spread
from pegsynth.inference.estimates import Table

FEWEST: Final = 2
NOT_AT_RANDOM: Final = (
    "imputed values follow the other features of their row; values that are missing for reasons "
    "which these do not tell are covered by no rule"
)


def check_imputations(rule: Rule, imputations: int | None) -> None:
    """Refuse a rule that does not fit how often missing values were imputed."""
    if imputations is None:
        if rule == "nested":
            raise ParameterError(
                "the nested rule needs imputations, how often each dataset was completed; "
                "estimates of one dataset stand one after the other"
            )
        return
    _check_whole(imputations)
    if rule == "nested" and imputations < FEWEST:
        raise ParameterError(
            f"the nested rule needs at least {FEWEST} imputations of each dataset, which tell how "
            "much imputing varies; complete the datasets again with --imputations 3"
        )
    if rule not in ("nested", "own-noise"):
        raise ParameterError(
            f"the {rule} rule leaves out how uncertain imputed values are; use the nested rule, or "
            "own-noise for datasets with noise of their own"
        )


def datasets_of(lines: int, imputations: int | None) -> int:
    """Return K, given the number of estimates; refuse one that is no multiple of r."""
    if imputations is None:
        return lines
    _check_whole(imputations)
    if lines % imputations:
        raise ParameterError(
            f"{lines} estimates are not {imputations} for each dataset; state the estimates of all "
            "imputations of every dataset, those of a dataset one after the other"
        )
    return lines // imputations


def _check_whole(imputations: int) -> None:
    if isinstance(imputations, bool) or not isinstance(imputations, int) or imputations < 1:
        raise ParameterError("imputations must be a whole number of at least 1")


def means(table: Table, imputations: int) -> Table:
    """Average the imputations of every dataset."""
    values = _by_dataset(table.values, imputations).mean(axis=1)
    return Table(values, table.names, table.scalar)


def nested(estimates: Numbers, variances: Numbers, imputations: int, share: float) -> Spread:
    """Plug-in datasets, each imputed r times: T = (n/N)(v + w) + b/K (R23).

    Parameters
    ----------
    estimates, variances
        K r lines of p numbers, the imputations of a dataset one after the other.
    share
        n/N.
    """
    by_dataset = _by_dataset(estimates, imputations)
    datasets = len(by_dataset)
    part = by_dataset.mean(axis=1).var(axis=0, ddof=1) / datasets
    imputing = share * by_dataset.var(axis=1, ddof=1).mean(axis=0)
    variance = share * variances.mean(axis=0) + imputing + part
    spread = imputing**2 / (datasets * (imputations - 1)) + part**2 / (datasets - 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        degrees = variance**2 / spread
    return Spread(
        variance=variance,
        degrees_of_freedom=np.where(spread > 0, degrees, np.inf),
        adjusted=np.zeros(part.shape, dtype=np.bool_),
    )


def _by_dataset(values: Numbers, imputations: int) -> Numbers:
    return values.reshape(-1, imputations, values.shape[1])
