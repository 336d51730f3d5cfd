"""One estimate with its interval from several synthetic tables, or from one with replicates.

Which rule is right depends on how the tables were made (R16, R28). Tables with noise of their
own and replicate weights hold in their spread all that makes an estimate vary; other tables are
pooled by the plug-in rule; a single table has the interval that an analyst would naively take.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pegsynth.evaluation.statistics import LEVEL, Estimate, interval
from pegsynth.inference.combining_rules import Moments, Rule, own_noise, plug_in, replicate_weights

NAIVE = (
    "one synthetic table: its interval is the naive one, as if its rows were real; it leaves out "
    "that the table was made from a sample"
)


def pooled(
    values: Sequence[float],
    variances: Sequence[float],
    *,
    share: float,
    rule: Rule | None = None,
    freedom: float = np.inf,
    level: float = LEVEL,
) -> Estimate:
    """Pool the estimates of one thing.

    Parameters
    ----------
    values, variances
        Estimate of each table, and its variance as if rows were real.
    share
        Rows of a synthetic table as a share of the original's.
    rule
        How the tables were made; None: nobody knows, and the plug-in rule is taken.
    freedom
        Degrees of freedom of a single table's interval.
    """
    if len(values) == 1:
        return interval(values[0], variances[0], freedom, level=level)
    estimates = np.array(values)[:, np.newaxis]
    if rule == "own-noise":
        spread = own_noise(estimates)
    else:
        # R16, plug-in: T = (n/N) v + b/K.
        spread = plug_in(Moments.of(estimates, np.array(variances)[:, np.newaxis]), share)
    variance, degrees = float(spread.variance[0]), float(spread.degrees_of_freedom[0])
    return interval(float(np.mean(values)), variance, degrees, level=level)


def replicated(main: float, replicates: Sequence[float], *, level: float = LEVEL) -> Estimate:
    """Return an estimate with the interval that its replicates give (R28)."""
    spread = replicate_weights(np.array(replicates)[:, np.newaxis], np.array([main]))
    return interval(
        main, float(spread.variance[0]), float(spread.degrees_of_freedom[0]), level=level
    )


def how_pooled(tables: int, *, rule: Rule | None, replicates: int) -> str:
    """Say which interval an estimate of released tables has."""
    if replicates:
        return f"interval by {replicates} replicate weights, which hold sampling error and noise"
    if tables == 1:
        return NAIVE
    if rule == "own-noise":
        return (
            f"{tables} synthetic tables with noise of their own pooled by T = (1 + 1/K) b, which "
            "holds sampling error and noise"
        )
    return (
        f"{tables} synthetic tables pooled by T = (n/N) v + b/K (plug-in rule), which leaves out "
        "noise, and the pull of virtual rows, that all tables share"
    )
