"""How the variance of an estimate follows from its replicates: one value for all who need it (R28).

Replicates have a part f of the sampling error and of the noise, so that weights stay near 1 (Fay's
method, with coefficient 1 - f). What they differ by is scaled up again: the variance of an
estimate q is 1/(K f^2) times the sum of (q_k - q)^2.

The combining rules of R16 and R28, each a function from moments to a variance.

In goes what K datasets say about one or more quantities: the mean of the estimates (q),
their variance between datasets (b) and the mean of their variances (v). Out comes the
variance of q around the quantity of the population, and its degrees of freedom. Which
rule is valid depends on how the datasets were made, not on what they hold.

Missing values that were imputed after synthesis have a rule of their own (R23): of K datasets with
r imputations each, those of a dataset one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.inference.statistics import Estimate, interval
from pegsynth.kernels.arrays import Float64
from pegsynth.options import WEIGHT, named_weights

PART: Final = 0.2
"""The part f of sampling error and noise that replicates have."""


@dataclass(frozen=True)
class ReplicateDesign:
    """Replicate weights of a table.

    Parameters
    ----------
    count
        Number of replicates (K), which are the degrees of freedom of an interval, too.
    part
        The part of sampling error and noise that each of them has (f).
    weight
        What the weight of a row is called.
    """

    count: int
    part: float = PART
    weight: str = WEIGHT

    @property
    def scale(self) -> float:
        """What sums of squares and products of the q_k - q are multiplied by: 1/(K f^2)."""
        return 1.0 / (self.count * self.part**2)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns: that of the weight, and those of its replicates."""
        return named_weights(self.weight, self.count)

    def variance(self, estimates: Float64, main: Float64) -> Float64:
        """Return the variances of p estimates.

        Parameters
        ----------
        estimates
            A line of p estimates for every replicate.
        main
            The estimates with the weight of the rows, or with none: rows count alike.
        """
        found: Float64 = self.scale * ((estimates - main) ** 2).sum(axis=0)
        return found


Rule: TypeAlias = Literal[
    "plug-in", "fully", "partial", "shared-urn", "own-noise", "replicate-weights", "nested"
]
Numbers: TypeAlias = NDArray[np.float64]

RULES: Final[tuple[str, ...]] = get_args(Rule)
REPLICATED: Final = ("own-noise", "replicate-weights")
"""Rules for replicates (R28), which need no variance of a single dataset."""

ROWS_NEEDED: Final = (
    "rows, the number of rows of one synthetic dataset, and rows_in, the public number of "
    "original rows (--rows and --rows-in)"
)


NAIVE = (
    "one synthetic table: its interval is the naive one, as if its rows were real; it leaves out "
    "that the table was made from a sample"
)


@dataclass(frozen=True)
class Moments:
    """What K datasets say together, one entry per quantity.

    Parameters
    ----------
    datasets
        Number of datasets (K), at least 2.
    estimate
        Mean of the estimates (q).
    between
        Variance of the estimates, with divisor K - 1 (b).
    within
        Mean of the variances (v).
    """

    datasets: int
    estimate: Numbers
    between: Numbers
    within: Numbers

    @classmethod
    def of(cls, estimates: Numbers, variances: Numbers) -> Moments:
        """Summarise estimates and variances of shape K x p."""
        return cls(
            datasets=len(estimates),
            estimate=estimates.mean(axis=0),
            between=estimates.var(axis=0, ddof=1),
            within=variances.mean(axis=0),
        )


@dataclass(frozen=True)
class Floor:
    """Published noise on quantities that are shares, which bounds their variance below (R28).

    Parameters
    ----------
    deviation
        s/N for every share: standard deviation of the published noise on its count over
        the number of rows. A number, an array or a mapping; 0 for what is not a share.
    total
        N, the published estimate of the number of original rows.
    """

    deviation: Any
    total: float


@dataclass(frozen=True)
class Spread:
    """How far an estimate may be off, one entry per quantity.

    Parameters
    ----------
    variance
        T of the rule.
    degrees_of_freedom
        Those of the t distribution that the intervals use; infinite for b = 0.
    adjusted
        Where the paper's T_s was not positive and was replaced.
    """

    variance: Numbers
    degrees_of_freedom: Numbers
    adjusted: NDArray[np.bool_]


def plug_in(moments: Moments, share: float) -> Spread:
    """Datasets drawn from fitted parameters: T = (n/N) v + b/K (R16).

    Also valid when the parameters were redrawn for each dataset. `share` is n/N.
    """
    return _sum(moments, share * moments.within)


def shared_urn(moments: Moments, share: float) -> Spread:
    """Datasets that share one parameter draw (R17): T = 2 (n/N) v + b/K (R16)."""
    return _sum(moments, 2 * share * moments.within)


def partial(moments: Moments) -> Spread:
    """Original rows with some columns replaced, n = N: T_p = v + b/K (R16)."""
    return _sum(moments, moments.within)


def fully(moments: Moments, share: float | None) -> Spread:
    """Parameters redrawn for each dataset: the paper's T_s = (1 + 1/K) b - v (R16).

    Where T_s is not positive, (n/N) v with K - 1 degrees of freedom takes its place,
    which needs `share`, n/N.
    """
    total = (1 + 1 / moments.datasets) * moments.between
    variance = total - moments.within
    adjusted = variance <= 0
    if share is None and adjusted.any():
        raise ParameterError(
            "the paper's variance (1 + 1/K) b - v is not positive here; its replacement needs "
            f"{ROWS_NEEDED}"
        )
    one_less = moments.datasets - 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        degrees = one_less * (1 - moments.within / total) ** 2
    return Spread(
        variance=np.where(adjusted, (share or 0.0) * moments.within, variance),
        degrees_of_freedom=np.where(adjusted, float(one_less), degrees),
        adjusted=adjusted,
    )


def own_noise(estimates: Numbers) -> Spread:
    """Tables with sampling and noise of their own (R28): T = (1 + 1/K) b, K - 1 degrees."""
    count = len(estimates)
    return _replicated((1 + 1 / count) * estimates.var(axis=0, ddof=1), count - 1)


def replicate_weights(estimates: Numbers, main: Numbers, *, part: float = PART) -> Spread:
    """Replicates of one table (R28): T = mean (q_k - q)^2 / f^2, K degrees of freedom.

    `main` is q, the estimate of the rows as they are; `part` is f, the part of sampling error and
    noise that replicates have.
    """
    design = ReplicateDesign(len(estimates), part)
    return _replicated(design.variance(estimates, main), design.count)


def _replicated(variance: Numbers, degrees: int) -> Spread:
    return Spread(
        variance=variance,
        degrees_of_freedom=np.full(variance.shape, float(degrees)),
        adjusted=np.zeros(variance.shape, dtype=np.bool_),
    )


def covariance(deviations: Numbers, variance: Numbers) -> Numbers:
    """Return the covariance matrix of estimates that have these variances (R28).

    Correlations are those of the replicates; how large variances are is for the rule to say.

    Parameters
    ----------
    deviations
        A line for every replicate: by how much each estimate is off.
    """
    products = deviations.T @ deviations
    size = np.sqrt(np.diag(products))
    scale = np.divide(np.sqrt(variance), size, out=np.zeros_like(size), where=size > 0)
    found = products * np.outer(scale, scale)
    np.fill_diagonal(found, variance)
    return np.asarray(found)


def with_floor(
    spread: Spread, shares: Numbers, deviations: Numbers, total: float
) -> tuple[Spread, NDArray[np.bool_]]:
    """Widen the variance of shares that lie below the noise (R28); say which were.

    Below two deviations of the published noise an estimate cannot fall much further, so
    that its replicates vary too little: T is at least (s/N)^2 + q (1 - q)/N.

    Parameters
    ----------
    shares
        Estimated shares.
    deviations
        s/N, the noise on each as a share; NaN for what is not a share.
    total
        N, the estimated number of original rows.
    """
    q = np.clip(shares, 0.0, 1.0)
    least = deviations**2 + q * (1 - q) / total
    below = (q < 2 * deviations) & (spread.variance < least)
    return (
        Spread(np.where(below, least, spread.variance), spread.degrees_of_freedom, spread.adjusted),
        below,
    )


def _sum(moments: Moments, known: Numbers) -> Spread:
    """Add b/K to a variance taken as known; degrees of freedom match two moments of the sum."""
    part = moments.between / moments.datasets
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        degrees = (moments.datasets - 1) * (1 + known / part) ** 2
    return Spread(
        variance=known + part,
        degrees_of_freedom=np.where(part > 0, degrees, np.inf),
        adjusted=np.zeros(part.shape, dtype=np.bool_),
    )


def effective_rows(weights: Float64) -> float:
    """Return how many rows of equal weight weighted rows are worth; 0 where no row counts.

    (sum w)^2 / sum w^2: Kish (1965), Survey Sampling, section 8.2.

    >>> import numpy as np
    >>> effective_rows(np.array([3.0, 1.0, 0.0, 0.0]))
    1.6
    """
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def pooled_estimate(
    values: Sequence[float],
    variances: Sequence[float],
    *,
    share: float,
    rule: Rule | None = None,
    replicates: Sequence[float] = (),
) -> Estimate:
    """Pool the estimates of one thing, with the interval that how the tables were made allows.

    Tables with noise of their own and replicate weights hold in their spread all that makes an
    estimate vary; other tables are pooled by the plug-in rule; a single table has the interval
    that an analyst would naively take.

    Parameters
    ----------
    values, variances
        Estimate of each table, and its variance as if rows were real.
    share
        Rows of a synthetic table as a share of the original's.
    rule
        How the tables were made; None: nobody knows, and the plug-in rule is taken.
    replicates
        Estimates of the one table with each of its replicate weights, which then give the
        interval (R28).
    """
    if len(values) == 1 and not replicates:
        return interval(values[0], variances[0], np.inf)
    if replicates:
        spread = replicate_weights(np.array(replicates)[:, np.newaxis], np.array(values[:1]))
    elif rule == "own-noise":
        spread = own_noise(np.array(values)[:, np.newaxis])
    else:
        # R16, plug-in: T = (n/N) v + b/K.
        moments = Moments.of(np.array(values)[:, np.newaxis], np.array(variances)[:, np.newaxis])
        spread = plug_in(moments, share)
    variance, degrees = float(spread.variance[0]), float(spread.degrees_of_freedom[0])
    return interval(float(np.mean(values)), variance, degrees)


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


FEWEST_IMPUTATIONS: Final = 2
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
    if rule == "nested" and imputations < FEWEST_IMPUTATIONS:
        raise ParameterError(
            f"the nested rule needs at least {FEWEST_IMPUTATIONS} imputations of each dataset, "
            "which tell how much imputing varies; complete the datasets again with --imputations 3"
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


def dataset_means(estimates: Numbers, imputations: int) -> Numbers:
    """Average the imputations of every dataset."""
    return np.asarray(_by_dataset(estimates, imputations).mean(axis=1))


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
