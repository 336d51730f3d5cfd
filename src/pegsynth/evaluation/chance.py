"""How far chance alone moves a figure of a table: bounds that a bootstrap hardly ever leaves.

Goes in: the original, as the law that rows are drawn from, and a number of rows. Comes out: an
allowance that n rows drawn with replacement exceed with a probability of at most `alpha`. Means,
standard deviations, shares and distribution functions have bounds that hold for every n
(Bernstein; Dvoretzky, Kiefer and Wolfowitz); those of correlations hold for large n.
"""

from __future__ import annotations

import math

from pegsynth.evaluation.empirical import Empirical

FALSE_ALARMS = 1e-3
"""Chance that a bootstrap of the original is blamed for anything in a report."""


def rows_judged(original: float, released: float) -> float:
    """Return the rows to judge by: those of a released table that is as good as fresh data.

    A fresh sample of the population differs from the original by the sampling error of both,
    1/n = 1/n_original + 1/n_released, which is more than a bootstrap does.
    """
    return 1 / (1 / original + 1 / released)


def bernstein(variance: float, largest: float, n: float, alpha: float) -> float:
    """Return how far the mean of n independent draws may be off.

    Parameters
    ----------
    variance, largest
        Variance of a draw, and its largest distance from the mean.
    n
        Number of draws.
    alpha
        Probability to be exceeded, on both sides together.

    Notes
    -----
    P(|mean - mu| > t) <= 2 exp(-n t^2 / (2 (variance + largest t/3))) (Bernstein 1946;
    Boucheron, Lugosi and Massart 2013, Concentration Inequalities, section 2.8,
    doi:10.1093/acprof:oso/9780199535255.001.0001), solved for t.
    """
    log = math.log(2 / alpha)
    linear = largest * log / (3 * n)
    return linear + math.sqrt(linear**2 + 2 * variance * log / n)


def mean_allowance(law: Empirical, n: float, alpha: float) -> float:
    """Return how far the mean of n rows drawn from a law may be off."""
    largest = max(law.support[-1] - law.mean, law.mean - law.support[0])
    return bernstein(law.moment(2), float(largest), n, alpha)


def sd_allowance(law: Empirical, n: float, alpha: float) -> tuple[float, float]:
    """Return the smallest and largest standard deviation that n rows drawn from a law may have.

    The variance is the mean of (x - mu)^2 less (mean - mu)^2; both are bounded, each with half
    of `alpha`.
    """
    variance = law.moment(2)
    largest = float(max(law.support[-1] - law.mean, law.mean - law.support[0])) ** 2
    spread = max(law.moment(4) - variance**2, 0.0)
    off = bernstein(spread, max(largest - variance, variance), n, alpha / 2)
    low = variance - off - mean_allowance(law, n, alpha / 2) ** 2
    return math.sqrt(max(low, 0.0)), math.sqrt(variance + off)


def share_allowance(share: float, n: float, alpha: float) -> float:
    """Return how far the share of n rows that have a property may be off."""
    return bernstein(share * (1 - share), max(share, 1 - share), n, alpha)


def function_allowance(n: float, alpha: float) -> float:
    """Return how far the distribution function of n rows may be off anywhere.

    Notes
    -----
    2 exp(-2 n t^2) <= alpha: Massart (1990), The tight constant in the
    Dvoretzky-Kiefer-Wolfowitz inequality, The Annals of Probability 18(3), 1269-1283,
    doi:10.1214/aop/1176990746. It holds for laws with atoms too, and a single number's share is
    the difference of two values of the function: at most twice as far off.
    """
    return math.sqrt(math.log(2 / alpha) / (2 * n))
