"""What is wrong with a release: kinds of problems, their records, and what chance explains.

Goes in: problems that others found. Comes out: a record with their number and all rules, and one
for each problem, kind by kind and the worst of a kind first. Terminal, page and ``metrics.json``
take the verdict on utility from these. The subject of a problem opens with its kind.

A figure is a problem only where chance alone can hardly move it so far. `mean_explained` and its
like take the original, as the distribution that rows are drawn from, a figure of the release, and
a number of rows, and say whether n rows drawn with replacement get that far with a probability
above `alpha`. Bounds of means, second moments and shares (Chernoff) and of distribution functions
(Dvoretzky, Kiefer and Wolfowitz) hold for every n and every distribution; the others say for what
they hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from pegsynth.evaluation.records import FAULTS, SEPARATOR, Record, measured
from pegsynth.inference.statistics import Estimate
from pegsynth.kernels.arrays import Float64

FALSE_ALARMS = 1e-3
"""Chance that a bootstrap of the original is flagged for anything in a report."""

Kind = Literal[
    "subgroups", "impossible rows", "regressions", "predictions", "numbers", "feature pairs"
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""The worst first: who is lost, what cannot be, what analysts would conclude wrongly."""

KIND_ALARMS: Final = FALSE_ALARMS / len(KINDS)
"""Chance that a bootstrap of the original is flagged for anything of one kind."""

CHANCE: Final = (
    "Chance is what a fresh sample of as many rows could do: a plain resample of the original is "
    f"blamed for anything in at most {FALSE_ALARMS:.1%} of all reports. The noise of a release is "
    "no excuse: what it moved is named."
)

_MOST_DOUBLINGS, _HALVINGS = 60, 30
_SMALLEST, _LARGEST = 1e-3, 1e12


@dataclass(frozen=True)
class Problem:
    """Something that is off.

    Parameters
    ----------
    kind
        Which kind of problem.
    about
        Which feature, pair or formula, and which figure of it.
    words
        What is wrong, in half a sentence.
    times
        By how many tolerances.
    weight
        How bad it is among problems of its kind; None: as many tolerances.
    """

    kind: Kind
    about: str
    words: str
    times: float
    weight: float | None = None

    @property
    def order(self) -> tuple[int, float]:
        """Sorts the worst first."""
        return KINDS.index(self.kind), -(self.times if self.weight is None else self.weight)


def problem_records(found: Iterable[Problem], rules: Iterable[str], *, n: int) -> list[Record]:
    """Write the number of problems with the rules, one a line, then every problem."""
    ordered = sorted(found, key=lambda each: each.order)
    total = Estimate(float(len(ordered)), n=n)
    records = [measured(FAULTS, "", total, baseline=0.0, note="\n".join((*rules, CHANCE)))]
    for each in ordered:
        subject, times = f"{each.kind}{SEPARATOR}{each.about}", Estimate(each.times, n=n)
        records.append(measured(FAULTS, subject, times, baseline=1.0, note=each.words))
    return records


def rows_judged(original: float, released: float) -> float:
    """Return the rows to judge by: those of a released table that is as good as fresh data.

    A fresh sample of the population differs from the original by the sampling error of both,
    1/n = 1/n_original + 1/n_released, which is more than a bootstrap does.
    """
    return 1 / (1 / original + 1 / released)


def mean_explained(values: Float64, shares: Float64, found: float, n: float, alpha: float) -> bool:
    """Say whether chance explains the mean of n draws.

    Parameters
    ----------
    values, shares
        The law of a draw.
    found
        The mean that was found.
    n
        Number of draws.
    alpha
        Probability to be blamed wrongly, on both sides together.

    Notes
    -----
    P(mean >= x) <= exp(-n I(x)) with I(x) the supremum over t of t x - log E exp(t X): Chernoff
    (1952), A measure of asymptotic efficiency for tests of a hypothesis based on the sum of
    observations, Annals of Mathematical Statistics 23(4), 493-507, doi:10.1214/aoms/1177729330.
    Every t gives a bound, so that a search that stops early errs on the side of no blame.
    """
    middle = float(shares @ values)
    scale = float(np.abs(values - middle).max())
    apart = found - middle
    if apart == 0 or scale == 0 or not math.isfinite(scale):
        return apart == 0 or not math.isfinite(scale)
    numbers, target = np.sign(apart) * (values - middle) / scale, abs(apart) / scale
    if target > float(numbers.max()):
        return False
    enough = math.log(2 / alpha) / n
    low, high = 0.0, target / max(float(shares @ (numbers * numbers)), 1e-300)
    for _ in range(_MOST_DOUBLINGS):
        rate, slope = _rate(numbers, shares, target, high)
        if rate > enough:
            return False
        if slope <= 0:
            break
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rate, slope = _rate(numbers, shares, target, middle)
        if rate > enough:
            return False
        low, high = (middle, high) if slope > 0 else (low, middle)
    return True


def share_explained(share: float, found: float, n: float, alpha: float) -> bool:
    """Say whether chance explains the share of n rows that have a property.

    Notes
    -----
    Chernoff's bound of a binomial law: P <= exp(-n KL(found, share)); Hoeffding (1963),
    Probability inequalities for sums of bounded random variables, Journal of the American
    Statistical Association 58(301), 13-30, doi:10.1080/01621459.1963.10500830.
    """
    rate = 0.0
    for p, q in ((share, found), (1 - share, 1 - found)):
        if q > 0:
            rate += q * math.log(q / p) if p > 0 else math.inf
    return n * rate <= math.log(2 / alpha)


def counts_explained(
    original: float, released: float, rows: tuple[float, float], alpha: float
) -> bool:
    """Say whether chance explains two counts of a cell, each of a sample of its own.

    Parameters
    ----------
    original, released
        Rows of the cell in either table.
    rows
        Rows of either table.
    alpha
        Probability to be blamed wrongly, on both sides together.

    Notes
    -----
    Given their sum, the released count of two samples of one population is hypergeometric, and
    Chernoff's bound of the binomial law holds for it (Hoeffding 1963): P <= exp(-k KL(c/k, s)),
    with k rows in all, c released and s the released share of all rows. A bootstrap of the
    original varies less than a fresh sample. It covers cells that only one table has.
    """
    both = original + released
    return both == 0 or share_explained(rows[1] / (rows[0] + rows[1]), released / both, both, alpha)


def distance_allowance(n: float, alpha: float) -> float:
    """Return how far the total variation distance of n rows may lie above its expectation.

    Notes
    -----
    exp(-2 n t^2) <= alpha, as one row moves the distance by at most 1/n: McDiarmid (1989), On the
    method of bounded differences, Surveys in Combinatorics, 148-188,
    doi:10.1017/CBO9781107359949.008.
    """
    return math.sqrt(max(0.0, math.log(1 / alpha)) / (2 * n))


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


def bernstein(variance: float, largest: float, n: float, alpha: float) -> float:
    """Return how far the mean of n independent draws may be off.

    Parameters
    ----------
    variance, largest
        Variance of a draw, and its largest distance from the mean.

    Notes
    -----
    P(|mean - mu| > t) <= 2 exp(-n t^2 / (2 (variance + largest t/3))) (Bernstein 1946;
    Boucheron, Lugosi and Massart 2013, Concentration Inequalities, section 2.8,
    doi:10.1093/acprof:oso/9780199535255.001.0001), solved for t.
    """
    log = max(0.0, math.log(2 / alpha))
    linear = largest * log / (3 * n)
    return linear + math.sqrt(linear**2 + 2 * variance * log / n)


def _rate(numbers: Float64, shares: Float64, target: float, tilt: float) -> tuple[float, float]:
    """Return t x - log E exp(t X) and its derivative; numbers are at most 1 in size."""
    powers = tilt * numbers
    largest = float(powers.max())
    weights = shares * np.exp(powers - largest)
    total = float(weights.sum())
    rate = tilt * target - largest - math.log(total)
    return rate, target - float(weights @ numbers) / total


def written(value: float) -> str:
    """Write a figure with four digits, as people do."""
    size = abs(value)
    if size != 0 and not _SMALLEST <= size < _LARGEST:
        return f"{value:.3e}"
    digits = 3 if size == 0 else max(0, 3 - math.floor(math.log10(size)))
    return f"{value:,.{digits}f}"


def beside(value: float, original: float) -> str:
    """Write a figure of the release beside the original's."""
    return f"{written(value)}, originally {written(original)}"


def relative(value: float, original: float) -> str:
    """Say how far a figure is off, relative to a figure that is not 0."""
    if original == 0 or value * original < 0:
        return "far off"
    percent = 100 * (abs(value) / abs(original) - 1)
    return f"{abs(percent):.3g} % too {'large' if percent > 0 else 'small'}"
