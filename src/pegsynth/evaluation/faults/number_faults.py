"""What is wrong with released numbers, by stated rules, each fault in one sentence.

Goes in: distributions and correlations of the original and the synthetic tables. Comes out: the
faults, the worst first. A figure is at fault where it is off by more than a public tolerance
*and* by more than chance explains. Chance is bounded for all comparisons together, so that a
bootstrap of the original is blamed for its numbers with a probability of at most `KIND_ALARMS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from pegsynth.evaluation.faults.fault_kinds import (
    FALSE_ALARMS,
    KIND_ALARMS,
    Fault,
    beside,
    function_allowance,
    mean_explained,
    relative,
    share_explained,
)
from pegsynth.evaluation.utility.correlations import PairSides
from pegsynth.evaluation.utility.empirical import HEAP_SHARE, Empirical, Sides, kolmogorov
from pegsynth.evaluation.utility.value_records import SEPARATOR, TAILS, heaps_of, tail_share

MEAN, SD, FUNCTION, SHARE, TIMES = 0.05, 0.10, 0.05, 0.01, 2.0
CORRELATION = 0.10
RULE = (
    "Numbers are “off” where a figure of a numeric feature misses the original's by more than "
    f"chance explains and by more than this: a mean {MEAN:.0%} of the smaller of the mean size and "
    f"the standard deviation; a standard deviation {SD:.0%}; a distribution function, "
    f"also of dates, {FUNCTION:g}; the share of zeros, or of another number that {HEAP_SHARE:.0%} "
    f"of the rows share, {SHARE:.0%} of the rows or half; the rows beyond the original's 1% or 99% "
    f"quantile, half as many or twice as many; a correlation {CORRELATION:g}."
)
_DISTRIBUTION_TESTS = 6
_MOST_OF_TAILS = 4.0


def number_faults(
    sides: Sequence[Sides],
    pairs: Sequence[PairSides],
    moments: Sequence[Sides] = (),
    *,
    level: float = KIND_ALARMS,
) -> list[Fault]:
    """List what is off, the worst first; `level` is the chance of a false alarm in all.

    Of `moments`, which are dates and times, only the distribution function is judged: a mean
    counted from a year that nobody chose has no relative error.
    """
    comparisons = sum(_DISTRIBUTION_TESTS + len(heaps_of(each)) for each in sides)
    alpha = level / max(1, comparisons + len(pairs) + len(moments))
    found = [fault for each in sides for fault in _distribution(each, alpha)]
    found += [fault for each in moments for fault in _function(each, alpha)]
    found += [fault for each in pairs for fault in _pair(each, alpha)]
    return sorted(found, key=lambda each: each.order)


def _distribution(side: Sides, alpha: float) -> Iterable[Fault]:
    """Judge mean, spread, distribution function, zeros, heaps and tails of a feature."""
    law, n, name = side.original, side.rows, side.name
    mean, tolerance = side.mean(lambda each: each.mean), MEAN * min(law.size, law.sd)
    off = abs(mean - law.mean)
    if off > tolerance and not mean_explained(law.support, law.shares, mean, n, alpha):
        words = f"the mean of {name} is {relative(mean, law.mean)} ({beside(mean, law.mean)})"
        yield Fault("numbers", _about(name, "mean"), words, _ratio(off, tolerance))
    sd = side.mean(lambda each: each.sd)
    if abs(sd - law.sd) > SD * law.sd and not _spread_explained(side, alpha):
        words = f"the standard deviation of {name} is {relative(sd, law.sd)} ({beside(sd, law.sd)})"
        yield Fault("numbers", _about(name, "sd"), words, _ratio(abs(sd - law.sd), SD * law.sd))
    yield from _function(side, alpha)
    yield from _atoms(side, alpha)
    yield from _tails(side, alpha)


def _function(side: Sides, alpha: float) -> Iterable[Fault]:
    """Judge the distribution function of a feature."""
    apart = side.mean(partial(kolmogorov, side.original))
    if apart > FUNCTION and apart > function_allowance(side.rows, alpha):
        words = f"values of {side.name} lie elsewhere (Kolmogorov distance {apart:.2g})"
        yield Fault("numbers", _about(side.name, "distribution"), words, apart / FUNCTION)


def _spread_explained(side: Sides, alpha: float) -> bool:
    """Say whether chance explains the second moment about the original's mean."""
    law = side.original
    found = side.mean(lambda each: each.moment(2) + np.square(each.mean - law.mean))
    squares = (law.support - law.mean) ** 2
    return mean_explained(squares, law.shares, found, side.rows, alpha)


def _atoms(side: Sides, alpha: float) -> Iterable[Fault]:
    """Judge the share of zeros and of numbers at which rows heap up."""
    ours = set(side.original.heaps().tolist())
    for number in (0.0, *heaps_of(side)):
        share = side.original.share(number)
        released = side.mean(partial(Empirical.share, number=number))
        if max(share, released) < HEAP_SHARE:
            continue
        off, tolerance = abs(released - share), min(SHARE, share / TIMES) or SHARE
        explained = share_explained(share, released, side.rows, alpha)
        if number != 0 and number not in ours:
            # Found among all numbers of the release, so that the bound must hold for them all.
            explained = off <= 2 * function_allowance(side.rows, alpha)
        if off > tolerance and not explained:
            what = "zeros" if number == 0 else "rows heaped at one number"
            yield Fault(
                "numbers",
                _about(side.name, "zeros" if number == 0 else f"heap at {number:.15g}"),
                f"{what} of {side.name} {_fate(share, released)} "
                f"({released:.2%} of the rows, originally {share:.2%})",
                off / tolerance,
            )


def _tails(side: Sides, alpha: float) -> Iterable[Fault]:
    """Judge the share of rows beyond quantiles of the original."""
    for where, level in TAILS:
        bound = float(side.original.quantile(level))
        beyond = partial(tail_share, where=where, bound=bound)
        share, released = beyond(side.original), side.mean(beyond)
        if not share or 1 / TIMES <= released / share <= TIMES:
            continue
        if not share_explained(share, released, side.rows, alpha):
            end = "upper" if where == "above" else "lower"
            fate = "is cut" if released < share else "is too heavy"
            least = 1 / side.rows
            times = max(released, least) / share
            yield Fault(
                "numbers",
                _about(side.name, f"{end} tail"),
                f"the {end} tail of {side.name} {fate} ({released:.2%} of the rows lie {where} "
                f"the original's {level:.0%} quantile, originally {share:.2%})",
                # However much of a tail is gone, it is a small part of the rows.
                min(max(times, 1 / times) / TIMES, _MOST_OF_TAILS),
            )


def _pair(pair: PairSides, alpha: float) -> Iterable[Fault]:
    off = abs(pair.value - pair.original.value)
    if off > CORRELATION and off > pair.original.allowance(pair.rows, alpha):
        which = pair.name.partition("_")[0].title()
        words = (
            f"{pair.pair[0]} and {pair.pair[1]} do not go together as they did ({which} "
            f"correlation {pair.value:.2f}, originally {pair.original.value:.2f})"
        )
        yield Fault(
            "numbers", f"{', '.join(pair.pair)}{SEPARATOR}{which}", words, off / CORRELATION
        )


def _about(name: str, figure: str) -> str:
    return f"{name}{SEPARATOR}{figure}"


def _ratio(off: float, tolerance: float) -> float:
    return off / tolerance if tolerance > 0 else 1 / FALSE_ALARMS


def _fate(share: float, released: float) -> str:
    if released == 0:
        return "vanish"
    if share == 0:
        return "appear"
    return "become rarer" if released < share else "become more common"
