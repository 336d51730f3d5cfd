"""All that is measured of the numbers of tables, as records beside the original's.

Means, standard deviations, quantiles, zeros and heaps, the share of rows in the original's
tails, Kolmogorov and Wasserstein distance, correlations. The baseline of a figure is the
original's own; of a distance, what a bootstrap of the original would have. Rows without a number
are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
import numpy as np

from pegsynth.evaluation.evaluated_tables import Tables
from pegsynth.evaluation.records import SEPARATOR, Cumulative, Record, measured, not_computed
from pegsynth.evaluation.utility.empirical import (
    CORRELATIONS,
    HEAP_SHARE,
    TAILS,
    Correlation,
    Empirical,
    Figure,
    Side,
    Sides,
    heaps_of,
    kolmogorov,
    kolmogorov_floor,
    pair_sides,
    sides_of,
    wasserstein,
    wasserstein_floor,
)
from pegsynth.inference.combining_rules import Rule, how_pooled
from pegsynth.inference.statistics import LEVEL, Estimate, quantile, spread
from pegsynth.inference.value_columns import moment_features, value_features
from pegsynth.kernels.arrays import Float64
from pegsynth.schema import Schema

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
NO_NUMBERS = "no numeric feature has numbers in all tables"
DISTANCES = ("kolmogorov_distance", "wasserstein_distance")
CORRELATION_DISTANCES = ("pearson_distance", "spearman_distance")
TOO_LARGE = "the numbers are too large to be added up"
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
    "pearson_correlation": "Pearson's correlation of released numbers",
    "spearman_correlation": "Spearman's correlation of released numbers: that of their ranks, ties "
    "at their mean rank, ranks among all rows that have the number",
}


@dataclass(frozen=True)
class Numbers:
    """The numbers of all tables, sorted and correlated.

    Parameters
    ----------
    sides
        One for each numeric feature that all tables have numbers of.
    pairs
        Correlations of all pairs of these.
    moments
        One for each feature of dates or times that all tables have.
    units
        What these are counted in, by feature.
    left_out
        Other features with numbers, and why nothing is said about these.
    every
        Every so manieth row of the largest table was used; 1 where all were.
    """

    sides: tuple[Sides[Empirical], ...] = ()
    pairs: tuple[Sides[Correlation], ...] = ()
    moments: tuple[Sides[Empirical], ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[tuple[str, str], ...] = ()
    every: int = 1

    def records(self) -> list[Record]:
        """Return every record of numbers."""
        names = (*DISTANCES, *CORRELATION_DISTANCES)
        values = [not_computed(name, "", NO_NUMBERS) for name in names]
        # Numbers near the largest that there are overflow in squares: those figures are left out.
        with np.errstate(all="ignore"):
            dated = [
                msgspec.structs.replace(record, note=f"dates or times, counted in {unit}s: {note}")
                for each in self.moments
                for record in _distances(each)
                for unit, note in [(self.units[each.name], record.note)]
            ]
            if self.sides:
                values = [*value_records(self.sides), *correlation_records(self.pairs)]
        found = [*values, *dated] if self.sides else [*values[:2], *dated, *values[2:]]
        if self.every > 1:
            # A table was too large for all of its rows.
            used = f"; every {self.every}th row was used, evenly spaced"
            found = [
                record
                if record.note.endswith(NO_NUMBERS)
                else msgspec.structs.replace(record, note=f"{record.note}{used}")
                for record in found
            ]
        return [
            *found,
            *(
                not_computed(
                    "kolmogorov_distance" if name in self.units else "value_mean", name, why
                )
                for name, why in self.left_out
            ),
        ]

    def distributions(self, schema: Schema) -> tuple[Cumulative, ...]:
        """Return the distribution functions of every feature, for the report."""
        labels = {feature.name: feature.label for feature in schema.features}
        return tuple(cumulative_of(each, labels[each.name]) for each in self.sides)


def numbers_found(tables: Tables, schema: Schema, rule: Rule | None = None) -> Numbers:
    """Sort and correlate the numbers of tables; nothing where only codes are known."""
    if not tables.values:
        return Numbers()
    original, *synthetic = tables.values
    units = {name: schema[name].resolution for name in moment_features(schema)}
    found = {
        name: sides_of(name, original, synthetic, rule)
        for name in (*value_features(schema), *units)
    }
    known = {name: side for name, side in found.items() if isinstance(side, Sides)}
    sides = [side for name, side in known.items() if name not in units]
    with np.errstate(all="ignore"):
        pairs = pair_sides(sides, original, synthetic)
    return Numbers(
        tuple(sides),
        tuple(pairs),
        tuple(side for name, side in known.items() if name in units),
        units,
        tuple((name, why) for name, why in found.items() if isinstance(why, str)),
        max(each.every for each in tables.values),
    )


def value_records(sides: Sequence[Sides[Empirical]]) -> list[Record]:
    """Return all records of numbers: the means over the features first."""
    records = [record for each in sides for record in _feature(each)]
    return [*(_mean_distance(name, sides, records) for name in DISTANCES), *records]


def correlation_records(pairs: Sequence[Sides[Correlation]]) -> list[Record]:
    """Return all correlations as records: the mean distances first."""
    if not pairs:
        reason = "there are no two numeric features that vary"
        return [not_computed(name, "", reason) for name in CORRELATION_DISTANCES]
    found = []
    for name, measure in zip(CORRELATION_DISTANCES, CORRELATIONS, strict=True):
        ours = [each for each in pairs if each.measure == measure]
        apart = [abs(each.mean(_value) - each.original.value) for each in ours]
        # The variance of a bootstrap of n rows is that of n original rows.
        chance = [
            math.sqrt(2 / math.pi * each.original.variance * each.original.n / side.rows)
            for each in ours
            for side in each.synthetic
        ]
        note = (
            f"mean over the pairs of numeric features of |r_synth - r_orig|; {_MEANT[measure]}; "
            "baseline: expected of a bootstrap of the original with as many rows, sqrt(2/pi) se"
        )
        value = Estimate(float(np.mean(apart)), n=min(each.released for each in ours))
        found.append(measured(name, "", value, baseline=float(np.mean(chance)), note=note))
    for each in pairs:
        value = each.estimate(_value, lambda side: side.variance)
        note = (
            f"{_MEANT[each.measure]}; variance by the influence of each row (Devlin et al. 1975, "
            f"doi:10.1093/biomet/62.3.531); {_how(each)}; baseline: the original's"
        )
        inside = Estimate(value.value, max(value.low, -1.0), min(value.high, 1.0))
        found.append(_record(each.measure, "", each, inside, each.original.value, note))
    return found


def _value(side: Correlation) -> float:
    return side.value


def cumulative_of(side: Sides[Empirical], label: str) -> Cumulative:
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


def _feature(side: Sides[Empirical]) -> Iterable[Record]:
    def figure(
        name: str, detail: str, of: Figure[Empirical], variance: Figure[Empirical]
    ) -> Record:
        note = f"{_MEANT[name]}; {_how(side)}{_dropped(side)}"
        return _record(name, detail, side, side.estimate(of, variance), of(side.original), note)

    def share(name: str, detail: str, of: Figure[Empirical]) -> Record:
        found = side.estimate(of, lambda law: of(law) * (1 - of(law)) / law.n)
        inside = Estimate(found.value, max(found.low, 0.0), min(found.high, 1.0))
        note = f"{_MEANT[name]}; {_how(side)}{_dropped(side)}"
        return _record(name, detail, side, inside, of(side.original), note)

    yield figure("value_mean", "", lambda law: law.mean, lambda law: law.moment(2) / law.n)
    yield figure("value_sd", "", lambda law: law.sd, _sd_variance)
    for each in LEVELS:
        at, variance = partial(_quantile, level=each), partial(_quantile_variance, level=each)
        yield figure("value_quantile", f"{each:g}", at, variance)
    if any(law.share(0) > 0 for law in (side.original, *side.synthetic)):
        yield share("value_zeros", "", partial(Empirical.share, number=0.0))
    for number in heaps_of(side):
        yield share("value_heap", f"{number:.15g}", partial(Empirical.share, number=number))
    for where, each in TAILS:
        bound = float(side.original.quantile(each))
        beyond = partial(Empirical.beyond, bound=bound, where=where)
        if beyond(side.original) > 0:
            yield share("value_tail", f"{where} the {each:g} quantile", beyond)
    yield from _distances(side)


def _record(
    name: str, detail: str, side: Sides[Side], found: Estimate, baseline: float, note: str
) -> Record:
    subject = f"{side.name}{SEPARATOR}{detail}" if detail else side.name
    if not all(map(math.isfinite, (found.value, baseline))):
        return not_computed(name, subject, TOO_LARGE)
    low, high = (end if math.isfinite(end) else math.nan for end in (found.low, found.high))
    inside = Estimate(found.value, low, high, side.released)
    return measured(name, subject, inside, baseline=baseline, note=note)


def _how(side: Sides[Side]) -> str:
    return how_pooled(len(side.synthetic), rule=side.rule, replicates=len(side.replicates))


def _distances(side: Sides[Empirical]) -> Iterable[Record]:
    floors: tuple[Figure[Empirical], ...] = (
        lambda law: kolmogorov_floor(law.rows),
        lambda law: wasserstein_floor(side.original, law.rows),
    )
    for name, measure, floor in zip(DISTANCES, (kolmogorov, wasserstein), floors, strict=True):
        values = [measure(side.original, law) for law in side.synthetic]
        baseline = side.mean(floor)
        if not all(map(math.isfinite, (*values, baseline))):
            yield not_computed(name, side.name, TOO_LARGE)
            continue
        found = spread(values, n=side.released)
        note = f"{_MEANT[name]}{_dropped(side)}"
        yield measured(name, side.name, found, baseline=baseline, note=note)


def _mean_distance(
    name: str, sides: Sequence[Sides[Empirical]], records: Sequence[Record]
) -> Record:
    """Return the mean over the features; of amounts, each in units of the original's sd."""
    units = dict.fromkeys((each.name for each in sides), 1.0)
    note = f"mean over the numeric features: {_MEANT[name]}"
    if name == "wasserstein_distance":
        units = {each.name: each.original.sd for each in sides}
        note = note.replace("in the feature's unit", "in standard deviations of the original")
    ours = [
        (record, units[record.subject])
        for record in records
        if record.name == name and record.value is not None and units[record.subject] > 0
    ]
    if not ours:
        return not_computed(name, "", "no numeric feature varies")
    value = float(np.mean([(record.value or 0.0) / unit for record, unit in ours]))
    baseline = float(np.mean([(record.baseline or 0.0) / unit for record, unit in ours]))
    found = Estimate(value, n=min(record.n for record, _ in ours))
    return measured(name, "", found, baseline=baseline, note=note)


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


def _dropped(side: Sides[Empirical]) -> str:
    if not any(side.dropped):
        return ""
    first, *others = side.dropped
    listed = ", ".join(map(str, others))
    return f"; rows without a number are left out: {first} original, {listed} synthetic"
