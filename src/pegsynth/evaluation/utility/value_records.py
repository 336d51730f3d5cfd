"""Figures of released numbers, feature by feature, as records beside the original's.

Means, standard deviations, quantiles, zeros and heaps, the share of rows in the original's
tails, Kolmogorov and Wasserstein distance. The baseline of a figure is the original's own; of a
distance, what a bootstrap of the original would have. Rows without a number are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import msgspec
import numpy as np

from pegsynth.evaluation.records import Cumulative, Record, measured, not_computed
from pegsynth.evaluation.utility.empirical import (
    HEAP_SHARE,
    Empirical,
    Figure,
    Sides,
    kolmogorov,
    kolmogorov_floor,
    wasserstein,
    wasserstein_floor,
)
from pegsynth.evaluation.utility.pooling import how_pooled
from pegsynth.inference.statistics import LEVEL, Estimate, quantile, spread
from pegsynth.kernels.arrays import Float64

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TAILS = (("below", 0.01), ("above", 0.99))
MOST_HEAPS = 5
SEPARATOR = " :: "
HEADLINES = ("kolmogorov_distance", "wasserstein_distance")
_POINTS = 60
_MEANT = {
    "value_mean": "mean of the released numbers; baseline: the original's",
    "value_sd": "standard deviation of the released numbers; baseline: the original's",
    "value_quantile": "smallest released number with that share of the rows at or below it; "
    "variance by Woodruff (1952, doi:10.1080/01621459.1952.10483443); baseline: the original's",
    "value_zeros": "share of rows whose number is 0; baseline: the original's",
    "value_heap": f"share of rows that have this very number, which {HEAP_SHARE:.0%} or more of a "
    "table's rows share; baseline: the original's",
    "value_tail": "share of rows beyond a quantile of the original; baseline: the original's",
    "kolmogorov_distance": "largest distance of the distribution functions of released and "
    "original numbers (Kolmogorov 1933); baseline: expected of a bootstrap, "
    "sqrt(pi/2) log 2/sqrt(n), less where numbers repeat",
    "wasserstein_distance": "area between the distribution functions of released and original "
    "numbers, in the feature's unit (Vallender 1974, doi:10.1137/1118101); baseline: expected of "
    "a bootstrap, the integral of sqrt(2 F (1 - F)/(pi n))",
}


def value_records(sides: Sequence[Sides], *, level: float = LEVEL) -> list[Record]:
    """Return all records of numbers: the means over the features first."""
    records = [record for each in sides for record in _feature(each, level)]
    return [*(_headline(name, sides, records) for name in HEADLINES), *records]


def moment_records(sides: Sequence[Sides], units: Mapping[str, str]) -> list[Record]:
    """Return the distances of dates and times; amounts are in the unit of each feature."""
    records = [record for each in sides for record in _distances(each)]
    return [
        msgspec.structs.replace(
            record, note=f"dates or times, counted in {units[record.subject]}s: {record.note}"
        )
        for record in records
    ]


def no_value_records(reason: str) -> list[Record]:
    """Return the headline records where no numbers can be compared."""
    return [not_computed(name, "", reason) for name in HEADLINES]


def cumulative_of(side: Sides, label: str) -> Cumulative:
    """Return the distribution functions of a feature near the quantiles of both tables."""
    # Half a step from either end, so that one row far out does not stretch the picture.
    levels = (np.arange(_POINTS) + 0.5) / _POINTS
    points = [law.quantile(levels) for law in (side.original, *side.synthetic[:1])]
    places = _rounded(np.concatenate(points))
    released = np.mean([law.at_most(places) for law in side.synthetic], axis=0)
    return Cumulative(
        feature=side.name,
        label=label,
        values=tuple(places.tolist()),
        original=tuple(side.original.at_most(places).tolist()),
        synthetic=tuple(np.minimum(released, 1.0).tolist()),
    )


def _rounded(places: Float64) -> Float64:
    """Return places in order, rounded to a thousandth of their range.

    A picture needs no more, and a page that is kept should not hold the numbers of single rows.
    """
    # Floats of Python's own, whose difference may be infinite without a warning.
    reach = float(places.max()) - float(places.min())
    if not 0 < reach < math.inf:
        return np.unique(places)
    step = 10.0 ** math.floor(math.log10(reach / 1000))
    with np.errstate(over="ignore"):
        rounded = np.round(places / step) * step
    return np.unique(np.where(np.isfinite(rounded), rounded, places))


def heaps_of(side: Sides) -> list[float]:
    """Return the numbers, zero aside, at which either table heaps up, the original's first."""
    found = [*side.original.heaps().tolist()[:MOST_HEAPS]]
    for law in side.synthetic:
        found += law.heaps().tolist()[:MOST_HEAPS]
    return list(dict.fromkeys(found))


def tail_share(law: Empirical, where: str, bound: float) -> float:
    """Return the share of rows beyond a bound."""
    if where == "above":
        return 1.0 - float(law.at_most(bound))
    return float(law.at_most(bound)) - law.share(bound)


def _feature(side: Sides, level: float) -> Iterable[Record]:
    yield _figure("value_mean", "", side, lambda law: law.mean, _mean_variance, level)
    yield _figure("value_sd", "", side, lambda law: law.sd, _sd_variance, level)
    for each in LEVELS:
        yield _figure(
            "value_quantile",
            f"{each:g}",
            side,
            partial(_quantile, level=each),
            partial(_quantile_variance, level=each),
            level,
        )
    if side.original.share(0) > 0 or any(law.share(0) > 0 for law in side.synthetic):
        yield _share("value_zeros", "", side, partial(Empirical.share, number=0.0), level)
    for number in heaps_of(side):
        heap = partial(Empirical.share, number=number)
        yield _share("value_heap", f"{number:.15g}", side, heap, level)
    for where, each in TAILS:
        beyond = partial(tail_share, where=where, bound=float(side.original.quantile(each)))
        if beyond(side.original) > 0:
            yield _share("value_tail", f"{where} the {each:g} quantile", side, beyond, level)
    yield from _distances(side)


def _figure(
    name: str, detail: str, side: Sides, figure: Figure, variance: Figure, level: float
) -> Record:
    found = side.estimate(figure, variance, level=level)
    return _record(name, detail, side, found, figure(side.original))


def _share(name: str, detail: str, side: Sides, figure: Figure, level: float) -> Record:
    def variance(law: Empirical) -> float:
        share = figure(law)
        return share * (1 - share) / law.n

    found = side.estimate(figure, variance, level=level)
    inside = Estimate(found.value, max(found.low, 0.0), min(found.high, 1.0))
    return _record(name, detail, side, inside, figure(side.original))


def _record(name: str, detail: str, side: Sides, found: Estimate, baseline: float) -> Record:
    subject = f"{side.name}{SEPARATOR}{detail}" if detail else side.name
    figures = (found.value, found.low, found.high, baseline)
    if not all(map(math.isfinite, (found.value, baseline))):
        return not_computed(name, subject, "the numbers are too large to be added up")
    value, low, high, baseline = (
        figure if math.isfinite(figure) else math.nan for figure in figures
    )
    return measured(
        name,
        subject,
        Estimate(value, low, high, _rows(side)),
        baseline=baseline,
        note=f"{_MEANT[name]}; {_how(side)}{_dropped(side)}",
    )


def _distances(side: Sides) -> Iterable[Record]:
    floors = {
        "kolmogorov_distance": lambda law: kolmogorov_floor(law.rows),
        "wasserstein_distance": lambda law: wasserstein_floor(side.original, law.rows),
    }
    measures = {"kolmogorov_distance": kolmogorov, "wasserstein_distance": wasserstein}
    for name, measure in measures.items():
        values = [measure(side.original, law) for law in side.synthetic]
        baseline = side.mean(floors[name])
        if not all(map(math.isfinite, (*values, baseline))):
            yield not_computed(name, side.name, "the numbers are too large to be added up")
            continue
        found = spread(values, n=_rows(side))
        note = f"{_MEANT[name]}{_dropped(side)}"
        yield measured(name, side.name, found, baseline=baseline, note=note)


def _headline(name: str, sides: Sequence[Sides], records: Sequence[Record]) -> Record:
    """Return the mean over the features; of amounts, each in units of the original's sd."""
    units = dict.fromkeys((each.name for each in sides), 1.0)
    note = f"mean over the numeric features: {_MEANT[name]}"
    if name == "wasserstein_distance":
        units = {each.name: each.original.sd for each in sides}
        note = note.replace("in the feature's unit", "in standard deviations of the original")
    ours = [
        record
        for record in records
        if record.name == name and record.value is not None and units[record.subject] > 0
    ]
    if not ours:
        return not_computed(name, "", "no numeric feature varies")
    value, baseline = (
        float(np.mean([figure / units[record.subject] for record, figure in known]))
        for known in (
            [(record, record.value or 0.0) for record in ours],
            [(record, record.baseline or 0.0) for record in ours],
        )
    )
    n = min(record.n for record in ours)
    return measured(name, "", Estimate(value, n=n), baseline=baseline, note=note)


def _mean_variance(law: Empirical) -> float:
    return law.moment(2) / law.n


def _sd_variance(law: Empirical) -> float:
    """Variance of a standard deviation by the delta method: (m4 - s^4)/(4 s^2 n)."""
    variance = law.moment(2)
    return (law.moment(4) - variance * variance) / (4 * variance * law.n) if variance > 0 else 0.0


def _quantile(law: Empirical, level: float) -> float:
    return float(law.quantile(level))


def _quantile_variance(law: Empirical, level: float) -> float:
    z = quantile(LEVEL)
    half = z * math.sqrt(level * (1 - level) / law.n)
    low, high = law.quantile(np.clip([level - half, level + half], 0.0, 1.0))
    deviation = float((high - low) / (2 * z))
    return deviation * deviation


def _rows(side: Sides) -> int:
    return min(each.rows for each in side.synthetic)


def _how(side: Sides) -> str:
    return how_pooled(len(side.synthetic), rule=side.rule, replicates=len(side.replicates))


def _dropped(side: Sides) -> str:
    if not any(side.dropped):
        return ""
    first, *others = side.dropped
    listed = ", ".join(map(str, others))
    return f"; rows without a number are left out: {first} original, {listed} synthetic"
